"""Strings cut, split and mapped byte by byte by machine code: CPython's objects of bytes are read and made
where they are, with Python's lock.

`ops/strings/substrings.py`, `splitting.py` and `letters.py` have the same by NumPy and Python. The code is
compiled on a thread when it is first asked for; until then, and where there is no native tier, `text_pieces`
is None.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from flowstone.framework.machine.string_code import Texts
from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.codegen.structured import Code
from flowstone.native.strings.byte_strings import (
    STRING_DECLARATIONS,
    are_as_expected,
    bytes_of,
    each_string,
    items_of,
    put_string,
)

__all__ = ["TextPieces", "text_pieces", "text_pieces_code"]

_PARAMETERS = ["ptr objects", "i64 count", "ptr type", "ptr first", "ptr second", "ptr out", "ptr failed"]
_NAMES = ("cut", "cut_characters", "map", "measure", "split")


def text_pieces_code() -> str:
    """The text of the functions; ``failed`` becomes 0 if all strings were read."""
    cuts = (_cut_code(), _cut_characters_code())
    return "\n".join([STRING_DECLARATIONS, *cuts, _map_code(), *map(_split_code, ("measure", "split"))])


def _cut_code() -> str:
    """``first``: where the part of each string begins; ``second``: how many bytes it has; both i64."""
    e = Code("cut", _PARAMETERS, 1, {}, is_public=True)
    with each_string(e, "%failed") as (i, text, length, leave):
        place, size = (e.get("i64", e.at(each, i, "i64")) for each in ("%first", "%second"))
        from_end = e.let(f"icmp slt i64 {place}, 0")
        start = e.let(f"select i1 {from_end}, i64 {e.add(place, length)}, i64 {place}")
        leave(e.let(f"icmp ugt i64 {start}, {length}"))
        rest = e.sub(length, start)
        found = e.let(f"select i1 {e.let(f'icmp ult i64 {size}, {rest}')}, i64 {size}, i64 {rest}")
        put_string(e, e.at("%out", i, "ptr"), e.at(bytes_of(e, text), start, "i8"), found, leave)
    return e.text()


def _cut_characters_code() -> str:
    """The same by characters of UTF-8, of bytes with those after them that can only continue one. A start
    from the end with a negative size is refused, else such a part is empty."""
    e = Code("cut_characters", _PARAMETERS, 1, {}, is_public=True)
    with each_string(e, "%failed") as (i, text, length, leave):
        begin, count = bytes_of(e, text), e.variable("i64", "0")
        with e.loop(0, length) as at:
            e.set("i64", count, e.add(e.get("i64", count), _begins(e, begin, at)))
        characters = e.get("i64", count)
        place, size = (e.get("i64", e.at(each, i, "i64")) for each in ("%first", "%second"))
        from_end = e.let(f"icmp slt i64 {place}, 0")
        leave(e.let(f"and i1 {from_end}, {e.let(f'icmp slt i64 {size}, 0')}"))
        first = e.let(f"select i1 {from_end}, i64 {e.add(place, characters)}, i64 {place}")
        leave(e.let(f"icmp ugt i64 {first}, {characters}"))
        last = e.add(first, e.least(e.most(size, 0), e.sub(characters, first)))
        seen, start, stop = (e.variable("i64", each) for each in ("0", length, length))
        with e.loop(0, length) as at:
            number = e.get("i64", seen)
            is_first = e.let(f"icmp ne i64 {_begins(e, begin, at)}, 0")
            for wanted, found in ((first, start), (last, stop)):
                is_it = e.let(f"and i1 {is_first}, {e.let(f'icmp eq i64 {number}, {wanted}')}")
                e.set("i64", found, e.let(f"select i1 {is_it}, i64 {at}, i64 {e.get('i64', found)}"))
            e.set("i64", seen, e.add(number, e.let(f"zext i1 {is_first} to i64")))
        offset = e.get("i64", start)
        bytes_of_part = e.sub(e.get("i64", stop), offset)
        put_string(e, e.at("%out", i, "ptr"), e.at(begin, offset, "i8"), bytes_of_part, leave)
    return e.text()


def _begins(e: Code, begin: str, at: str) -> str:
    """1 where a byte begins a character, as the first of a string always does, else 0: i64."""
    high = e.let(f"and i8 {e.get('i8', e.at(begin, at, 'i8'))}, -64")
    is_first = e.let(f"or i1 {e.let(f'icmp ne i8 {high}, -128')}, {e.let(f'icmp eq i64 {at}, 0')}")
    return e.let(f"zext i1 {is_first} to i64")


def _map_code() -> str:
    """``first``: the table, of i8."""
    e = Code("map", _PARAMETERS, 1, {}, is_public=True)
    with each_string(e, "%failed") as (i, text, length, leave):
        start = bytes_of(e, text)
        made = bytes_of(e, put_string(e, e.at("%out", i, "ptr"), "null", length, leave))
        with e.loop(0, length) as at:
            e.set("i8", e.at(made, at, "i8"), _entry(e, e.at(start, at, "i8")))
    return e.text()


def _split_code(name: str) -> str:
    """``first``: of i8, 1 for delimiters; ``second``: of i64, the least size of a part. ``out``: of
    ``measure`` the number of each string's parts, i64; of ``split`` the parts."""
    e = Code(name, _PARAMETERS, 1, {}, is_public=True)
    out = e.variable("ptr", "%out")
    with each_string(e, "%failed") as (_, text, length, leave):
        begin, at, parts = bytes_of(e, text), e.variable("i64", "0"), e.variable("i64", "0")
        start = e.variable("i64", "0")
        is_empty = e.let(f"icmp eq i64 {length}, 0")
        with e.repeat() as end:
            end(is_empty)
            place = e.get("i64", at)
            end(e.let(f"icmp sgt i64 {place}, {length}"))
            is_last = e.let(f"icmp eq i64 {place}, {length}")  # there a zero byte stands
            is_end = e.let(f"icmp ne i8 {_entry(e, e.at(begin, place, 'i8'))}, 0")
            with e.when(e.let(f"or i1 {is_end}, {is_last}")):
                first = e.get("i64", start)
                size = e.sub(place, first)
                with e.when(e.let(f"icmp sge i64 {size}, {e.get('i64', '%second')}")):
                    e.set("i64", parts, e.add(e.get("i64", parts), 1))
                    if name == "split":
                        to = e.get("ptr", out)
                        put_string(e, to, e.at(begin, first, "i8"), size, leave)
                        e.set("ptr", out, e.at(to, 1, "ptr"))
                e.set("i64", start, e.add(place, 1))
            e.set("i64", at, e.add(place, 1))
        if name == "measure":
            to = e.get("ptr", out)
            e.set("i64", to, e.get("i64", parts))
            e.set("ptr", out, e.at(to, 1, "i64"))
    return e.text()


