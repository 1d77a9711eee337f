"""Many strings of bytes read and made by machine code: CPython's objects of them, as C code sees them.

A list is an array of addresses of objects. An object of the type bytes has its length and its bytes at fixed
offsets, which `are_as_expected` asks for. The code is called with Python's lock, for it makes objects. It is
compiled on a thread when it is first asked for; until then, and where there is no native tier, `byte_strings`
is None.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flowstone.framework.machine.string_code import Texts
from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.codegen.structured import Code

__all__ = [
    "OBJECT",
    "STRING_DECLARATIONS",
    "StringCode",
    "are_as_expected",
    "byte_strings",
    "bytes_of",
    "each_string",
    "items_of",
    "put_string",
    "string_code_text",
]

OBJECT = {"type": 8, "length": 16, "bytes": 32}
"""Offsets in an object of bytes."""
_TYPE, _LENGTH, _BYTES = OBJECT.values()
_ITEMS = 24  # in a list, of the address of its array

STRING_DECLARATIONS = """
declare ptr @PyBytes_FromStringAndSize(ptr, i64)
declare void @Py_DecRef(ptr)
"""
_TEXT = f"""
{STRING_DECLARATIONS}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define i64 @measure(ptr %objects, i64 %count, ptr %type, ptr %lengths) nounwind {{
entry:
 br label %head
head:
 %i = phi i64 [ 0, %entry ], [ %next, %body ]
 %total = phi i64 [ 0, %entry ], [ %sum, %body ]
 %more = icmp slt i64 %i, %count
 br i1 %more, label %look, label %done
look:
 %place = getelementptr ptr, ptr %objects, i64 %i
 %object = load ptr, ptr %place
 %at = getelementptr i8, ptr %object, i64 {_TYPE}
 %found = load ptr, ptr %at
 %fits = icmp eq ptr %found, %type
 br i1 %fits, label %body, label %strange
body:
 %where = getelementptr i8, ptr %object, i64 {_LENGTH}
 %length = load i64, ptr %where
 %to = getelementptr i64, ptr %lengths, i64 %i
 store i64 %length, ptr %to
 %sum = add i64 %total, %length
 %next = add i64 %i, 1
 br label %head
strange:
 ret i64 -1
done:
 ret i64 %total
}}

define i64 @pack(ptr %objects, i64 %count, ptr %lengths, ptr %starts, ptr %buffer) nounwind {{
entry:
 br label %head
head:
 %i = phi i64 [ 0, %entry ], [ %next, %body ]
 %at = phi i64 [ 0, %entry ], [ %after, %body ]
 %more = icmp slt i64 %i, %count
 br i1 %more, label %body, label %done
body:
 %place = getelementptr ptr, ptr %objects, i64 %i
 %object = load ptr, ptr %place
 %from = getelementptr i8, ptr %object, i64 {_BYTES}
 %where = getelementptr i64, ptr %lengths, i64 %i
 %length = load i64, ptr %where
 %start = getelementptr i64, ptr %starts, i64 %i
 store i64 %at, ptr %start
 %to = getelementptr i8, ptr %buffer, i64 %at
 call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %length, i1 false)
 %end = add i64 %at, %length
 %gap = getelementptr i8, ptr %buffer, i64 %end
 store i8 0, ptr %gap
 %after = add i64 %end, 1
 %next = add i64 %i, 1
 br label %head
done:
 ret i64 %at
}}

define i64 @cut(ptr %buffer, ptr %starts, ptr %lengths, i64 %count, ptr %objects) nounwind {{
entry:
 br label %head
head:
 %i = phi i64 [ 0, %entry ], [ %next, %keep ], [ %next, %drop ]
 %more = icmp slt i64 %i, %count
 br i1 %more, label %body, label %done
body:
 %start.at = getelementptr i64, ptr %starts, i64 %i
 %start = load i64, ptr %start.at
 %length.at = getelementptr i64, ptr %lengths, i64 %i
 %length = load i64, ptr %length.at
 %from = getelementptr i8, ptr %buffer, i64 %start
 %made = call ptr @PyBytes_FromStringAndSize(ptr %from, i64 %length)
 %failed = icmp eq ptr %made, null
 br i1 %failed, label %done, label %keep
keep:
 %to = getelementptr ptr, ptr %objects, i64 %i
 %before = load ptr, ptr %to
 store ptr %made, ptr %to
 %next = add i64 %i, 1
 %empty = icmp eq ptr %before, null
 br i1 %empty, label %head, label %drop
drop:
 call void @Py_DecRef(ptr %before)
 br label %head
done:
 ret i64 %i
}}
"""
_NAMES = {"measure": 4, "pack": 5, "cut": 5}  # functions, and how many words each takes


def string_code_text() -> str:
    """LLVM's text."""
    return _TEXT


