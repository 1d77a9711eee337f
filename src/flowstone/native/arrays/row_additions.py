"""Rows added to the rows of a table that indices name, or multiplied with them, by machine code, on a host.

The code for two types is compiled on a thread when it is first asked for; until then, and where there is no
native tier, `row_additions` is None. Indices are checked before anything is changed. Threads share the rows
of the table, and each takes those that go into its own, in their order: sums are ATen's, to the bit.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import torch

from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, when_asked, words_of
from flowstone.native.codegen.emitter import FLOATS, INTEGERS, KINDS, SIZES
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import load, store

__all__ = ["RowAdditions", "row_additions", "row_additions_code"]

WORDS = ("threads", "count", "limit", "columns")
_INSTRUCTIONS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div"}
PLACES = dict.fromkeys(_INSTRUCTIONS, ("notes", "indices", "rows", "table"))
"""`count` rows, and a table of `limit`, of so many columns. A note, 0 at first, becomes 1 if an index is out
of bounds. Integers are not divided."""


class RowAdditions:
    """The functions for types of the table and of the indices."""

    def __init__(self, dtype: str, index: str) -> None:
        lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
        self._library = CodeLibrary(lambda: row_additions_code(dtype, index, lanes), WORDS, _places_of(dtype))

    def __call__(self, table: torch.Tensor, indices: torch.Tensor, rows: torch.Tensor, how: str) -> bool:
        """Changes rows of the table by rows, as `how` of `PLACES` says; all are contiguous. False, with
        nothing changed, if an index is out of bounds."""
        count, note = indices.shape[0], ctypes.c_int64()
        has_team = rows.nbytes >= machine.current().profile.copies_team
        words = {
            "threads": torch.get_num_threads() if has_team else 1, "count": count,
            "limit": table.shape[0], "columns": rows.numel() // max(count, 1),
        }  # fmt: skip
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "indices": indices, "rows": rows, "table": table
        }  # fmt: skip
        self._library.call(how, words, places)
        return not note.value


@functools.cache
def _asked(dtype: str, index: str) -> Callable[[], RowAdditions | None]:
    return when_asked(lambda: RowAdditions(dtype, index))


@functools.cache
def _names(*types: torch.dtype) -> tuple[str, str] | None:
    """What types of the table and of the indices are called; None where there is no code."""
    dtype, index = (dtypes.from_torch(each).name for each in types)
    return (dtype, index) if dtype in FLOATS | INTEGERS and index in ("int32", "int64") else None


def row_additions(dtype: torch.dtype, index: torch.dtype) -> RowAdditions | None:
    """What adds rows of a type by indices; None if it is not there, or not yet."""
    names = _names(dtype, index)
    return None if names is None else _asked(*names)()


# ---- text


def row_additions_code(dtype: str, index: str, lanes: int) -> str:
    """LLVM's text, by vectors of so many lanes."""
    declarations: dict[str, str] = {}
    parts: list[str] = []
    for name in _places_of(dtype):
        instruction = f"f{_INSTRUCTIONS[name]}" if dtype in FLOATS else _INSTRUCTIONS[name]
        parts.append(_some(name, instruction, dtype, index, lanes, declarations))
        e = Code(name, ["ptr a"], 1, declarations, is_public=True)
        a = places_of(e, PLACES[name])
        words = words_of(e, a["words"], WORDS)
        fits = e.variable("i1", "true")
        with e.loop(0, words["count"]) as i:
            inside = e.within(_place(e, index, a["indices"], i), words["limit"])
            e.set("i1", fits, e.let(f"and i1 {e.get('i1', fits)}, {inside}"))
        is_bad = e.let(f"xor i1 {e.get('i1', fits)}, true")
        e.set("i64", a["notes"], e.let(f"zext i1 {is_bad} to i64"))
        with e.when(e.get("i1", fits)):
            share(e, f"{name}_some")
        parts.append(e.text())
    return "\n".join([*declarations.values(), *parts])


def _places_of(dtype: str) -> dict[str, tuple[str, ...]]:
    return {name: taken for name, taken in PLACES.items() if dtype in FLOATS or name != "divide"}


def _place(e: Code, index: str, indices: str, i: str) -> str:
    kind = KINDS[index]
    return e.one.convert(e.get(kind, e.at(indices, i, kind)), index, "int64")


def _some(
    name: str, instruction: str, dtype: str, index: str, lanes: int, declarations: dict[str, str]
) -> str:
    """What one thread does."""
    e = Code(f"{name}_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    columns, kind = words["columns"], KINDS[dtype]
    _, start, end = my_part(e, words["limit"])
    with e.loop(0, words["count"]) as i:
        place = _place(e, index, a["indices"], i)
        with e.when(e.within(e.sub(place, start), e.sub(end, start))):
            row, target = (
                e.at(a[at], e.mul(number, columns), kind) for at, number in (("rows", i), ("table", place))
            )
            for j, [mask] in e.vectors(columns):
                old, more = load(e, dtype, target, j, mask), load(e, dtype, row, j, mask)
                store(e, dtype, e.binary(instruction, dtype, old, more), target, j, mask)
    return e.text()
