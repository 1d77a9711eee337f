"""LLVM's text for a program's statements on whole arrays: products, reductions, copies, quotients.

| statement | operands | attributes | result |
| --- | --- | --- | --- |
| MatMul | a, b | m, k, n, turns | a b, of a [m, k] and b [k, n]; see `product_statements.py` |
| Reduce | x | kind, outer, size, inner | x [outer, size, inner] reduced along its middle |
| ArgMax, ArgMin | x | outer, size, inner | where along the middle the extreme is |
| Running | x | kind, outer, size, inner, exclusive, reverse | sums or products so far along the middle |
| Count | | | 0, 1, 2 … |
| Fill | x | | the scalar x everywhere |
| Set | x | | x, in memory that several statements set |
| Check | x | | fails where x does not hold |
| AtMost | | size, most | fails where the size is larger |
| Copy | x, perhaps an index | sizes, strides and first places in both; scale and limit of the index | |
| IntegerFloorDiv … | x, y | | each of one element or as many as the result; integers fail where y is 0 |

Sums are of one accumulator a lane, or four: their order differs from ATen's. Products are fused with sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flowstone.native.codegen.emitter import FLOATS, KINDS, SIZES
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.programs.open_sizes import is_open
from flowstone.native.programs.product_statements import PRODUCTS
from flowstone.native.programs.programs import Statement
from flowstone.native.programs.sums_code import Sums, combined
from flowstone.native.programs.window_code import WINDOWS
from flowstone.native.programs.writer import Writer, memory_kind

__all__ = ["STATEMENTS"]

_FEW_ADDED = 8  # vectors; of fewer one sum is kept


# ---- reductions


def _reduce(writer: Writer, each: Statement) -> None:
    size = dict(each.attributes)
    if size["inner"] != 1:
        _reduce_columns(writer, each, size)
    elif size["outer"] == 1:
        _reduce_row(writer, each, size, "0")
    else:
        writer.for_each(size["outer"], lambda o: _reduce_row(writer, each, size, o))


def _reduce_row(writer: Writer, each: Statement, size: dict[str, Any], row: str) -> None:
    """One number of a contiguous row."""
    (x,), kind, dtype = each.operands, size["kind"], writer.values[each.operands[0]].dtype
    start = row if row == "0" else writer.scalars.let(f"mul i64 {row}, {size['size']}")
    whole, rest = divmod(size["size"], writer.lanes)
    if is_open(whole):
        _reduce_open_row(writer, each, size, row, start)
        return
    number = ""
    if whole:
        parts = 4 if whole >= _FEW_ADDED else 1
        sums = Sums(writer, dtype, kind, range(parts))

        def several(i: str) -> None:
            for u in range(parts):
                place = writer.scalars.let(f"mul i64 {i}, {parts * writer.lanes}")
                place = writer.scalars.let(f"add i64 {place}, {start}")
                sums.add(u, writer.load_vector(x, writer.plus(place, u * writer.lanes)))

        writer.for_each(whole // parts, several)
        for u in range(whole % parts):
            place = writer.plus(start, (whole // parts * parts + u) * writer.lanes)
            sums.add(u, writer.load_vector(x, place))
        number = _across(writer, kind, dtype, sums.total(range(parts)))
    for i in range(rest):
        term = writer.load(x, writer.plus(start, whole * writer.lanes + i))
        number = combined(writer.scalars, kind, dtype, number, term) if number else term
    writer.store(each.results[0], _finished(writer, writer.scalars, size, dtype, number), row)


def _reduce_open_row(writer: Writer, each: Statement, size: dict[str, Any], row: str, start: str) -> None:
    """The same of a row whose size only the run knows: vectors, and then one number after the other."""
    (x,), kind, dtype = each.operands, size["kind"], writer.values[each.operands[0]].dtype
    whole, let = size["size"] // writer.lanes, writer.scalars.let
    sums, total = Sums(writer, dtype, kind, [0]), f"%total_{writer.label()}"

    def vector(i: str) -> None:
        sums.add(0, writer.load_vector(x, let(f"add i64 {start}, {let(f'mul i64 {i}, {writer.lanes}')}")))

    writer.for_each(whole, vector)
    writer.allocate(total, memory_kind(dtype))
    writer.store_to(dtype, _across(writer, kind, dtype, sums.get(0)), total)
    first = let(f"add i64 {start}, {whole * writer.lanes}")

    def one(i: str) -> None:
        term = writer.load(x, let(f"add i64 {first}, {i}"))
        number = combined(writer.scalars, kind, dtype, writer.load_from(dtype, total), term)
        writer.store_to(dtype, number, total)

    writer.for_each(size["size"] - whole * writer.lanes, one)
    number = _finished(writer, writer.scalars, size, dtype, writer.load_from(dtype, total))
    writer.store(each.results[0], number, row)


def _across(writer: Writer, kind: str, dtype: str, vector: str) -> str:
    """The lanes of a vector as one number."""
    width, e = writer.lanes, writer.vectors
    full = e.type(dtype)
    half = width // 2
    while half:
        order = [(i + half) % width for i in range(width)]
        places = ", ".join(f"i32 {i}" for i in order)
        other = e.let(f"shufflevector {full} {vector}, {full} poison, <{width} x i32> <{places}>")
        vector = combined(e, kind, dtype, vector, other)
        half //= 2
    return e.let(f"extractelement {full} {vector}, i32 0")


def _finished(writer: Writer, e: Any, size: dict[str, Any], dtype: str, number: str) -> str:
    if size["kind"] != "Mean":
        return number
    if is_open(size["size"]):
        count = writer.scalars.let(f"sitofp i64 {size['size']} to {KINDS[dtype]}")
        count = count if e is writer.scalars else writer.splat_of(count, KINDS[dtype])
    else:
        count = e.constant(dtype, size["size"])
    return str(e.binary("fdiv", dtype, number, count))


def _reduce_columns(writer: Writer, each: Statement, size: dict[str, Any]) -> None:
    """Vectors of neighbouring columns, each of which is reduced."""
    (x,), kind, dtype = each.operands, size["kind"], writer.values[each.operands[0]].dtype
    count, inner = size["size"], size["inner"]

    def one(o: str) -> None:
        begin = writer.scalars.let(f"mul i64 {o}, {count * inner}")
        out = writer.scalars.let(f"mul i64 {o}, {inner}")

        def vector(j: str) -> None:
            column = writer.scalars.let(f"mul i64 {j}, {writer.lanes}")
            sums = Sums(writer, dtype, kind, [0])

            def row(i: str) -> None:
                place = writer.scalars.let(f"add i64 {begin}, {column}")
                below = writer.scalars.let(f"mul i64 {i}, {inner}")
                sums.add(0, writer.load_vector(x, writer.scalars.let(f"add i64 {place}, {below}")))

            writer.for_each(count, row)
            total = _finished(writer, writer.vectors, size, dtype, sums.get(0))
            writer.store_vector(each.results[0], total, writer.scalars.let(f"add i64 {out}, {column}"))

        writer.for_each(-(-inner // writer.lanes), vector)

    writer.for_each(size["outer"], one)


def _place_of_extreme(writer: Writer, each: Statement) -> None:
    size, (x,) = dict(each.attributes), each.operands
    dtype, result = writer.values[x].dtype, writer.values[each.results[0]].dtype
    let, kind = writer.scalars.let, KINDS[dtype]
    order = ("ogt" if each.op == "ArgMax" else "olt") if dtype in FLOATS else (
        "sgt" if each.op == "ArgMax" else "slt"
    )  # fmt: skip
    compare = f"{'fcmp' if dtype in FLOATS else 'icmp'} {order} {kind}"
    worst = ""  # a NaN is never the extreme
    if dtype in FLOATS:
        worst = writer.scalars.constant(dtype, -math.inf if each.op == "ArgMax" else math.inf)
    best, place = f"%best_{writer.label()}", f"%place_{writer.label()}"
    writer.allocate(best, kind)
    writer.allocate(place, "i64", align=8)

    def one(o: str) -> None:
        outer, inner = let(f"udiv i64 {o}, {size['inner']}"), let(f"urem i64 {o}, {size['inner']}")
        base = let(f"mul i64 {outer}, {size['size'] * size['inner']}")
        base = let(f"add i64 {base}, {inner}")
        first = worst or writer.load(x, base)
        writer.lines += [f" store i64 0, ptr {place}", f" store {kind} {first}, ptr {best}"]

        def step(i: str) -> None:
            below = let(f"mul i64 {i}, {size['inner']}")
            at = let(f"add i64 {base}, {below}")
            number, so_far = writer.load(x, at), let(f"load {kind}, ptr {best}")
            better = let(f"{compare} {number}, {so_far}")
            now = let(f"select i1 {better}, {kind} {number}, {kind} {so_far}")
            where = let(f"select i1 {better}, i64 {i}, i64 {let(f'load i64, ptr {place}')}")
            writer.lines += [f" store {kind} {now}, ptr {best}", f" store i64 {where}, ptr {place}"]

        writer.for_each(size["size"], step)
        found = let(f"load i64, ptr {place}")
        writer.store(each.results[0], found if result == "int64" else let(f"trunc i64 {found} to i32"), o)

    writer.for_each(size["outer"] * size["inner"], one)


def _running(writer: Writer, each: Statement) -> None:
    """Sums or products so far along a dimension; of float32 in float64, as ATen's."""
    size, (x,), (result,) = dict(each.attributes), each.operands, each.results
    let, dtype, count, inner = writer.scalars.let, writer.values[x].dtype, size["size"], size["inner"]
    wide, combine = "float64" if dtype in FLOATS else dtype, "Mul" if size["kind"] == "Cumprod" else "Add"
    total = f"%total_{writer.label()}"
    writer.allocate(total, KINDS[wide], align=8)
    nothing = writer.scalars.constant(wide, int(combine == "Mul"))

    def one(o: str) -> None:
        outer, rest = let(f"udiv i64 {o}, {inner}"), let(f"urem i64 {o}, {inner}")
        base = let(f"add i64 {let(f'mul i64 {outer}, {count * inner}')}, {rest}")
        writer.lines.append(f" store {KINDS[wide]} {nothing}, ptr {total}")

        def step(i: str) -> None:
            i = let(f"sub i64 {count - 1}, {i}") if size["reverse"] else i
            place = let(f"add i64 {base}, {let(f'mul i64 {i}, {inner}')}")
            so_far = let(f"load {KINDS[wide]}, ptr {total}")
            number = writer.scalars.convert(writer.load(x, place), dtype, wide)
            now = ELEMENTS[combine].emit(writer.scalars, wide, [so_far, number], {})
            writer.lines.append(f" store {KINDS[wide]} {now}, ptr {total}")
            given = writer.scalars.convert(so_far if size["exclusive"] else now, wide, dtype)
            writer.store(result, given, place)

        writer.for_each(count, step)

    writer.for_each(size["outer"] * inner, one)


