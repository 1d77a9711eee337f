"""LLVM's text for a program's statements whose places are data: rows that are picked, and sums of segments.

| statement | operands | attributes | result |
| --- | --- | --- | --- |
| Rows | x, indices | rows, inner | row by row, those of x [rows, inner] that the indices say |
| Segments | x, ids | kind (Sum or Prod), segments, inner | [segments, inner]: rows of x with an id, reduced |

A program fails where an index or an id is out of range; rows whose id is negative belong to no segment. Sums
are in the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flowstone.native.elements import ELEMENTS
from flowstone.native.emitter import KINDS, SIZES
from flowstone.native.programs import Statement

if TYPE_CHECKING:
    from flowstone.native.program_code import Writer

__all__ = ["KINDS_OF_SEGMENTS", "STATEMENTS"]

KINDS_OF_SEGMENTS = {"Sum": ("Add", 0), "Prod": ("Mul", 1)}
"""How segments are reduced: an operation by element, and what an empty segment is."""


def _index(writer: Writer, value: int, i: str) -> str:
    found, dtype = writer.load(value, i), writer.values[value].dtype
    return found if dtype == "int64" else writer.scalars.let(f"sext {KINDS[dtype]} {found} to i64")


def _rows(writer: Writer, each: Statement) -> None:
    (x, indices), size = each.operands, dict(each.attributes)
    let, inner = writer.scalars.let, size["inner"]

    def one(i: str) -> None:
        index = _index(writer, indices, i)
        writer.require(let(f"icmp ult i64 {index}, {size['rows']}"))
        if inner == 1:
            writer.store(each.results[0], writer.load(x, index), i)
            return
        source, target = let(f"mul i64 {index}, {inner}"), let(f"mul i64 {i}, {inner}")
        count = inner * SIZES[writer.values[x].dtype]
        writer.copy_bytes(writer.element(each.results[0], target), writer.element(x, source), count)

    writer.for_each(writer.values[indices].size, one)


def _segments(writer: Writer, each: Statement) -> None:
    (x, ids), (result,), size = each.operands, each.results, dict(each.attributes)
    let, inner, dtype = writer.scalars.let, size["inner"], writer.values[x].dtype
    combine, nothing = KINDS_OF_SEGMENTS[size["kind"]]
    first = writer.scalars.constant(dtype, nothing)
    writer.for_each(writer.values[result].size, lambda i: writer.store(result, first, i))

    def one(i: str) -> None:
        index, inside, after = _index(writer, ids, i), writer.label(), writer.label()
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


STATEMENTS: dict[str, Callable[[Writer, Statement], None]] = {"Rows": _rows, "Segments": _segments}
"""How statements with places that are data are written."""
