"""LLVM's text of passes between numbers and the steps of quantisation, one number after the other.

Threads share the elements. Operations are each rounded, and in the order of ATen's kernels in
`ops/quantization`, so that the results are theirs.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import KINDS, Emitter
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load, store

__all__ = ["PLACES", "WORDS", "float_code", "integer_code", "requantization_code"]

WORDS = ("threads", "count", "columns", "channels")
"""The whole numbers of a call: how many elements, how many in a row (the last may have fewer), and how many
of these until they are of the same channels again."""
PLACES = {
    "round": ("numbers", "x", "out"),
    "round_range": ("numbers", "x", "out", "low", "high", "levels"),
    "round_rows": ("numbers", "x", "out", "low", "high", "levels"),
    "masked": ("numbers", "x", "dy", "out"),
    "passed_range": ("numbers", "x", "dy", "out", "sums", "low", "high", "levels"),
    "passed_rows": ("numbers", "x", "dy", "out", "sums", "low", "high", "levels"),
    "scaled_even": ("numbers", "x", "out"),
    "scaled_up": ("numbers", "x", "out"),
    "quantize": ("numbers", "x", "out"),
    "dequantize": ("numbers", "x", "out"),
    "dequantize_exactly": ("numbers", "x", "out"),
    "dequantize_multiples": ("numbers", "x", "out"),
    "requantize": ("numbers", "x", "out"),
}
"""The addresses that each function takes after that of the words, in order. `numbers` are float32, but for
`dequantize_exactly` and `requantize` float64:

==========  ============================================================================================
round       first, last, inverse, zero, step: ``floor((x between them - first) inverse - zero + ½) step``
round_rows  the same of each column, by the columns of [5, columns], which are made of the ends of the
            channels' ranges; `levels` are the first and the last step, and 0, which becomes 1 if a range is
            empty around 0: nothing is done then. `round_range`: of one range
masked      first, last: `dy` where `x` is between them
passed_rows the same by ranges as of `round_rows`; `sums` [threads, 2, columns], float64 and 0 at first, are
            then those of `dy` below and above. `passed_range`: of one range, with `sums` [threads, 2]
scaled      low, high, scale, step: the whole number nearest to ``x between the first two scale``, times the
            step; of two the `even` or the upper one
quantize    low, high, shift, scale, half, offset, lowest, highest: the nearest whole number to
            ``(x between the first two - shift) scale - half``, minus the offset, between the last two
dequantize  a, b, c: ``(x + a) b + c``, as float32; `multiples`: ``(x + a) (b + c)`` with one rounding, where
            x + a is a whole number that float32 has
requantize  lowest, step, low, new step, offset, first, last: the whole number nearest to ``((x - lowest) step
            + low) / new step``, where the dividend is a float32, minus the offset, between the last two
==========  ============================================================================================
"""
_FLOAT = "float32"
_BELOW_HALF = {_FLOAT: 0.5 - 2.0**-25, "float64": 0.5 - 2.0**-54}
_Body = Callable[[Emitter, str], None]
_Make = Callable[[Code, dict[str, str]], "_Body | tuple[_Body, Callable[[], None]]"]
"""What writes what is before the loops, and gives what writes a loop's body and, after that, what follows."""


def float_code(lanes: int) -> str:
    """The text of the functions from float32 to float32."""
    makers: dict[str, _Make] = {
        "round": _round, "round_range": _round, "masked": _masked, "passed_range": _passed,
        "scaled_even": lambda e, a: _scaled(e, a, True), "scaled_up": lambda e, a: _scaled(e, a, False),
    }  # fmt: skip
    declarations: dict[str, str] = {}
    texts = [_channel_numbers(declarations)]
    for name in ("round_rows", "passed_rows"):
        texts += [_rows(name, lanes, declarations), _public(name, lanes, declarations)]
    return "\n".join([_module(makers, lanes, declarations), *texts])


