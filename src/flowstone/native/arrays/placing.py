"""Rows put at the places that indices say, and permutations inverted, by machine code, on a host.

The code for a type of indices is compiled on a thread when it is first asked for; until then, and where there
is no native tier, `placing` is None. Rows are put where all places are in bounds; threads share the places,
not the rows, so that of rows for one place the last stays. Of a permutation they share the numbers: as many
places as numbers are all taken only if none is taken twice.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import torch

from flowstone.framework.machine import machine
from flowstone.native.codegen.code_library import CodeLibrary, my_part, places_of, share, when_asked, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["Placing", "placing", "placing_code"]

WORDS = ("threads", "count", "limit", "size")
PLACES = {"put": ("notes", "indices", "rows", "table"), "invert": ("notes", "indices", "table")}
"""`put` copies `count` rows of `size` bytes to a table of `limit` rows; `invert` writes to a table that is -1
everywhere. A note, 0 at first, becomes 1 if an index is out of bounds, or seen to be taken twice."""
_INDICES = {torch.int32: "i32", torch.int64: "i64"}
_UNITS = (32, 8, 1)  # bytes that are copied at once


class Placing:
    """The functions for a type of indices."""

    def __init__(self, index: str) -> None:
        self._library = CodeLibrary(lambda: placing_code(index), WORDS, PLACES)

    def put(self, table: torch.Tensor, indices: torch.Tensor, rows: torch.Tensor) -> bool:
        """Copies rows to the table; all are contiguous. False, with nothing changed, if an index is out of
        bounds."""
        count = indices.shape[0]
        note = ctypes.c_int64()
        has_team = rows.nbytes >= machine.current().profile.copies_team
        words = {
            "threads": torch.get_num_threads() if has_team else 1, "count": count,
            "limit": table.shape[0], "size": rows.nbytes // max(count, 1),
        }  # fmt: skip
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "indices": indices, "rows": rows, "table": table
        }  # fmt: skip
        self._library.call("put", words, places)
        return not note.value

    def invert(self, indices: torch.Tensor) -> torch.Tensor | None:
        """The inverse of a permutation; None if the indices are none."""
        note, found = ctypes.c_int64(), torch.full_like(indices, -1, memory_format=torch.contiguous_format)
        has_team = len(indices) >= machine.current().profile.placed_team
        words = {"threads": torch.get_num_threads() if has_team else 1, "count": len(indices)}
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "indices": indices.contiguous(), "table": found
        }  # fmt: skip
        self._library.call("invert", words, places)
        if note.value or (has_team and int(found.amin()) < 0):  # two threads may take a place at once
            return None
        return found


@functools.cache
def _asked(index: str) -> Callable[[], Placing | None]:
    return when_asked(lambda: Placing(index))


def placing(index: torch.dtype | None) -> Placing | None:
    """What puts rows at places; None if it is not there, or not yet."""
    return _asked(_INDICES[index])() if index in _INDICES else None


# ---- text


def placing_code(index: str) -> str:
    """LLVM's text, of indices that LLVM calls so."""
    declarations: dict[str, str] = {}
    parts = [_put_some(index, declarations), _put(index, declarations)]
    parts += [_invert_some(index, declarations), _invert(declarations)]
    return "\n".join([*declarations.values(), *parts])


def _index(e: Code, index: str, indices: str, i: str) -> str:
    found = e.get(index, e.at(indices, i, index))
    return found if index == "i64" else e.let(f"sext {index} {found} to i64")


def _put(index: str, declarations: dict[str, str]) -> str:
    """The check, and then the work of all threads."""
    e = Code("put", ["ptr a"], 1, declarations, is_public=True)
    a = places_of(e, PLACES["put"])
    words = words_of(e, a["words"], WORDS)
    fits = e.variable("i1", "true")
    with e.loop(0, words["count"]) as i:
        inside = e.within(_index(e, index, a["indices"], i), words["limit"])
        e.set("i1", fits, e.let(f"and i1 {e.get('i1', fits)}, {inside}"))
    is_bad = e.let(f"xor i1 {e.get('i1', fits)}, true")
    e.set("i64", a["notes"], e.let(f"zext i1 {is_bad} to i64"))
    with e.when(e.get("i1", fits)):
        share(e, "put_some")
    return e.text()


def _put_some(index: str, declarations: dict[str, str]) -> str:
    """What one thread does: it copies the rows for its part of the table."""
    e = Code("put_some", ["ptr a"], 1, declarations)
    a = places_of(e, PLACES["put"])
    words = words_of(e, a["words"], WORDS)
    size = words["size"]
    _, start, end = my_part(e, words["limit"])
    ends = [e.mul(e.quotient(size, unit), unit) for unit in _UNITS]
    with e.loop(0, words["count"]) as i:
        place = _index(e, index, a["indices"], i)
        mine = e.within(e.sub(place, start), e.sub(end, start))
        with e.when(mine):
            source, target = (
                e.at(a[name], e.mul(number, size), "i8") for name, number in (("rows", i), ("table", place))
            )
            for first, last, unit in zip(["0", *ends], ends, _UNITS):
                with e.loop(first, last, unit) as j:
                    kind = f"<{unit} x i8>"
                    value = e.let(f"load {kind}, ptr {e.at(source, j, 'i8')}, align 1")
                    e.do(f"store {kind} {value}, ptr {e.at(target, j, 'i8')}, align 1")
    return e.text()


def _invert_some(index: str, declarations: dict[str, str]) -> str:
    """What one thread does: it writes its part of the numbers to their places."""
    e = Code("invert_some", ["ptr a"], 1, declarations)
    a = places_of(e, PLACES["invert"])
    count = words_of(e, a["words"], WORDS)["count"]
    fits = e.variable("i1", "true")
    _, start, end = my_part(e, count)
    with e.loop(start, end) as i:
        place = _index(e, index, a["indices"], i)
        inside = e.within(place, count)
        e.set("i1", fits, e.let(f"and i1 {e.get('i1', fits)}, {inside}"))
        with e.when(inside):
            # Stores wait for one another, loads do not: what is read first is near when it is written.
            before = e.get(index, e.at(a["table"], place, index))
            is_free = e.let(f"icmp eq {index} {before}, -1")
            e.set("i1", fits, e.let(f"and i1 {e.get('i1', fits)}, {is_free}"))
            number = i if index == "i64" else e.let(f"trunc i64 {i} to {index}")
            e.set(index, e.at(a["table"], place, index), number)
    with e.when(e.let(f"xor i1 {e.get('i1', fits)}, true")):
        e.set("i64", a["notes"], "1")
    return e.text()


def _invert(declarations: dict[str, str]) -> str:
    e = Code("invert", ["ptr a"], 1, declarations, is_public=True)
    share(e, "invert_some")
    return e.text()
