"""Examples from arrays: the messages of many rows at once.

>>> import flowstone as tf, numpy as np
>>> from flowstone.io.examples import encode_examples
>>> messages = encode_examples({"image": np.zeros([2, 3], np.float32), "label": np.array([7, 300])})
>>> tf.train.Example.FromString(messages[1]).features.feature["label"].int64_list.value
[300]

Rows whose messages have one layout, which is what differs in sizes only, are written side by side as one
array. Messages are those of protobuf's canonical form, with the features in the order of their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework import errors

__all__ = ["encode_examples"]

Array = np.ndarray[Any, Any]

_BYTES_LIST, _FLOAT_LIST, _INT64_LIST = b"\x0a", b"\x12", b"\x1a"  # tags of the lists in a Feature
_FEW = 8  # rows of one layout that are worth an array


class _Column(NamedTuple):
    """One feature of all rows: its name, the tag of its list, and the contents of the lists one after the
    other: bytes, where those of each row begin, and how many they are."""

    name: bytes
    tag: bytes
    data: Array
    starts: Array
    sizes: Array

    def head(self, size: int) -> bytes:
        """What stands before the contents, if these have `size` bytes; see `_entry`."""
        packs = self.tag != _BYTES_LIST and size > 0
        values = _tagged(b"\x0a", size) if packs else b""
        listed = _tagged(self.tag, len(values) + size) + values
        feature = _tagged(b"\x12", len(listed) + size) + listed
        name = _tagged(b"\x0a", len(self.name)) + self.name
        return _tagged(b"\x0a", len(name) + len(feature) + size) + name + feature

    def contents(self, row: int) -> bytes:
        """The contents of one row's list."""
        start = self.starts[row]
        return self.data[start : start + self.sizes[row]].tobytes()