def integer_code(kind: str, is_signed: bool, lanes: int) -> str:
    """The text of those between float32 and integers that LLVM calls `kind`."""
    declarations: dict[str, str] = {}

    def quantize(e: Code, a: dict[str, str]) -> _Body:
        return _quantize(e, a, kind)

    def dequantize(wide: str) -> Callable[[Code, dict[str, str]], _Body]:
        return lambda e, a: _dequantize(e, a, (kind, is_signed, wide))

    makers: dict[str, _Make] = {
        "quantize": quantize, "dequantize": dequantize(_FLOAT), "dequantize_exactly": dequantize("float64"),
        "dequantize_multiples": lambda e, a: _multiples(e, a, kind, is_signed),
    }  # fmt: skip
    return _module(makers, lanes, declarations)


def requantization_code(old: tuple[str, bool], new: str, lanes: int) -> str:
    """The text of `requantize`: from integers that LLVM calls so, signed or not, to others."""
    return _module({"requantize": lambda e, a: _requantize(e, a, old, new)}, lanes, {})


def _module(makers: dict[str, _Make], lanes: int, declarations: dict[str, str]) -> str:
    parts = []
    for name, make in makers.items():
        e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
        a = places_of(e, PLACES[name])
        me, start, end = my_part(e, words_of(e, a["words"], WORDS)["count"])
        made = make(e, a | {"me": me})
        body, finish = made if isinstance(made, tuple) else (made, None)
        whole = e.add(start, e.mul(e.quotient(e.sub(end, start), lanes), lanes))
        with e.loop(start, whole, lanes) as i:
            body(e, i)
        with e.loop(whole, end) as i:
            body(e.one, i)
        if finish is not None:
            finish()
        parts.append(e.text())
        parts.append(_public(name, lanes, declarations))
    return "\n".join([*declarations.values(), *parts])


def _public(name: str, lanes: int, declarations: dict[str, str]) -> str:
    """The text of what has threads share the elements, after the numbers of ranges are made, if it has
    ranges."""
    e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
    a = places_of(e, PLACES[name])
    if "levels" not in a:
        share(e, f"{name}_some")
        return e.text()
    words = words_of(e, a["words"], WORDS)
    given = ", ".join(f"ptr {a[each]}" for each in ("numbers", "low", "high", "levels"))
    e.do(f"call void @channel_numbers({given}, i64 {words['columns']}, i64 {words['channels']})")
    with e.when(e.let(f"fcmp oeq float {e.get('float', e.at(a['levels'], 2))}, 0.0")):
        share(e, f"{name}_some")
    return e.text()


def _numbers(e: Code, a: dict[str, str], count: int, dtype: str = _FLOAT) -> Callable[[Emitter], list[str]]:
    """A function of an emitter: the numbers in all its lanes."""
    kind = KINDS[dtype]
    found = [e.get(kind, e.at(a["numbers"], i, kind)) for i in range(count)]
    wide = [in_all_lanes(e, kind, each) for each in found]
    return lambda some: found if some.lanes == 1 else wide


def _bounded(some: Emitter, x: str, low: str, high: str, dtype: str = _FLOAT) -> str:
    """x between two numbers; NaN stays. So written, each is one instruction of x86."""
    x = some.select(some.compare("fcmp ogt", dtype, low, x), dtype, low, x)
    return some.select(some.compare("fcmp olt", dtype, high, x), dtype, high, x)


def _nearest(some: Emitter, dtype: str, x: str) -> str:
    """The nearest whole number, of two the one farther from zero (`rounded_away` in `ops/quantization`)."""
    below_half = some.intrinsic("copysign", dtype, some.constant(dtype, _BELOW_HALF[dtype]), x)
    x = some.binary("fadd", dtype, x, below_half)
    return some.intrinsic("trunc", dtype, x)


def _round(e: Code, a: dict[str, str]) -> _Body:
    numbers = _numbers(e, a, 5)
    return lambda some, i: _round_by(some, a, i, numbers(some))


