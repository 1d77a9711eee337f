"""LLVM's text for a program's statements whose places are data: rows and windows, and sums of segments.

| statement | operands | attributes | result |
| --- | --- | --- | --- |
| Rows | x, indices | rows, inner | row by row, those of x [rows, inner] that the indices say |
| Rows | x, indices | outer, times … | the same of each x [outer, rows, inner], so often by the same |
| Tuples | x, indices | sizes, inner | the same of x [*sizes, inner], by an index for each of the sizes |
| Window | x, begins | sizes, strides, limits | of these sizes, from where the begins say |
| PutWindow | x, begins | sizes, strides, limits | what it is, but there x |
| PutRows | y, x, places | kind, inner | y, whose rows there are x's, or combined with them |
| ReverseParts | x, lengths | sizes, strides, batch, sequence | x with the first parts of rows turned round |
| Segments | x, ids | kind, segments, inner | [segments, inner]: rows of x with an id, reduced |

A window's begins are one integer an axis, at most the limits; `strides` are those of x, or of what x is put
into. `sizes` of
ReverseParts are those of x up to the later of the axes `batch`, of which each index has its length, and
`sequence`, along which so many elements are turned round. A program fails where an index, an end, a length or
an id is out of range; rows whose id is negative belong to no segment. Sums are in the order of the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.native.codegen.emitter import FLOATS, KINDS, SIZES
from flowstone.native.numerics.elements import ELEMENTS
from flowstone.native.programs.programs import Statement
from flowstone.native.programs.writer import Writer

__all__ = ["KINDS_OF_ROWS", "KINDS_OF_SEGMENTS", "STATEMENTS", "index_of"]

KINDS_OF_SEGMENTS = {"Sum": ("Add", 0), "Prod": ("Mul", 1), "Max": ("Maximum", -1), "Min": ("Minimum", 1)}
"""How segments are reduced: an operation by element, and what an empty segment is; for extremes if that is
the least or the largest number."""
KINDS_OF_ROWS = {"Update": "", "Add": "Add", "Sub": "Sub", "Max": "Maximum", "Min": "Minimum"}
"""How rows are put onto others: an operation by element, or none."""


def index_of(writer: Writer, value: int, i: str) -> str:
    """An integer of a value as an index of 64 bits."""
    found, dtype = writer.load(value, i), writer.values[value].dtype
    return found if dtype == "int64" else writer.scalars.let(f"sext {KINDS[dtype]} {found} to i64")


def _rows(writer: Writer, each: Statement) -> None:
    (x, indices), size = each.operands, dict(each.attributes)
    let, inner, outer = writer.scalars.let, size["inner"], size.get("outer", 1)
    rows, times = size["rows"], size.get("times", 1)
    own = writer.values[indices].size * times // outer  # indices of each

    def one(i: str) -> None:
        place = i
        if outer != 1:
            which = let(f"udiv i64 {i}, {own}")
            first = let(f"mul i64 {let(f'udiv i64 {which}, {times}')}, {own}")
            place = let(f"add i64 {first}, {let(f'urem i64 {i}, {own}')}")
        index = index_of(writer, indices, place)
        writer.require(let(f"icmp ult i64 {index}, {rows}"))
        if outer != 1:
            index = let(f"add i64 {index}, {let(f'mul i64 {which}, {rows}')}")
        if inner == 1:
            writer.store(each.results[0], writer.load(x, index), i)
            return
        source, target = let(f"mul i64 {index}, {inner}"), let(f"mul i64 {i}, {inner}")
        count = inner * SIZES[writer.values[x].dtype]
        writer.copy_bytes(writer.element(each.results[0], target), writer.element(x, source), count)

    writer.for_each(own * outer, one)


def _tuples(writer: Writer, each: Statement) -> None:
    (x, indices), (result,), size = each.operands, each.results, dict(each.attributes)
    let, inner, sizes = writer.scalars.let, size["inner"], size["sizes"]
    count = inner * SIZES[writer.values[x].dtype]

    def one(i: str) -> None:
        first, place = let(f"mul i64 {i}, {len(sizes)}"), "0"
        for axis, n in enumerate(sizes):
            index = index_of(writer, indices, let(f"add i64 {first}, {axis}"))
            writer.require(let(f"icmp ult i64 {index}, {n}"))
            place = let(f"add i64 {let(f'mul i64 {place}, {n}')}, {index}")
        source, target = let(f"mul i64 {place}, {inner}"), let(f"mul i64 {i}, {inner}")
        writer.copy_bytes(writer.element(result, target), writer.element(x, source), count)

    writer.for_each(writer.values[result].size // inner, one)


def _window(writer: Writer, each: Statement) -> None:
    (x, begins), (result,), attributes = each.operands, each.results, dict(each.attributes)
    let, sizes, strides = writer.scalars.let, attributes["sizes"], attributes["strides"]
    start = "0"
    for axis, (limit, stride) in enumerate(zip(attributes["limits"], strides)):
        begin = index_of(writer, begins, str(axis))
        writer.require(let(f"icmp ule i64 {begin}, {limit}"))
        start = let(f"add i64 {start}, {let(f'mul i64 {begin}, {stride}')}")
    row, outer = sizes[-1] * SIZES[writer.values[x].dtype], sizes[:-1]

    def along(axis: int, source: str, target: str) -> None:
        if axis == len(outer):
            if each.op == "PutWindow":
                writer.copy_bytes(writer.element(result, source), writer.element(x, target), row)
            else:
                writer.copy_bytes(writer.element(result, target), writer.element(x, source), row)
            return
        inner = math.prod(sizes[axis + 1 :])

        def one(i: str) -> None:
            there = let(f"add i64 {source}, {let(f'mul i64 {i}, {strides[axis]}')}")
            along(axis + 1, there, let(f"add i64 {target}, {let(f'mul i64 {i}, {inner}')}"))

        writer.for_each(outer[axis], one)

    along(0, start, "0")


def _reverse_parts(writer: Writer, each: Statement) -> None:
    (x, lengths), (result,), attributes = each.operands, each.results, dict(each.attributes)
    let, sizes, strides = writer.scalars.let, attributes["sizes"], attributes["strides"]
    batch, sequence = attributes["batch"], attributes["sequence"]
    most, row = sizes[sequence], strides[-1] * SIZES[writer.values[x].dtype]

    def certain(i: str) -> None:
        writer.require(let(f"icmp ule i64 {index_of(writer, lengths, i)}, {most}"))

    def along(axis: int, target: str, places: tuple[str, ...]) -> None:
        if axis < len(sizes):
            writer.for_each(
                sizes[axis],
                lambda i: along(
                    axis + 1, let(f"add i64 {target}, {let(f'mul i64 {i}, {strides[axis]}')}"), (*places, i)
                ),
            )
            return
        here, end = places[sequence], index_of(writer, lengths, places[batch])
        turned = let(f"sub i64 {let(f'sub i64 {end}, 1')}, {here}")
        is_inside = let(f"icmp slt i64 {here}, {end}")
        there = let(f"select i1 {is_inside}, i64 {turned}, i64 {here}")
        step = let(f"mul i64 {let(f'sub i64 {there}, {here}')}, {strides[sequence]}")
        source = let(f"add i64 {target}, {step}")
        if strides[-1] == 1:
            writer.store(result, writer.load(x, source), target)
        else:
            writer.copy_bytes(writer.element(result, target), writer.element(x, source), row)

    writer.for_each(sizes[batch], certain)
    along(0, "0", ())


def _segments(writer: Writer, each: Statement) -> None:
    (x, ids), (result,), size = each.operands, each.results, dict(each.attributes)
    let, inner, dtype = writer.scalars.let, size["inner"], writer.values[x].dtype
    combine, nothing = KINDS_OF_SEGMENTS[size["kind"]]
    is_extreme = size["kind"] in ("Max", "Min")
    first = writer.scalars.constant(dtype, _limit(dtype, nothing) if is_extreme else nothing)
    writer.for_each(writer.values[result].size, lambda i: writer.store(result, first, i))

    def one(i: str) -> None:
        index, inside, after = index_of(writer, ids, i), writer.label(), writer.label()
        writer.require(let(f"icmp slt i64 {index}, {size['segments']}"))
        counts = let(f"icmp sge i64 {index}, 0")
        writer.lines += [f" br i1 {counts}, label %{inside}, label %{after}", f"{inside}:"]
        source, target = let(f"mul i64 {i}, {inner}"), let(f"mul i64 {index}, {inner}")

        def number(j: str) -> None:
            place = let(f"add i64 {target}, {j}")
            pair = [writer.load(result, place), writer.load(x, let(f"add i64 {source}, {j}"))]
            writer.store(result, ELEMENTS[combine].emit(writer.scalars, dtype, pair, {}), place)

        writer.for_each(inner, number)
        writer.begin(after)

    writer.for_each(writer.values[ids].size, one)


def _limit(dtype: str, sign: int) -> Any:
    """The least, or the largest, finite number of a type."""
    limits: Any = np.finfo(dtype) if dtype in FLOATS else np.iinfo(dtype)
    return np.asarray(limits.min if sign < 0 else limits.max).item()


def _put_rows(writer: Writer, each: Statement) -> None:
    (y, x, places), (result,), size = each.operands, each.results, dict(each.attributes)
    let, inner, dtype = writer.scalars.let, size["inner"], writer.values[x].dtype
    combine, rows = KINDS_OF_ROWS[size["kind"]], writer.values[result].size // size["inner"]
    writer.copy(result, y)

    def one(i: str) -> None:
        index = index_of(writer, places, i)
        writer.require(let(f"icmp ult i64 {index}, {rows}"))
        source, target = let(f"mul i64 {i}, {inner}"), let(f"mul i64 {index}, {inner}")

        def number(j: str) -> None:
            place = let(f"add i64 {target}, {j}")
            pair = [writer.load(result, place), writer.load(x, let(f"add i64 {source}, {j}"))]
            writer.store(result, ELEMENTS[combine].emit(writer.scalars, dtype, pair, {}), place)

        if combine:
            writer.for_each(inner, number)
        else:
            count = inner * SIZES[dtype]
            writer.copy_bytes(writer.element(result, target), writer.element(x, source), count)

    writer.for_each(writer.values[places].size, one)


STATEMENTS: dict[str, Callable[[Writer, Statement], None]] = {
    "Rows": _rows,
    "Tuples": _tuples,
    "Window": _window,
    "PutWindow": _window,
    "PutRows": _put_rows,
    "ReverseParts": _reverse_parts,
    "Segments": _segments,
}
"""How statements with places that are data are written."""