def encode_examples(features: Mapping[str, Any]) -> list[bytes]:
    """The serialised Examples of rows.

    `features`: by name an array [rows, ...], whose other dimensions become the list of the row: floats of any
    width as floats, integers and booleans as int64, `bytes` (and texts, in UTF-8) as bytes. Instead of an
    array of `bytes` there may be a sequence of them, one a row.

    Raises ValueError for other numbers of rows, TypeError for values that no Example holds,
    InvalidArgumentError for an integer that int64 does not hold.
    """
    columns = [_column(name, values) for name, values in sorted(_named(features))]
    counts = {len(column.sizes) for column in columns}
    if len(counts) > 1:
        each = {column.name.decode(): len(column.sizes) for column in columns}
        raise ValueError(f"The features must have the same number of rows, but they have {each}")
    if not columns:
        return []
    sizes = np.stack([column.sizes for column in columns], axis=1)
    layouts, layout_of, numbers = np.unique(sizes, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(layout_of.reshape(-1), kind="stable")
    messages: list[Any] = [None] * len(sizes)
    begin = 0
    for layout, number in zip(layouts.tolist(), numbers.tolist()):
        rows = order[begin : begin + number]
        begin += number
        make = _side_by_side if number >= _FEW else _one_by_one
        for row, message in zip(rows.tolist(), make(columns, layout, rows)):
            messages[row] = message
    return messages


def _named(features: Mapping[str, Any]) -> list[tuple[bytes, Any]]:
    return [(name.encode() if isinstance(name, str) else name, values) for name, values in features.items()]


def _pieces(columns: Sequence[_Column], layout: Sequence[int]) -> tuple[bytes, list[bytes]]:
    """The head of a message of this layout, and those of its features."""
    heads = [column.head(size) for column, size in zip(columns, layout)]
    return _tagged(b"\x0a", sum(map(len, heads)) + sum(layout)), heads


def _side_by_side(columns: Sequence[_Column], layout: Sequence[int], rows: Array) -> list[bytes]:
    """The messages of rows of one layout."""
    first, heads = _pieces(columns, layout)
    width = len(first) + sum(map(len, heads)) + sum(layout)
    out = np.empty((len(rows), width), np.uint8)
    at = 0

    def put(constant: bytes) -> int:
        out[:, at : at + len(constant)] = np.frombuffer(constant, np.uint8)
        return at + len(constant)

    at = put(first)
    for column, head, size in zip(columns, heads, layout):
        at = put(head)
        if size:
            windows = np.lib.stride_tricks.sliding_window_view(column.data, size)
            out[:, at : at + size] = windows[column.starts[rows]]
            at += size
    data = out.tobytes()
    return [data[i : i + width] for i in range(0, len(data), width)]


def _one_by_one(columns: Sequence[_Column], layout: Sequence[int], rows: Array) -> list[bytes]:
    first, heads = _pieces(columns, layout)
    return [
        first + b"".join([head + column.contents(row) for column, head in zip(columns, heads)])
        for row in rows.tolist()
    ]


# ---- the contents of lists


def _column(name: bytes, values: Any) -> _Column:
    array = np.asarray(values)
    if array.ndim == 0:
        raise ValueError(f"Feature {name.decode()} must have a row for each Example, but is a scalar")
    if array.dtype.kind in "SUO" or (array.size == 0 and isinstance(values, (list, tuple))):
        return _bytes_column(name, values if array.ndim == 1 else array)
    rows, per_row = len(array), int(np.prod(array.shape[1:]))
    if array.dtype.kind == "f":
        data = np.ascontiguousarray(array, "<f4").view(np.uint8).reshape(-1)
        sizes = np.full(rows, 4 * per_row, np.int64)
        return _Column(name, _FLOAT_LIST, data, np.arange(rows) * 4 * per_row, sizes)
    if array.dtype.kind not in "iub":
        if array.dtype.name != "bfloat16":
            raise TypeError(
                f"Feature {name.decode()} has values of type {array.dtype}, which no Example holds"
            )
        return _column(name, array.astype(np.float32))
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        message = f"Feature {name.decode()} has the value {array.max()}, which int64 does not hold"
        raise errors.InvalidArgumentError(None, None, message)
    data, lengths = _varints(array.astype(np.int64).reshape(-1))
    sizes = lengths.reshape(rows, per_row).sum(axis=1)
    return _Column(name, _INT64_LIST, data, np.cumsum(sizes) - sizes, sizes)


def _bytes_column(name: bytes, values: Any) -> _Column:
    contents = [_bytes_contents(name, row) for row in values]
    sizes = np.array([len(each) for each in contents], np.int64)
    data = np.frombuffer(b"".join(contents), np.uint8)
    return _Column(name, _BYTES_LIST, data, np.cumsum(sizes) - sizes, sizes)


def _bytes_contents(name: bytes, row: Any) -> bytes:
    if isinstance(row, (bytes, str)):
        text = row.encode() if isinstance(row, str) else row
        return _tagged(b"\x0a", len(text)) + text
    if not isinstance(row, (np.ndarray, list, tuple)):
        raise TypeError(f"Feature {name.decode()} has the value {row!r}, which no Example holds")
    items = row.reshape(-1).tolist() if isinstance(row, np.ndarray) else row
    return b"".join([_bytes_contents(name, each) for each in items])


def _varints(numbers: Array) -> tuple[Array, Array]:
    """Numbers, int64, as protobuf writes them: the bytes, and how many each has."""
    rest = numbers.view(np.uint64)
    lengths = np.ones(len(rest), np.int64)
    for bits in range(7, 64, 7):
        lengths += rest >= np.uint64(1 << bits)
    places = np.cumsum(lengths) - lengths
    out = np.zeros(int(lengths.sum()), np.uint8)
    for i in range(int(lengths.max(initial=0))):
        there = lengths > i
        part = (rest[there] >> np.uint64(7 * i)).astype(np.uint8) & 0x7F
        out[places[there] + i] = part | ((lengths[there] > i + 1).astype(np.uint8) << 7)
    return out, lengths


def _tagged(tag: bytes, length: int) -> bytes:
    """The beginning of a field with so many bytes."""
    out = bytearray(tag)
    while length > 127:
        out.append(length & 127 | 128)
        length >>= 7
    out.append(length)
    return bytes(out)