def _round_by(some: Emitter, a: dict[str, str], i: str, numbers: list[str]) -> None:
    """Rounds what is at place i."""
    first, last, inverse, zero, step = numbers
    x = _bounded(some, load(some, _FLOAT, a["x"], i), first, last)
    for name, number in (("fsub", first), ("fmul", inverse), ("fsub", zero)):
        x = some.binary(name, _FLOAT, x, number)
    x = some.intrinsic("floor", _FLOAT, some.binary("fadd", _FLOAT, x, some.constant(_FLOAT, 0.5)))
    store(some, _FLOAT, some.binary("fmul", _FLOAT, x, step), a["out"], i)


def _rows(name: str, lanes: int, declarations: dict[str, str]) -> str:
    """The text of what a thread does of rows."""
    e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    columns = words["columns"]
    rows = e.quotient(e.add(words["count"], e.sub(columns, 1)), columns)
    me, start, end = my_part(e, rows)
    with e.loop(start, end) as row:
        first, done = e.mul(row, columns), "0"
        width = e.least(columns, e.sub(words["count"], first))  # of the last row, what is left
        for some in (e, e.one):
            whole = e.mul(e.quotient(width, some.lanes), some.lanes)
            with e.loop(done, whole, some.lanes) as c:
                count = 5 if name == "round_rows" else 2
                numbers = [
                    load(some, _FLOAT, a["numbers"], e.add(e.mul(columns, i), c)) for i in range(count)
                ]
                at = e.add(first, c)
                if name == "round_rows":
                    _round_by(some, a, at, numbers)
                else:
                    places = [e.add(e.mul(e.add(e.mul(me, 2), i), columns), c) for i in range(2)]
                    _pass_by(some, a, at, numbers, places)
            done = whole
    return e.text()


def _pass_by(some: Emitter, a: dict[str, str], i: str, ends: list[str], places: list[str]) -> None:
    """Passes the gradient at place i inside the ends, and adds it to the sums at both places outside."""
    x = load(some, _FLOAT, a["x"], i)
    for place, term in zip(places, _outside(some, x, _keep_inside(some, a, x, ends, i), ends)):
        total = some.binary("fadd", "float64", load(some, "float64", a["sums"], place), term)
        store(some, "float64", total, a["sums"], place)


def _channel_numbers(declarations: dict[str, str]) -> str:
    """The text of what makes the numbers of all columns, in the order of `_Steps` in
    `ops/quantization/fake_quantization.py`."""
    parameters = ["ptr numbers", "ptr low", "ptr high", "ptr levels", "i64 columns", "i64 channels"]
    e = Code("channel_numbers", parameters, 1, declarations)
    bottom, top = (e.get("float", e.at("%levels", i)) for i in range(2))
    half, unit = e.constant(_FLOAT, 0.5), e.constant(_FLOAT, 1)
    with e.loop(0, "%channels") as c:
        low, high = (e.get("float", e.at(each, c)) for each in ("%low", "%high"))
        step = e.binary("fdiv", _FLOAT, e.minus(high, low), e.minus(top, bottom))
        place = _bounded(e, e.minus(bottom, e.binary("fdiv", _FLOAT, low, step)), bottom, top)
        zero = e.intrinsic("floor", _FLOAT, e.plus(place, half))
        first, last = (e.times(e.minus(end, zero), step) for end in (bottom, top))
        inverse = e.binary("fdiv", _FLOAT, unit, step)
        shift = e.intrinsic("floor", _FLOAT, e.minus(half, e.times(first, inverse)))
        for number, value in enumerate((first, last, inverse, shift, step)):
            e.set("float", e.at("%numbers", e.add(e.mul("%columns", number), c)), value)
        is_zero = [e.let(f"fcmp oeq float {end}, 0.0") for end in (low, high)]
        with e.when(e.let(f"and i1 {is_zero[0]}, {is_zero[1]}")):
            e.set("float", e.at("%levels", 2), unit)
    with e.loop(0, 5) as i, e.loop("%channels", "%columns") as c:
        place = e.add(e.mul("%columns", i), c)
        e.set("float", e.at("%numbers", place), e.get("float", e.at("%numbers", e.sub(place, "%channels"))))
    return e.text()


