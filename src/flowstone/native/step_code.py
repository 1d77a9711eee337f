"""LLVM's text of passes between numbers and the steps of quantisation, one number after the other.

Threads share the elements. Operations are each rounded, and in the order of ATen's kernels in
`ops/quantization`, so that the results are theirs.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.code_library import my_part, places_of, share, words_of
from flowstone.native.emitter import KINDS, SIZES, Emitter
from flowstone.native.structured import Code
from flowstone.native.vector_memory import in_all_lanes, load, store

__all__ = ["PLACES", "WORDS", "float_code", "integer_code"]

WORDS = ("threads", "count")
"""The whole numbers of a call: how many elements."""
PLACES = {
    "round": ("numbers", "x", "out"),
    "passed": ("numbers", "x", "dy", "out", "sums"),
    "quantize": ("numbers", "x", "out"),
    "dequantize": ("numbers", "x", "out"),
    "dequantize_exactly": ("numbers", "x", "out"),
}
"""The addresses that each function takes after that of the words, in order. `numbers` are float32, but for
`dequantize_exactly` float64:

==========  ============================================================================================
round       first, last, inverse, zero, step: ``floor((x between them - first) inverse - zero + ½) step``
passed      first, last: `dy` where `x` is between them; `sums` [threads, 2] float64 becomes those of `dy`
            below and above
quantize    low, high, shift, scale, half, offset, lowest, highest: the nearest whole number to
            ``(x between the first two - shift) scale - half``, minus the offset, between the last two