def _entry(e: Code, place: str) -> str:
    """What the table has for the byte there."""
    byte = e.let(f"zext i8 {e.get('i8', place)} to i64")
    return e.get("i8", e.at("%first", byte, "i8"))


class TextPieces:
    """`string_code.TextPieces` by machine code."""

    def __init__(self) -> None:
        self._module = compiler.compiled(text_pieces_code(), list(_NAMES))
        kind = ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * len(_PARAMETERS))
        self._code = {name: kind(self._module.address(name)) for name in _NAMES}

    def parts(
        self,
        strings: Texts,
        starts: np.ndarray[Any, Any],
        sizes: np.ndarray[Any, Any],
        in_bytes: bool = True,
    ) -> np.ndarray[Any, Any] | None:
        first, second = (np.ascontiguousarray(each, np.int64) for each in (starts, sizes))
        name = "cut" if in_bytes else "cut_characters"
        return self._called(name, strings, first, second, np.empty(len(strings), object))

    def mapped(self, strings: Texts, table: bytes) -> np.ndarray[Any, Any] | None:
        entries = np.frombuffer(table, np.uint8)
        return self._called("map", strings, entries, entries, np.empty(len(strings), object))

    def split(self, strings: Texts, delimiters: bytes, skip_empty: bool) -> tuple[Any, Any] | None:
        is_end, least = np.zeros(256, np.uint8), np.array([skip_empty], np.int64)
        is_end[np.frombuffer(delimiters, np.uint8)] = 1
        counts = self._called("measure", strings, is_end, least, np.empty(len(strings), np.int64))
        if counts is None:
            return None
        parts = self._called("split", strings, is_end, least, np.empty(int(counts.sum()), object))
        return None if parts is None else (parts, counts)

    def _called(
        self,
        name: str,
        strings: Texts,
        first: np.ndarray[Any, Any],
        second: np.ndarray[Any, Any],
        out: np.ndarray[Any, Any],
    ) -> np.ndarray[Any, Any] | None:
        failed = ctypes.c_int64()
        places = (*[each.ctypes.data for each in (first, second, out)], ctypes.addressof(failed))
        self._code[name](items_of(strings), len(strings), id(bytes), *places)
        return None if failed.value else out


text_pieces = when_asked(lambda: TextPieces() if are_as_expected() else None)
"""The machine code, if it is there by now."""