# ---- copies


def _copy(writer: Writer, each: Statement) -> None:
    attributes = dict(each.attributes)
    start = str(attributes["from_place"])
    if len(each.operands) > 1:
        index = writer.index(each.operands[1])
        below = writer.scalars.let(f"icmp slt i64 {index}, 0")
        if attributes["wraps"]:  # a negative index counts from the end
            high = writer.scalars.let(f"add i64 {index}, {attributes['limit']}")
            index = writer.scalars.let(f"select i1 {below}, i64 {high}, i64 {index}")
        writer.require(writer.scalars.let(f"icmp ult i64 {index}, {attributes['limit']}"))
        start = writer.plus(f"mul i64 {index}, {attributes['scale']}", int(start))
    _copy_along(writer, each, attributes, 0, start, str(attributes["to_place"]))


def _copy_along(
    writer: Writer, each: Statement, attributes: dict[str, Any], axis: int, source: str, target: str
) -> None:
    sizes, steps, own = attributes["sizes"], attributes["from_strides"], attributes["to_strides"]
    x, y = each.operands[0], each.results[0]
    if axis == len(sizes):
        writer.store(y, writer.load(x, source), target)
        return
    if axis == len(sizes) - 1 and steps[axis] == own[axis] == 1 and sizes[axis] != 1:
        size = writer.program.values[x]
        count = sizes[axis] * SIZES[size.dtype]
        writer.copy_bytes(writer.element(y, target), writer.element(x, source), count)
        return

    def one(i: str) -> None:
        there = writer.scalars.let(f"add i64 {source}, {writer.scalars.let(f'mul i64 {i}, {steps[axis]}')}")
        here = writer.scalars.let(f"add i64 {target}, {writer.scalars.let(f'mul i64 {i}, {own[axis]}')}")
        _copy_along(writer, each, attributes, axis + 1, there, here)

    writer.for_each(sizes[axis], one)


