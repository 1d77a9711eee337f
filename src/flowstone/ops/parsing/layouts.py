"""Where the values of a serialised Example lie, so that many of one layout are read as one array of bytes.

An Example is bytes in protobuf's wire form: of `Features` in field 1, an entry in field 1 for each feature,
of its key (1) and its `Feature` (2), which holds a list in field 1, 2 or 3: bytes, floats or integers.
Writers write the same features in the same order, with lists of the same lengths, again and again. Such
messages have one length, and differ in *payload* alone: all other bytes, the *frame*, are the same.

>>> layout = layout_of(bytes.fromhex("0a0c0a0a0a016112051a030a0107"))
>>> layout.fields
{b'a': Field(kind=3, spans=[(13, 14)])}
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
BYTES, FLOATS, INTEGERS = 1, 2, 3  # the numbers of a Feature's fields
_FIRST, _SECOND = 0x0A, 0x12  # tags of fields 1 and 2 that hold bytes
_KINDS = {0x0A: BYTES, 0x12: FLOATS, 0x1A: INTEGERS}
_LONGEST_NUMBER = 10  # bytes of a varint


class Field(NamedTuple):
    """A feature's list: its kind, and where its values are: each (bytes) or all of them (numbers)."""

    kind: int
    spans: list[tuple[int, int]]


class Layout(NamedTuple):
    """The fields of a message by their keys, and the places of the frame's bytes."""

    fields: dict[bytes, Field]
    frame: Array


class _Unusual(Exception):
    """The message is not in the form that writers write, or damaged."""


def layout_of(message: bytes) -> Layout | None:
    """The layout of a serialised Example; None where it is not in the usual form, or damaged."""
    fields: dict[bytes, Field] = {}
    try:
        begin, end = _part(message, 0, len(message), _FIRST) if message else (0, 0)
        if end != len(message):
            return None
        at = begin
        while at < end:
            begin, at = _part(message, at, end, _FIRST)
            key_begin, key_end = _part(message, begin, at, _FIRST)
            value_begin, value_end = _part(message, key_end, at, _SECOND)
            key = message[key_begin:key_end]
            key.decode()  # protobuf refuses other keys
            if value_end != at or key in fields:
                return None
            fields[key] = _field(message, value_begin, value_end)
    except (_Unusual, IndexError, UnicodeDecodeError):
        return None
    return Layout(fields, _frame(fields, len(message)))


def _number(message: bytes, at: int) -> tuple[int, int]:
    """The varint at a place, and where it ends."""
    byte = message[at]
    if byte < 128:
        return byte, at + 1
    number = byte & 127
    for i in range(1, _LONGEST_NUMBER):
        byte = message[at + i]
        number |= (byte & 127) << 7 * i
        if byte < 128:
            return number, at + i + 1
    raise _Unusual


def _part(message: bytes, at: int, end: int, tag: int) -> tuple[int, int]:
    """Where the bytes of a field of this tag begin and end."""
    if at >= end or message[at] != tag:
        raise _Unusual
    size, begin = _number(message, at + 1)
    if begin + size > end:
        raise _Unusual
    return begin, begin + size


def _field(message: bytes, at: int, end: int) -> Field:
    if at == end:
        return Field(0, [])  # a Feature of no kind
    kind = _KINDS.get(message[at])
    if kind is None:
        raise _Unusual
    begin, stop = _part(message, at, end, message[at])
    if stop != end:
        raise _Unusual
    spans = []
    while begin < end:
        spans.append(_part(message, begin, end, _FIRST))
        begin = spans[-1][1]
    if kind != BYTES and len(spans) > 1:
        raise _Unusual
    if kind == FLOATS and spans and (spans[0][1] - spans[0][0]) % 4:
        raise _Unusual
    return Field(kind, spans)


def _frame(fields: dict[bytes, Field], size: int) -> Array:
    is_frame = np.ones(size, bool)
    for field in fields.values():
        for begin, end in field.spans:
            is_frame[begin:end] = False
    return np.flatnonzero(is_frame)


def decoded_varints(data: Array) -> Array | None:
    """The int64 numbers that are written one after the other in `data`, uint8; None where one is damaged."""
    is_last = data < 128
    if is_last.all():
        return data.astype(np.int64)
    if not is_last[-1]:
        return None
    ends = np.flatnonzero(is_last)
    starts = np.concatenate([[0], ends[:-1] + 1])
    sizes = ends - starts + 1
    if sizes.max() > _LONGEST_NUMBER:
        return None
    places = np.arange(len(data)) - np.repeat(starts, sizes)
    parts = (data & 127).astype(np.uint64) << (7 * places).astype(np.uint64)
    numbers: Array = np.bitwise_or.reduceat(parts, starts).view(np.int64)
    return numbers