def _scaled(e: Code, a: dict[str, str], is_even: bool) -> _Body:
    numbers = _numbers(e, a, 4)

    def body(some: Emitter, i: str) -> None:
        low, high, scale, step = numbers(some)
        x = some.binary("fmul", _FLOAT, _bounded(some, load(some, _FLOAT, a["x"], i), low, high), scale)
        if not is_even:
            x = some.binary("fadd", _FLOAT, x, some.constant(_FLOAT, 0.5))
        x = some.intrinsic("roundeven" if is_even else "floor", _FLOAT, x)
        store(some, _FLOAT, some.binary("fmul", _FLOAT, x, step), a["out"], i)

    return body


def _masked(e: Code, a: dict[str, str]) -> _Body:
    numbers = _numbers(e, a, 2)

    def body(some: Emitter, i: str) -> None:
        _keep_inside(some, a, load(some, _FLOAT, a["x"], i), numbers(some), i)

    return body


def _keep_inside(some: Emitter, a: dict[str, str], x: str, ends: list[str], i: str) -> str:
    """Writes the gradient, times 1 where x is between the ends, else times 0; the gradient."""
    dy = load(some, _FLOAT, a["dy"], i)
    inside = [some.compare(f"fcmp o{name}", _FLOAT, x, end) for name, end in zip(("ge", "le"), ends)]
    both = some.let(f"and {some.vector('i1')} {inside[0]}, {inside[1]}")
    store(some, _FLOAT, _times_where(some, both, dy), a["out"], i)
    return dy


def _times_where(some: Emitter, chosen: str, dy: str) -> str:
    """`dy` times 1 or 0, so that NaN and infinities stay and zeros have the signs of `dy`."""
    one, zero = some.constant(_FLOAT, 1), some.constant(_FLOAT, 0)
    return some.binary("fmul", _FLOAT, dy, some.select(chosen, _FLOAT, one, zero))


def _outside(some: Emitter, x: str, dy: str, ends: list[str]) -> list[str]:
    """The gradient where x is below the first end, and where it is above the last, as float64."""
    chosen = [some.compare(f"fcmp {name}", _FLOAT, x, end) for name, end in zip(("olt", "ogt"), ends)]
    return [some.convert(_times_where(some, each, dy), _FLOAT, "float64") for each in chosen]


def _passed(e: Code, a: dict[str, str]) -> tuple[_Body, Callable[[], None]]:
    numbers = _numbers(e, a, 2)
    kinds = {some.lanes: some.type("float64") for some in (e, e.one)}
    totals = {
        some.lanes: [e.variable(kinds[some.lanes], some.constant("float64", 0)) for _ in range(2)]
        for some in (e, e.one)
    }

    def body(some: Emitter, i: str) -> None:
        x, ends = load(some, _FLOAT, a["x"], i), numbers(some)
        dy, kind = _keep_inside(some, a, x, ends, i), kinds[some.lanes]
        for total, term in zip(totals[some.lanes], _outside(some, x, dy, ends)):
            e.set(kind, total, some.binary("fadd", "float64", e.get(kind, total), term))

    def finish() -> None:
        name = f"llvm.vector.reduce.fadd.v{e.lanes}f64"
        for i in range(2):
            parts = [e.get(kinds[lanes], totals[lanes][i]) for lanes in (1, e.lanes)]
            total = e.call(name, "double", [("double", parts[0]), (kinds[e.lanes], parts[1])])
            e.set("double", e.at(a["sums"], e.add(e.mul(a["me"], 2), i), "double"), total)

    return body, finish