def _fill(writer: Writer, each: Statement) -> None:
    """The scalar everywhere."""
    value = writer.values[each.results[0]]
    number = writer.load(each.operands[0])
    writer.for_each(value.size, lambda i: writer.store(each.results[0], number, i))


def _count(writer: Writer, each: Statement) -> None:
    """0, 1, 2 … in the result."""
    value = writer.values[each.results[0]]

    def one(i: str) -> None:
        number = i if value.dtype == "int64" else writer.scalars.let(f"trunc i64 {i} to {KINDS[value.dtype]}")
        writer.store(each.results[0], number, i)

    writer.for_each(value.size, one)


def _set(writer: Writer, each: Statement) -> None:
    writer.copy(each.results[0], each.operands[0])


def _check(writer: Writer, each: Statement) -> None:
    writer.require(writer.load(each.operands[0]))


def _at_most(writer: Writer, each: Statement) -> None:
    """Fails where a size is larger than a number."""
    attributes = dict(each.attributes)
    writer.require(writer.scalars.let(f"icmp ule i64 {attributes['size']}, {attributes['most']}"))


# ---- quotients


_QUOTIENTS = ("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod")


def _quotient(writer: Writer, each: Statement) -> None:
    """Of integers fails where the divisor is 0, or the quotient is not in range."""
    let, dtype = writer.scalars.let, writer.values[each.results[0]].dtype
    kind = KINDS[dtype]

    def one(i: str) -> None:
        x, y = (writer.load(v, i if writer.values[v].size != 1 else "0") for v in each.operands)
        if dtype in FLOATS:
            writer.store(each.results[0], _remainder(writer, each.op, dtype, x, y), i)
            return
        writer.require(let(f"icmp ne {kind} {y}, 0"))
        writer.require(let(f"icmp ne {kind} {y}, -1"))
        quotient, rest = let(f"sdiv {kind} {x}, {y}"), let(f"srem {kind} {x}, {y}")
        if each.op.startswith("IntegerFloor"):
            differs = let(f"icmp slt {kind} {let(f'xor {kind} {rest}, {y}')}, 0")
            down = let(f"and i1 {let(f'icmp ne {kind} {rest}, 0')}, {differs}")
            less, more = let(f"sub {kind} {quotient}, 1"), let(f"add {kind} {rest}, {y}")
            quotient = let(f"select i1 {down}, {kind} {less}, {kind} {quotient}")
            rest = let(f"select i1 {down}, {kind} {more}, {kind} {rest}")
        writer.store(each.results[0], quotient if each.op.endswith("Div") else rest, i)

    size = writer.values[each.results[0]].size
    if size == 1:
        one("0")
    else:
        writer.for_each(size, one)


def _remainder(writer: Writer, op: str, dtype: str, x: str, y: str) -> str:
    """Of floating-point numbers, exactly; with the sign of the divisor if it is floored."""
    e = writer.scalars
    rest = e.binary("frem", dtype, x, y)
    if op != "IntegerFloorMod":
        return rest
    zero = e.constant(dtype, 0)
    signs = [e.compare("fcmp olt", dtype, each, zero) for each in (rest, y)]
    is_moved = e.binary(
        "and", "bool", e.compare("fcmp une", dtype, rest, zero), e.binary("xor", "bool", *signs)
    )
    return e.select(is_moved, dtype, e.binary("fadd", dtype, rest, y), rest)


STATEMENTS: dict[str, Callable[[Writer, Statement], None]] = {
    **PRODUCTS,
    **WINDOWS,
    "Reduce": _reduce,
    "Running": _running,
    "ArgMax": _place_of_extreme,
    "ArgMin": _place_of_extreme,
    "Copy": _copy,
    "Count": _count,
    "Fill": _fill,
    "Set": _set,
    "Check": _check,
    "AtMost": _at_most,
    **dict.fromkeys(
        (f"Integer{name}" for name in ("FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod")), _quotient
    ),
}
"""How statements on arrays are written."""
