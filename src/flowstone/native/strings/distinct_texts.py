"""Distinct strings numbered as they come, and found again, by machine code.

`ops/arrays/distinct_texts.py` has the same by Python's dictionaries. Here it is a hash table of fingerprints,
whose slots are tried one after the other. CPython's objects of bytes are read where they are, with Python's
lock. The code is compiled on a thread when it is first asked for; until then, and where there is no native
tier, `distinct_texts` is None.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.codegen.structured import Code
from flowstone.native.strings.byte_strings import OBJECT, are_as_expected, bytes_of, each_string, items_of
from flowstone.native.strings.string_hashes import Words, fingerprint

__all__ = ["DistinctTexts", "TextIndex", "distinct_texts", "distinct_texts_code"]

_TABLE = ["ptr table", "i64 mask", "ptr hashes", "ptr firsts"]
_GIVEN = ["ptr objects", "i64 count", "ptr type", *_TABLE, "ptr numbers", "ptr distinct", "ptr failed"]
_NAMES = ("number", "find")
_MOST = 1 << 30  # strings


def distinct_texts_code() -> str:
    """The text of ``number`` and ``find``.

    ``table`` (i32) has the numbers of distinct strings, or -1. By these numbers ``hashes`` has fingerprints
    and ``firsts`` the addresses of objects. ``numbers`` (i64) become those of all objects, where ``number``
    gives new strings new ones, and ``find`` -1; ``distinct`` becomes how many are new, ``failed`` 0 if all
    are bytes.
    """
    same = "declare i32 @memcmp(ptr, ptr, i64)"
    return "\n".join([same, *(_function(name) for name in _NAMES)])


def _function(name: str) -> str:
    e = Code(name, _GIVEN, 1, {}, is_public=True)
    new = e.variable("i64", "0")
    with each_string(e, "%failed") as (i, text, length, _):
        hashed = fingerprint(Words(e, bytes_of(e, text), length))
        slot, number = e.variable("i64", hashed), e.variable("i64", "-1")
        with e.repeat() as end:
            place = e.at("%table", e.let(f"and i64 {e.get('i64', slot)}, %mask"), "i32")
            entry = e.let(f"sext i32 {e.get('i32', place)} to i64")
            e.set("i64", number, entry)
            is_free = e.let(f"icmp slt i64 {entry}, 0")
            if name == "number":
                with e.when(is_free):
                    _add(e, place, text, hashed, number, new)
            end(is_free)
            e.set("i64", slot, e.let(f"add i64 {e.get('i64', slot)}, 1"))
            with e.when(e.let(f"icmp eq i64 {e.get('i64', e.at('%hashes', entry, 'i64'))}, {hashed}")):
                first = e.get("ptr", e.at("%firsts", entry, "ptr"))
                end(_are_equal(e, text, first, length))
        e.set("i64", e.at("%numbers", i, "i64"), e.get("i64", number))
    e.set("i64", "%distinct", e.get("i64", new))
    return e.text()


def _add(e: Code, place: str, text: str, hashed: str, number: str, new: str) -> None:
    """The string is a new one."""
    next_number = e.get("i64", new)
    e.set("i64", number, next_number)
    e.set("i32", place, e.let(f"trunc i64 {next_number} to i32"))
    e.set("i64", e.at("%hashes", next_number, "i64"), hashed)
    e.set("ptr", e.at("%firsts", next_number, "ptr"), text)
    e.set("i64", new, e.add(next_number, 1))


def _are_equal(e: Code, text: str, other: str, length: str) -> str:
    """Whether two objects, of which one has this length, have the same bytes."""
    equal = e.variable("i1", "false")
    of_other = e.get("i64", e.at(other, OBJECT["length"], "i8"))
    with e.when(e.let(f"icmp eq i64 {length}, {of_other}")):
        start, from_other = (bytes_of(e, each) for each in (text, other))
        order = e.let(f"call i32 @memcmp(ptr {start}, ptr {from_other}, i64 {length})")
        e.set("i1", equal, e.let(f"icmp eq i32 {order}, 0"))
    return e.get("i1", equal)


class DistinctTexts:
    """`string_code.DistinctTexts` by machine code."""

    def __init__(self) -> None:
        self._module = compiler.compiled(distinct_texts_code(), list(_NAMES))
        self.number, self.find = (
            ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * len(_GIVEN))(self._module.address(name))
            for name in _NAMES
        )

    def index(self, texts: list[bytes]) -> TextIndex | None:
        found = TextIndex(self, texts) if len(texts) < _MOST else None
        return None if found is None or found.numbers is None else found


class TextIndex:
    """`string_code.TextIndex` by machine code; its `numbers` are None where something is no bytes."""

    def __init__(self, code: DistinctTexts, texts: list[bytes]) -> None:
        self._code, self._texts = code, texts  # which live as long as their addresses are there
        size = 1 << (2 * len(texts) + 1).bit_length()
        self._table, self._hashes = np.full(size, -1, np.int32), np.empty(len(texts), np.int64)
        self._firsts = np.empty(len(texts), np.int64)
        self.numbers, self.distinct = self._called(code.number, texts)

    def find(self, texts: list[bytes]) -> np.ndarray[Any, Any] | None:
        return self._called(self._code.find, texts)[0]

    def _called(self, function: Any, texts: list[bytes]) -> tuple[np.ndarray[Any, Any] | None, int]:
        numbers, distinct, failed = np.empty(len(texts), np.int64), ctypes.c_int64(), ctypes.c_int64()
        table = (self._table.ctypes.data, len(self._table) - 1)
        places = (self._hashes.ctypes.data, self._firsts.ctypes.data, numbers.ctypes.data)
        notes = (ctypes.addressof(distinct), ctypes.addressof(failed))
        function(items_of(texts), len(texts), id(bytes), *table, *places, *notes)
        return None if failed.value else numbers, distinct.value


distinct_texts = when_asked(lambda: DistinctTexts() if are_as_expected() else None)
"""The machine code, if it is there by now."""