def _quantize(e: Code, a: dict[str, str], kind: str) -> _Body:
    numbers = _numbers(e, a, 8)

    def body(some: Emitter, i: str) -> None:
        low, high, shift, scale, half, offset, lowest, highest = numbers(some)
        x = _bounded(some, load(some, _FLOAT, a["x"], i), low, high)
        for name, number in (("fsub", shift), ("fmul", scale), ("fsub", half)):
            x = some.binary(name, _FLOAT, x, number)
        x = some.binary("fsub", _FLOAT, _nearest(some, _FLOAT, x), offset)
        _put_whole(some, a, i, _bounded(some, x, lowest, highest), _FLOAT, kind)

    return body


def _at(some: Emitter, address: str, i: str, kind: str) -> str:
    return some.let(f"getelementptr {kind}, ptr {address}, i64 {i}")


def _put_whole(some: Emitter, a: dict[str, str], i: str, x: str, dtype: str, kind: str) -> None:
    """Writes whole numbers as integers."""
    whole = some.let(f"fptosi {some.type(dtype)} {x} to {some.vector('i32')}")
    if kind != "i32":
        whole = some.let(f"trunc {some.vector('i32')} {whole} to {some.vector(kind)}")
    some.do(f"store {some.vector(kind)} {whole}, ptr {_at(some, a['out'], i, kind)}, align 1")


def _integers(some: Emitter, a: dict[str, str], i: str, kind: str, is_signed: bool, wide: str) -> str:
    """The integers from place i on, as floats of a type."""
    given = some.let(f"load {some.vector(kind)}, ptr {_at(some, a['x'], i, kind)}, align 1")
    if kind != "i32":  # the processor converts no shorter ones
        name = "sext" if is_signed else "zext"
        given = some.let(f"{name} {some.vector(kind)} {given} to {some.vector('i32')}")
    return some.let(f"sitofp {some.vector('i32')} {given} to {some.type(wide)}")


def _multiples(e: Code, a: dict[str, str], kind: str, is_signed: bool) -> _Body:
    numbers = _numbers(e, a, 3)

    def body(some: Emitter, i: str) -> None:
        plus, times, rest = numbers(some)
        x = some.binary("fadd", _FLOAT, _integers(some, a, i, kind, is_signed, _FLOAT), plus)
        product = some.binary("fmul", _FLOAT, x, times)
        lost = some.intrinsic("fma", _FLOAT, x, times, some.negate(_FLOAT, product))
        lost = some.intrinsic("fma", _FLOAT, x, rest, lost)
        store(some, _FLOAT, some.binary("fadd", _FLOAT, product, lost), a["out"], i)

    return body


def _requantize(e: Code, a: dict[str, str], old: tuple[str, bool], new: str) -> _Body:
    wide = "float64"
    numbers = _numbers(e, a, 7, wide)

    def body(some: Emitter, i: str) -> None:
        lowest, step, low, new_step, offset, first, last = numbers(some)
        x = _integers(some, a, i, *old, wide)
        for name, number in (("fsub", lowest), ("fmul", step), ("fadd", low)):
            x = some.binary(name, wide, x, number)
        x = some.convert(some.convert(x, wide, _FLOAT), _FLOAT, wide)
        x = _nearest(some, wide, some.binary("fdiv", wide, x, new_step))
        x = _bounded(some, some.binary("fsub", wide, x, offset), first, last, wide)
        _put_whole(some, a, i, x, wide, new)

    return body


def _dequantize(e: Code, a: dict[str, str], types: tuple[str, bool, str]) -> _Body:
    kind, is_signed, wide = types
    numbers = _numbers(e, a, 3, wide)

    def body(some: Emitter, i: str) -> None:
        plus, times, end = numbers(some)
        x = _integers(some, a, i, kind, is_signed, wide)
        for operation, number in (("fadd", plus), ("fmul", times), ("fadd", end)):
            x = some.binary(operation, wide, x, number)
        store(some, _FLOAT, some.convert(x, wide, _FLOAT), a["out"], i)

    return body