dequantize  a, b, c: ``(x + a) b + c``, as float32
==========  ============================================================================================
"""
_FLOAT = "float32"
_BELOW_HALF, _LARGE = 0.5 - 2.0**-25, 2.0**60
_Body = Callable[[Emitter, str], None]


def float_code(lanes: int) -> str:
    """The text of `round` and `passed`."""
    declarations: dict[str, str] = {}
    return _module({"round": _round, "passed": _passed}, lanes, declarations)


def integer_code(kind: str, is_signed: bool, lanes: int) -> str:
    """The text of the others, for integers that LLVM calls `kind`."""
    declarations: dict[str, str] = {}

    def quantize(e: Code, a: dict[str, str]) -> _Body:
        return _quantize(e, a, kind)

    def dequantize(wide: str) -> Callable[[Code, dict[str, str]], _Body]:
        return lambda e, a: _dequantize(e, a, (kind, is_signed, wide))

    makers = {
        "quantize": quantize, "dequantize": dequantize(_FLOAT), "dequantize_exactly": dequantize("float64")
    }  # fmt: skip
    return _module(makers, lanes, declarations)


def _module(
    makers: dict[str, Callable[[Code, dict[str, str]], _Body]], lanes: int, declarations: dict[str, str]
) -> str:
    parts = []
    for name, make in makers.items():
        e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
        a = places_of(e, PLACES[name])
        me, start, end = my_part(e, words_of(e, a["words"], WORDS)["count"])
        body = make(e, a | {"me": me})
        whole = e.add(start, e.mul(e.quotient(e.sub(end, start), lanes), lanes))
        with e.loop(start, whole, lanes) as i:
            body(e, i)
        with e.loop(whole, end) as i:
            body(e.one, i)
        parts.append(e.text())
        e = Code(name, ["ptr a"], lanes, declarations, is_public=True)
        share(e, f"{name}_some")
        parts.append(e.text())
    return "\n".join([*declarations.values(), *parts])


def _numbers(e: Code, a: dict[str, str], count: int, dtype: str = _FLOAT) -> Callable[[Emitter], list[str]]:
    """A function of an emitter: the numbers in all its lanes."""
    kind = KINDS[dtype]
    found = [e.get(kind, e.at(a["numbers"], i, kind)) for i in range(count)]
    wide = [in_all_lanes(e, kind, each) for each in found]
    return lambda some: found if some.lanes == 1 else wide


def _bounded(some: Emitter, x: str, low: str, high: str) -> str:
    """x between two numbers; NaN stays."""
    x = some.select(some.compare("fcmp olt", _FLOAT, x, low), _FLOAT, low, x)
    return some.select(some.compare("fcmp ogt", _FLOAT, x, high), _FLOAT, high, x)


def _round(e: Code, a: dict[str, str]) -> _Body:
    numbers = _numbers(e, a, 5)

    def body(some: Emitter, i: str) -> None:
        first, last, inverse, zero, step = numbers(some)
        x = _bounded(some, load(some, _FLOAT, a["x"], i), first, last)
        for name, number in (("fsub", first), ("fmul", inverse), ("fsub", zero)):
            x = some.binary(name, _FLOAT, x, number)
        x = some.intrinsic("floor", _FLOAT, some.binary("fadd", _FLOAT, x, some.constant(_FLOAT, 0.5)))
        store(some, _FLOAT, some.binary("fmul", _FLOAT, x, step), a["out"], i)

    return body


def _passed(e: Code, a: dict[str, str]) -> _Body:
    numbers = _numbers(e, a, 2)
    sums = e.at(a["sums"], e.mul(a["me"], 2), "double")

    def body(some: Emitter, i: str) -> None:
        ends = numbers(some)
        x, dy = (load(some, _FLOAT, a[name], i) for name in ("x", "dy"))
        zero, bits = some.constant(_FLOAT, 0), some.vector("i1")
        inside = [some.compare(f"fcmp o{name}", _FLOAT, x, end) for name, end in zip(("ge", "le"), ends)]
        both = some.let(f"and {bits} {inside[0]}, {inside[1]}")
        store(some, _FLOAT, some.select(both, _FLOAT, dy, zero), a["out"], i)
        if some.lanes == 1:
            _add_outside(e, x, dy, ends, sums)
            return
        apart = some.let(f"bitcast {bits} {both} to i{some.lanes}")
        with e.when(e.let(f"icmp ne i{some.lanes} {apart}, -1")), e.loop(0, some.lanes) as lane:
            parts = [e.let(f"extractelement {some.type(_FLOAT)} {each}, i64 {lane}") for each in (x, dy)]
            _add_outside(e, parts[0], parts[1], numbers(e.one), sums)

    return body


def _add_outside(e: Code, x: str, dy: str, ends: list[str], sums: str) -> None:
    """Adds a gradient to the sum of its end."""
    wide = e.let(f"fpext float {dy} to double")
    for i, name in enumerate(("olt", "ogt")):
        with e.when(e.one.compare(f"fcmp {name}", _FLOAT, x, ends[i])):
            place = e.at(sums, i, "double")
            e.set("double", place, e.let(f"fadd double {e.get('double', place)}, {wide}"))


def _quantize(e: Code, a: dict[str, str], kind: str) -> _Body:
    numbers = _numbers(e, a, 8)

    def body(some: Emitter, i: str) -> None:
        low, high, shift, scale, half, offset, lowest, highest = numbers(some)
        x = _bounded(some, load(some, _FLOAT, a["x"], i), low, high)
        for name, number in (("fsub", shift), ("fmul", scale), ("fsub", half)):
            x = some.binary(name, _FLOAT, x, number)
        part = some.binary("fmul", _FLOAT, x, some.constant(_FLOAT, _LARGE))
        ends = [some.constant(_FLOAT, sign * _BELOW_HALF) for sign in (-1, 1)]
        x = some.binary("fadd", _FLOAT, _bounded(some, part, ends[0], ends[1]), x)
        x = some.binary("fsub", _FLOAT, some.intrinsic("trunc", _FLOAT, x), offset)
        x = _bounded(some, x, lowest, highest)
        whole = some.let(f"fptosi {some.type(_FLOAT)} {x} to {some.vector('i32')}")
        if kind != "i32":
            whole = some.let(f"trunc {some.vector('i32')} {whole} to {some.vector(kind)}")
        some.do(f"store {some.vector(kind)} {whole}, ptr {e.at(a['out'], i, kind)}, align 1")

    return body


def _dequantize(e: Code, a: dict[str, str], types: tuple[str, bool, str]) -> _Body:
    kind, is_signed, wide = types
    numbers = _numbers(e, a, 3, wide)

    def body(some: Emitter, i: str) -> None:
        plus, times, end = numbers(some)
        size = SIZES[wide]
        given = some.let(f"load {some.vector(kind)}, ptr {e.at(a['x'], i, kind)}, align 1")
        name = "sitofp" if is_signed else "uitofp"
        x = some.let(f"{name} {some.vector(kind)} {given} to {some.type(wide)}")
        for operation, number in (("fadd", plus), ("fmul", times), ("fadd", end)):
            x = some.binary(operation, wide, x, number)
        store(some, _FLOAT, some.convert(x, wide, _FLOAT) if size > 4 else x, a["out"], i)

    return body
