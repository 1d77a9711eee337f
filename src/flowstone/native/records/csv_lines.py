"""Lines of comma-separated values read into columns by machine code, with Python's lock: CPython's objects of
bytes are read where they are, and made for columns of strings.

A field in quotes may hold delimiters and line ends. Where a line is wrong or unusual (quotes inside a quoted
field, a number that `number_code` leaves to others, other fields than are wanted) nothing is read, and
`ops/parsing/csv_records.py` decides. The code is compiled on a thread when it is first asked for; until then,
and where there is no native tier, `csv_reader` is None.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowstone.native.codegen import compiler
from flowstone.native.codegen.code_library import when_asked
from flowstone.native.codegen.structured import Code
from flowstone.native.records.number_code import float_text, integer_text, number_constants
from flowstone.native.strings.byte_strings import are_as_expected, bytes_of, each_string

__all__ = ["CsvCode", "csv_code", "csv_reader"]

Array = np.ndarray[Any, Any]
_COLUMN = ("kind", "size", "out", "default")
"""The words of a column: what it holds, bytes of an element, and addresses, that of a default value or 0."""
_SKIPPED = 0
_KINDS = {"O": 1, "f": 2, "d": 3, "i": 4, "q": 5, "l": 5}
_STRINGS, _FLOATS, _DOUBLES, _SHORT, _LONG = 1, 2, 3, 4, 5
_PARAMETERS = (
    "ptr objects", "i64 count", "ptr type", "i64 delimiter", "i64 quote", "ptr missing", "i64 missing_length",
    "ptr table", "i64 columns", "i64 is_exact", "ptr status",
)  # fmt: skip
_MEMCMP = "declare i32 @memcmp(ptr, ptr, i64)"


def csv_code() -> str:
    """The text of ``read``, whose status becomes 0, or 1 where lines are left to others."""
    objects = (
        "declare ptr @PyBytes_FromStringAndSize(ptr, i64)\ndeclare void @Py_IncRef(ptr)\n"
        "declare void @Py_DecRef(ptr)"
    )
    e = Code("read", _PARAMETERS, 1, {}, is_public=True)
    with each_string(e, "%status") as (row, text, length, unusual):
        start = bytes_of(e, text)
        count = _fields(e, row, start, e.at(start, length, "i8"), unusual)
        is_short = e.let(f"icmp slt i64 {count}, %columns")
        is_other = e.let(f"icmp ne i64 {count}, %columns")
        is_exact = e.let("icmp ne i64 %is_exact, 0")
        unusual(e.let(f"select i1 {is_exact}, i1 {is_other}, i1 {is_short}"))
    return "\n".join([number_constants(), objects, _MEMCMP, e.text()])


def _fields(e: Code, row: str, start: str, end: str, unusual: Any) -> str:
    """Reads the fields of a line, and gives how many these are."""
    cursor, column = e.variable("ptr", start), e.variable("i64", "0")
    with e.repeat() as leave:
        begin, stop = _field(e, cursor, end, unusual)
        number = e.get("i64", column)
        with e.when(e.let(f"icmp slt i64 {number}, %columns")):
            own = e.at("%table", e.mul(number, len(_COLUMN)), "i64")
            with e.when(e.let(f"icmp ne i64 {e.word(own, 0)}, {_SKIPPED}")):
                _value(e, row, own, begin, stop, unusual)
        e.set("i64", column, e.add(number, 1))
        at = e.get("ptr", cursor)
        leave(e.let(f"icmp eq ptr {at}, {end}"))
        e.set("ptr", cursor, e.at(at, 1, "i8"))
    return e.get("i64", column)


def _field(e: Code, cursor: str, end: str, unusual: Any) -> tuple[str, str]:
    """Moves the cursor behind a field, and gives where its text begins and ends."""
    at = e.get("ptr", cursor)
    begin, stop = e.variable("ptr", at), e.variable("ptr", at)
    is_quote = e.let(f"icmp eq i64 {_byte(e, at)}, %quote")
    is_quoted = e.let(f"and i1 {is_quote}, {e.let(f'icmp ne ptr {at}, {end}')}")
    with e.when(is_quoted):
        inside = e.at(at, 1, "i8")
        e.set("ptr", begin, inside)
        e.set("ptr", stop, inside)
        with e.repeat() as leave:
            place = e.get("ptr", stop)
            unusual(e.let(f"icmp eq ptr {place}, {end}"))
            leave(e.let(f"icmp eq i64 {_byte(e, place)}, %quote"))
            e.set("ptr", stop, e.at(place, 1, "i8"))
        after = e.at(e.get("ptr", stop), 1, "i8")
        e.set("ptr", cursor, after)
        goes_on = e.let(f"icmp ne i64 {_byte(e, after)}, %delimiter")
        unusual(e.let(f"and i1 {goes_on}, {e.let(f'icmp ne ptr {after}, {end}')}"))
    with e.when(e.let(f"xor i1 {is_quoted}, true")):
        with e.repeat() as leave:
            place = e.get("ptr", cursor)
            leave(e.let(f"icmp eq ptr {place}, {end}"))
            byte = _byte(e, place)
            leave(e.let(f"icmp eq i64 {byte}, %delimiter"))
            ends = [e.let(f"icmp eq i64 {byte}, {each}") for each in (ord("\n"), ord("\r"), "%quote")]
            unusual(e.let(f"or i1 {e.let(f'or i1 {ends[0]}, {ends[1]}')}, {ends[2]}"))
            e.set("ptr", cursor, e.at(place, 1, "i8"))
        e.set("ptr", stop, e.get("ptr", cursor))
    return e.get("ptr", begin), e.get("ptr", stop)


def _byte(e: Code, place: str) -> str:
    """The byte there, as i64; behind an object's last one there is a zero."""
    return e.let(f"zext i8 {e.get('i8', place)} to i64")


