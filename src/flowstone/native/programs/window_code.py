"""LLVM's text for sums of products over windows in programs: convolutions of small images, their gradients.

| statement | operands | attributes | result |
| --- | --- | --- | --- |
| Windows | x, y | rows, terms, n | at [i, j] the sum over t of x[row i's place + term t's place] y[t, j] |

`rows` and `terms` are walks over x: pairs (size, step), of which the last is the innermost. A block of the
result is as many sums as there are registers; each number has one sum, which begins at the first term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowstone.native.codegen.emitter import KINDS, SIZES
from flowstone.native.programs.programs import Statement
from flowstone.native.programs.sums_code import Sums
from flowstone.native.programs.writer import Writer

__all__ = ["WINDOWS", "Walk", "joined_walk"]

Walk = tuple[tuple[int, int], ...]


def joined_walk(walk: Sequence[tuple[int, int]]) -> Walk:
    """The same walk with as few dimensions as it needs, and at least one."""
    found: list[tuple[int, int]] = []
    for size, step in walk:
        if size == 1:
            continue
        if found and found[-1][1] == size * step:
            found[-1] = (found[-1][0] * size, step)
        else:
            found.append((size, step))
    return tuple(found) or ((1, 0),)


def _windows(writer: Writer, each: Statement) -> None:
    attributes = dict(each.attributes)
    count = attributes["rows"][-1][0]
    vectors = -(-attributes["n"] // writer.lanes)
    sums, widest = (24, 4) if writer.lanes == 16 else (12, 2)  # of 32 registers, of 16
    if SIZES[writer.values[each.results[0]].dtype] > 4:  # a vector is two registers
        sums, widest = sums // 2, widest // 2
    for first in range(0, vectors, widest):
        columns = range(first, min(first + widest, vectors))
        most = sums // len(columns)
        _lines(writer, each, columns, -(-count // -(-count // most)))


def _lines(writer: Writer, each: Statement, columns: range, tile: int) -> None:
    """Some vectors of all rows, so many rows at a time."""
    *outer, (count, step) = dict(each.attributes)["rows"]
    whole, rest = divmod(count, tile)

    def line(place: str, number: str) -> None:
        start = _times(writer, number, count)

        def block(i: str, rows: int = tile) -> None:
            at = _times(writer, i, tile)
            there = _plus(writer, place, _times(writer, at, step))
            _block(writer, each, there, _plus(writer, start, at), rows, columns)

        if whole == 1:
            block("0")
        else:
            writer.for_each(whole, block)
        if rest:
            block(str(whole), rest)

    _walked(writer, outer, line)


def _block(writer: Writer, each: Statement, place: str, row: str, rows: int, columns: range) -> None:
    """Neighbouring rows of the result, from `row` and `place` on, in some of its vectors."""
    attributes, (x, y) = dict(each.attributes), each.operands
    n, step, dtype = attributes["n"], attributes["rows"][-1][1], writer.values[x].dtype
    sums = Sums(writer, dtype, "Sum", [(r, c) for r in range(rows) for c in columns])

    def term(at: str, number: str) -> None:
        start = _times(writer, number, n)
        right = {c: writer.load_vector(y, _plus(writer, start, str(c * writer.lanes))) for c in columns}
        for r in range(rows):
            there = _plus(writer, _plus(writer, place, at), str(r * step))
            left = writer.splat_of(writer.load(x, there), KINDS[dtype])
            for c in columns:
                sums.add_product((r, c), left, right[c])

    _walked(writer, attributes["terms"], term)
    for r in range(rows):
        start = _times(writer, _plus(writer, row, str(r)), n)
        for c in columns:
            first = c * writer.lanes
            writer.store_vector(
                each.results[0], sums.get((r, c)), _plus(writer, start, str(first)), n - first
            )


def _walked(
    writer: Writer,
    walk: Sequence[tuple[int, int]],
    write: Callable[[str, str], None],
    place: str = "0",
    number: str = "0",
) -> None:
    """Has `write(place, number)` write what is done at each place of a walk."""
    if not walk:
        write(place, number)
        return
    (size, step), *rest = walk

    def one(i: str) -> None:
        there = _plus(writer, place, _times(writer, i, step))
        _walked(writer, rest, write, there, _plus(writer, _times(writer, number, size), i))

    if size == 1:
        one("0")
    else:
        writer.for_each(size, one)


def _plus(writer: Writer, a: str, b: str) -> str:
    if a.isdigit() and b.isdigit():
        return str(int(a) + int(b))
    if "0" in (a, b):
        return b if a == "0" else a
    return writer.scalars.let(f"add i64 {a}, {b}")


def _times(writer: Writer, a: str, b: int) -> str:
    if a.isdigit():
        return str(int(a) * b)
    return a if b == 1 else writer.scalars.let(f"mul i64 {a}, {b}")


WINDOWS: dict[str, Callable[[Writer, Statement], None]] = {"Windows": _windows}
"""How the statement is written."""