class StringCode:
    """`string_code.ByteStrings` by machine code."""

    def __init__(self) -> None:
        self._module = compiler.compiled(string_code_text(), list(_NAMES))
        word = ctypes.c_int64
        self._measure, self._pack, self._cut = (
            ctypes.PYFUNCTYPE(word, *[word] * count)(self._module.address(name))
            for name, count in _NAMES.items()
        )

    def lengths(self, strings: Texts) -> np.ndarray[Any, Any] | None:
        lengths = np.empty(len(strings), np.int64)
        return lengths if self._measured(strings, lengths) >= 0 else None

    def _measured(self, strings: Texts, lengths: np.ndarray[Any, Any]) -> int:
        total: int = self._measure(items_of(strings), len(strings), id(bytes), lengths.ctypes.data)
        return total

    def packed(self, strings: Texts, room: int) -> tuple[Any, Any, Any] | None:
        lengths, starts = np.empty(len(strings), np.int64), np.empty(len(strings), np.int64)
        total = self._measured(strings, lengths)
        if total < 0:
            return None
        size = total + max(len(strings) - 1, 0)
        buffer = np.empty(size + max(room, 1), np.uint8)
        self._pack(
            items_of(strings), len(strings), lengths.ctypes.data, starts.ctypes.data, buffer.ctypes.data
        )
        buffer[size:] = 0
        return buffer, starts, lengths

    def pieces(self, buffer: Any, starts: Any, lengths: Any) -> np.ndarray[Any, Any]:
        starts, lengths = (np.ascontiguousarray(each, np.int64) for each in (starts, lengths))
        found = np.empty(len(starts), object)
        self._cut(buffer.ctypes.data, starts.ctypes.data, lengths.ctypes.data, len(starts), found.ctypes.data)
        return found


@contextlib.contextmanager
def each_string(e: Code, status: str) -> Iterator[tuple[str, str, str, Callable[[str], None]]]:
    """(number, object, length, leave) of each of ``%count`` objects at ``%objects``: what is written within
    reads it, and may leave all. `status` (i64) is 1 where it did, or something is not of the type ``%type``,
    else 0."""
    e.set("i64", status, "1")
    with e.repeat() as leave:
        with e.loop(0, "%count") as i:
            text = e.get("ptr", e.at("%objects", i, "ptr"))
            leave(e.let(f"icmp ne ptr {e.get('ptr', e.at(text, _TYPE, 'i8'))}, %type"))
            yield i, text, e.get("i64", e.at(text, _LENGTH, "i8")), leave
        e.set("i64", status, "0")
        leave("true")


def put_string(e: Code, place: str, start: str, size: str, leave: Callable[[str], None]) -> str:
    """A new object of so many bytes, copied from `start` unless that is null, put where perhaps another one
    is."""
    made = e.let(f"call ptr @PyBytes_FromStringAndSize(ptr {start}, i64 {size})")
    leave(e.let(f"icmp eq ptr {made}, null"))
    before = e.get("ptr", place)
    e.set("ptr", place, made)
    with e.when(e.let(f"icmp ne ptr {before}, null")):
        e.do(f"call void @Py_DecRef(ptr {before})")
    return made


def bytes_of(e: Code, text: str) -> str:
    """Where the bytes of an object begin."""
    return e.at(text, _BYTES, "i8")


def items_of(strings: Texts) -> int:
    """Where the addresses of the objects are."""
    if isinstance(strings, np.ndarray):
        return int(strings.ctypes.data)
    return ctypes.c_int64.from_address(id(strings) + _ITEMS).value


def are_as_expected() -> bool:
    """Whether lists and bytes of this Python are laid out as the code takes them to be."""
    some = [b"abc", b"defgh"]
    if type(some).__basicsize__ < _ITEMS + 8 or bytes.__basicsize__ != _BYTES + 1:
        return False
    word = ctypes.c_int64.from_address
    if word(items_of(some)).value != id(some[0]) or word(items_of(some) + 8).value != id(some[1]):
        return False
    place = id(some[1])
    found = word(place + _TYPE).value == id(bytes) and word(place + _LENGTH).value == 5
    return found and ctypes.string_at(place + _BYTES, 5) == b"defgh"


byte_strings = when_asked(lambda: StringCode() if are_as_expected() else None)
"""The machine code, if it is there by now."""
