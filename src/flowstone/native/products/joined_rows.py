"""Rows of several tables side by side, as machine code: what gathers and a concatenation would copy twice.

`JoinedRows` says what a row of the result has, in order: *picked* rows of tables, by the columns of an array
of indices, and *parts*, the rows of other arrays. The code checks each index. Where one is out of bounds, the
function of Python that it stands for is called instead, and says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flowstone.framework.machine import machine
from flowstone.native.clusters.clusters import Array, Result
from flowstone.native.clusters.entry_points import TYPE_CODES, entry_code
from flowstone.native.clusters.machine_functions import MachineFunction
from flowstone.native.codegen.emitter import KINDS, SIZES
from flowstone.native.codegen.structured import Code

__all__ = ["TYPES", "JoinedRows", "Part", "Picked", "joined_rows", "joined_rows_code"]

TYPES = frozenset(TYPE_CODES)
"""The types, by name, that rows may have."""
_MEMCPY = "llvm.memcpy.p0.p0.i64"


class Picked(NamedTuple):
    """Rows of argument `table`, by `number` columns of argument `indices` from `column` on."""

    table: int
    indices: int
    column: int
    number: int


class Part(NamedTuple):
    """The rows of argument `rows`, which may lie apart."""

    rows: int


class JoinedRows(NamedTuple):
    """Each argument's type, rows and columns; what stands in a row of the result; that's rows and type."""

    arguments: tuple[tuple[str, int, int], ...]
    columns: tuple[Picked | Part, ...]
    rows: int
    dtype: str

    @property
    def width(self) -> int:
        """Of the result."""
        return sum(self.width_of(each) for each in self.columns)

    def width_of(self, each: Picked | Part) -> int:
        """How many columns of the result these are."""
        if isinstance(each, Part):
            return self.arguments[each.rows][2]
        return each.number * self.arguments[each.table][2]


def joined_rows(what: JoinedRows, otherwise: Callable[..., Any]) -> MachineFunction:
    """The function of the arguments; its result is a tuple of one."""
    return MachineFunction("joined_rows", what, lambda: joined_rows_code(what), otherwise)


def joined_rows_code(what: JoinedRows) -> str:
    """LLVM's text."""
    declarations = {_MEMCPY: f"declare void @{_MEMCPY}(ptr, ptr, i64, i1)"}
    e = Code("fill", ["ptr a", "ptr wrong"], 1, declarations)
    addresses = [e.pointer("%a", i) for i in range(len(what.arguments) + 1)]
    size, parts = SIZES[what.dtype], sorted({each.rows for each in what.columns if isinstance(each, Part)})
    pitches = len(addresses)  # behind them stands how far the rows of each part lie apart
    with e.loop(0, what.rows) as row:
        to = e.at(addresses[-1], e.mul(row, what.width * size), "i8")
        for each in what.columns:
            width = what.width_of(each) * size
            if isinstance(each, Part):
                pitch = e.mul(e.word("%a", pitches + parts.index(each.rows)), size)
                _copy(e, to, e.at(addresses[each.rows], e.mul(row, pitch), "i8"), width)
            else:
                _pick(e, what, each, (addresses[each.table], addresses[each.indices], row, to))
            to = e.at(to, width, "i8")
    run = [
        "define internal i32 @run(ptr %a) {",
        " %wrong = alloca i32",
        " store i32 0, ptr %wrong",
        " call void @fill(ptr %a, ptr %wrong)",
        " %code = load i32, ptr %wrong",
        " ret i32 %code",
        "}",
    ]
    arrays = [
        Array(dtype, (rows, columns), i in parts) for i, (dtype, rows, columns) in enumerate(what.arguments)
    ]
    result = Result(what.dtype, (what.rows, what.width))
    is_long = what.rows * what.width * size >= machine.current().profile.copies_unlocked
    entry = entry_code("joined_rows", arrays, [result], (), is_long, declarations, may_fail=True)
    return "\n".join([*declarations.values(), e.text(), *run, entry])


def _pick(e: Code, what: JoinedRows, each: Picked, places: tuple[str, str, str, str]) -> None:
    """Copies the rows that a row of indices names, and notes if one is no index."""
    table, indices, row, to = places
    _, height, columns = what.arguments[each.table]
    index_type, _, pitch = what.arguments[each.indices]
    kind, width = KINDS[index_type], columns * SIZES[what.dtype]
    first = e.at(indices, e.add(e.mul(row, pitch), each.column), kind)
    with e.loop(0, each.number) as i:
        index = e.get(kind, e.at(first, i, kind))
        if index_type != "int64":
            index = e.let(f"sext {kind} {index} to i64")
        fits = e.within(index, height)
        with e.when(fits):
            _copy(e, e.at(to, e.mul(i, width), "i8"), e.at(table, e.mul(index, width), "i8"), width)
        with e.when(e.let(f"xor i1 {fits}, true")):
            e.set("i32", "%wrong", "1")


def _copy(e: Code, to: str, source: str, size: int) -> None:
    e.do(f"call void @{_MEMCPY}(ptr {to}, ptr {source}, i64 {size}, i1 false)")