def _value(e: Code, row: str, own: str, begin: str, stop: str, unusual: Any) -> None:
    """Puts the value of a field into its column."""
    kind, size, default = e.word(own, 0), e.word(own, 1), e.pointer(own, 3)
    out = e.at(e.pointer(own, 2), e.mul(row, size), "i8")
    is_gap = _is_gap(e, begin, stop)
    with e.when(is_gap):
        unusual(e.let(f"icmp eq ptr {default}, null"))
        _put_default(e, kind, size, default, out)
    with e.when(e.let(f"xor i1 {is_gap}, true")):
        with _each(e, kind, _STRINGS):
            length = e.sub(e.let(f"ptrtoint ptr {stop} to i64"), e.let(f"ptrtoint ptr {begin} to i64"))
            made = e.let(f"call ptr @PyBytes_FromStringAndSize(ptr {begin}, i64 {length})")
            unusual(e.let(f"icmp eq ptr {made}, null"))
            _put_object(e, out, made)
        is_float = e.let(f"icmp eq i64 {e.let(f'and i64 {kind}, -2')}, {_FLOATS}")
        with e.when(is_float):
            number = float_text(e, begin, stop, unusual)
            with _each(e, kind, _FLOATS):
                e.set("float", out, e.let(f"fptrunc double {number} to float"))
            with _each(e, kind, _DOUBLES):
                e.set("double", out, number)
        with e.when(e.let(f"icmp sge i64 {kind}, {_SHORT}")):
            integer = integer_text(e, begin, stop, unusual)
            with _each(e, kind, _LONG):
                e.set("i64", out, integer)
            with _each(e, kind, _SHORT):
                short = e.let(f"trunc i64 {integer} to i32")
                unusual(e.let(f"icmp ne i64 {e.let(f'sext i32 {short} to i64')}, {integer}"))
                e.set("i32", out, short)


def _each(e: Code, kind: str, wanted: int) -> Any:
    return e.when(e.let(f"icmp eq i64 {kind}, {wanted}"))


def _is_gap(e: Code, begin: str, stop: str) -> str:
    """Whether a field is empty, or the text for missing ones."""
    length = e.sub(e.let(f"ptrtoint ptr {stop} to i64"), e.let(f"ptrtoint ptr {begin} to i64"))
    is_gap = e.variable("i1", e.let(f"icmp eq i64 {length}, 0"))
    with e.when(e.let(f"icmp eq i64 {length}, %missing_length")):
        differs = e.let(f"call i32 @memcmp(ptr {begin}, ptr %missing, i64 {length})")
        e.set("i1", is_gap, e.let(f"icmp eq i32 {differs}, 0"))
    return e.get("i1", is_gap)


def _put_default(e: Code, kind: str, size: str, default: str, out: str) -> None:
    with _each(e, kind, _STRINGS):
        value = e.get("ptr", default)
        e.do(f"call void @Py_IncRef(ptr {value})")
        _put_object(e, out, value)
    with e.when(e.let(f"icmp ne i64 {kind}, {_STRINGS}")):
        for unit, width in (("i32", 4), ("i64", 8)):
            with e.when(e.let(f"icmp eq i64 {size}, {width}")):
                e.set(unit, out, e.get(unit, default))


def _put_object(e: Code, place: str, value: str) -> None:
    """Puts an object that is counted already to where another one may be."""
    before = e.get("ptr", place)
    e.set("ptr", place, value)
    with e.when(e.let(f"icmp ne ptr {before}, null")):
        e.do(f"call void @Py_DecRef(ptr {before})")


class CsvCode:
    """`record_code.CsvReader` by machine code."""

    def __init__(self) -> None:
        self._module = compiler.compiled(csv_code(), ["read"])
        self._read = ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * len(_PARAMETERS))(
            self._module.address("read")
        )

    def __call__(
        self,
        lines: Array,
        delimiter: bytes,
        quote: bytes,
        missing: bytes,
        chosen: Sequence[int],
        defaults: Sequence[Array],
    ) -> list[Array] | None:
        if delimiter in b"\r\n" or delimiter == quote:
            return None
        places = chosen or range(len(defaults))
        table = np.zeros((places[-1] + 1, len(_COLUMN)), np.int64)
        columns = [np.empty(len(lines), each.dtype) for each in defaults]
        for place, column, default in zip(places, columns, defaults):
            address = default.ctypes.data if default.size else 0
            table[place] = (_KINDS[column.dtype.char], column.itemsize, column.ctypes.data, address)
        text, status = ctypes.create_string_buffer(missing), np.ones(1, np.int64)
        self._read(
            lines.ctypes.data, len(lines), id(bytes), delimiter[0], quote[0] if quote else -1,
            ctypes.addressof(text), len(missing), table.ctypes.data, len(table), not chosen,
            status.ctypes.data,
        )  # fmt: skip
        return None if status[0] else columns


csv_reader = when_asked(lambda: CsvCode() if are_as_expected() else None)
"""The machine code, if it is there by now."""
