"""Distinct integers in the order in which they appear, by machine code on a host: one pass over them.

Numbers of a narrow range find their rank in a table of the range, others in a hash table, whose slots are
tried one after the other from that of the number on. The code for a type is compiled on a thread when it is
first asked for; until then, and where there is no native tier, `distinct` is None.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import torch

from flowstone.native.codegen.code_library import CodeLibrary, places_of, when_asked, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["Distinct", "distinct", "distinct_code"]

WORDS = ("count", "lowest", "shift", "mask")
"""How many numbers there are; what the table begins with; how much of a product is no slot, and the last
slot."""
PLACES = {
    "by_range": ("notes", "x", "table", "ranks", "places"),
    "by_hash": ("notes", "x", "table", "values", "ranks", "places"),
}
"""A table (int32) is -1 everywhere. `ranks` (int32) are those of all numbers, `places` (int64) where the
distinct ones appear first, `values` (int64) these themselves. A note becomes how many there are."""
_TYPES = {torch.int32: "i32", torch.int64: "i64"}
_MOST = 1 << 30  # numbers
_NARROW = 8  # entries of a range for each number, up to which it is a table
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)  # 2^64 by the golden ratio, as int64


class Distinct:
    """The functions for a type."""

    def __init__(self, kind: str) -> None:
        self._library = CodeLibrary(lambda: distinct_code(kind), WORDS, PLACES)

    def __call__(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Each number's rank among the distinct ones, int32, and where these appear first, int64; None for
        none, or too many numbers."""
        count = len(x)
        if not 0 < count < _MOST:
            return None
        lowest, highest = (int(end) for end in torch.aminmax(x))
        note, ranks = ctypes.c_int64(), torch.empty(count, dtype=torch.int32)
        places, words = torch.empty(count, dtype=torch.int64), {"count": count}
        given: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "x": x.contiguous(), "ranks": ranks, "places": places
        }  # fmt: skip
        if highest - lowest < _NARROW * count:
            table = torch.full((highest - lowest + 1,), -1, dtype=torch.int32)
            self._library.call("by_range", {**words, "lowest": lowest}, {**given, "table": table})
        else:
            bits = count.bit_length() + 1
            table = torch.full((1 << bits,), -1, dtype=torch.int32)
            words |= {"shift": 64 - bits, "mask": (1 << bits) - 1}
            values = torch.empty(count, dtype=torch.int64)
            self._library.call("by_hash", words, {**given, "table": table, "values": values})
        return ranks, places[: note.value]


@functools.cache
def _asked(kind: str) -> Callable[[], Distinct | None]:
    return when_asked(lambda: Distinct(kind))


def distinct(dtype: torch.dtype | None) -> Distinct | None:
    """The function for integers of a type; None if there is none, or not yet."""
    return _asked(_TYPES[dtype])() if dtype in _TYPES else None


# ---- text


def distinct_code(kind: str) -> str:
    """LLVM's text, of numbers of LLVM's type `kind`."""
    declarations: dict[str, str] = {}
    texts = [_function(name, kind, declarations) for name in PLACES]
    return "\n".join([*declarations.values(), *texts])


def _function(name: str, kind: str, declarations: dict[str, str]) -> str:
    e = Code(name, ["ptr a"], 1, declarations, is_public=True)
    a = places_of(e, PLACES[name])
    words = words_of(e, a["words"], WORDS)
    found, slot, rank = e.variable("i64", "0"), e.variable("i64", "0"), e.variable("i32", "0")
    with e.loop(0, words["count"]) as i:
        number = e.get(kind, e.at(a["x"], i, kind))
        number = number if kind == "i64" else e.let(f"sext {kind} {number} to i64")
        if name == "by_range":
            e.set("i64", slot, e.sub(number, words["lowest"]))
            e.set("i32", rank, e.get("i32", e.at(a["table"], e.get("i64", slot), "i32")))
        else:
            _find(e, a, words, number, (slot, rank))
        is_new = e.let(f"icmp slt i32 {e.get('i32', rank)}, 0")
        with e.when(is_new):
            n = e.get("i64", found)
            e.set("i32", rank, e.let(f"trunc i64 {n} to i32"))
            e.set("i32", e.at(a["table"], e.get("i64", slot), "i32"), e.get("i32", rank))
            e.set("i64", e.at(a["places"], n, "i64"), i)
            if name == "by_hash":
                e.set("i64", e.at(a["values"], n, "i64"), number)
            e.set("i64", found, e.add(n, 1))
        e.set("i32", e.at(a["ranks"], i, "i32"), e.get("i32", rank))
    e.set("i64", a["notes"], e.get("i64", found))
    return e.text()


def _find(e: Code, a: dict[str, str], words: dict[str, str], number: str, found: tuple[str, str]) -> None:
    """The slot of the number, and the rank that is there: -1 if it is free."""
    slot, rank = found
    e.set("i64", slot, e.let(f"lshr i64 {e.let(f'mul i64 {number}, {_GOLDEN}')}, {words['shift']}"))
    with e.repeat() as leave:
        now = e.get("i32", e.at(a["table"], e.get("i64", slot), "i32"))
        e.set("i32", rank, now)
        leave(e.let(f"icmp slt i32 {now}, 0"))
        value = e.get("i64", e.at(a["values"], e.let(f"sext i32 {now} to i64"), "i64"))
        leave(e.let(f"icmp eq i64 {value}, {number}"))
        e.set("i64", slot, e.let(f"and i64 {e.add(e.get('i64', slot), 1)}, {words['mask']}"))
