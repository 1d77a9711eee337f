"""`Column`: the values of one feature in all messages of a batch, one after the other.

Messages of one layout (`layouts`) are read as one array of bytes; a batch may have a few such groups. All
others go through protobuf.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from google.protobuf.message import DecodeError

from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.io.proto.example_pb2 import Example
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.parsing.layouts import BYTES, FLOATS, INTEGERS, Array, Field, decoded_varints, layout_of

KIND_OF = {dtypes.string: BYTES, dtypes.float32: FLOATS, dtypes.int64: INTEGERS}
_LISTS = {BYTES: "bytes_list", FLOATS: "float_list", INTEGERS: "int64_list"}
VALUE_TYPES: dict[int, Any] = {BYTES: object, FLOATS: np.float32, INTEGERS: np.int64}
"""Of the values of each kind."""
_NAMES = {BYTES: "string", FLOATS: "float", INTEGERS: "int64"}
_LEAST_GROUP = 4  # messages that are worth to be read as one array
_MOST_GROUPS = 8
_LONG = 16  # floats that are worth to be copied as bytes

Wanted: TypeAlias = "Mapping[bytes, int]"  # the kind of each feature
Refusal: TypeAlias = "Callable[[bytes, int, int, int], Exception]"  # key, row, expected and actual kind


class Column(NamedTuple):
    """How many values each row has, whether it has the feature at all, and the values of all rows."""

    counts: Array
    is_there: Array
    values: Array


def type_name(dtype: DType | int) -> str:
    """A type as TensorFlow's errors call it."""
    return _NAMES[dtype if isinstance(dtype, int) else KIND_OF[dtype]]


def columns_of(messages: Sequence[bytes], wanted: Wanted, refusal: Refusal) -> dict[bytes, Column]:
    """The column of each feature that is wanted. InvalidArgumentError for what is no Example, and what
    `refusal` makes where a feature is of another kind."""
    groups: dict[int, list[int]] = {}
    for row, message in enumerate(messages):
        groups.setdefault(len(message), []).append(row)
    if len(messages) < _LEAST_GROUP or len(groups) > _MOST_GROUPS:
        return _through_protobuf(messages, range(len(messages)), wanted, refusal)
    parts = []
    for rows in groups.values():
        chosen = messages if len(groups) == 1 else [messages[row] for row in rows]
        found = _as_one_array(chosen, rows, wanted, refusal)
        parts.append(_through_protobuf(chosen, rows, wanted, refusal) if found is None else found)
    if len(parts) == 1:
        return parts[0]
    order = [np.array(rows) for rows in groups.values()]
    return {key: _merged([part[key] for part in parts], order, len(messages)) for key in wanted}


def _merged(parts: Sequence[Column], order: Sequence[Array], rows: int) -> Column:
    counts, is_there = np.zeros(rows, np.int64), np.zeros(rows, bool)
    for part, places in zip(parts, order):
        counts[places], is_there[places] = part.counts, part.is_there
    starts = np.cumsum(counts) - counts
    values = np.empty(int(counts.sum()), parts[0].values.dtype)
    for part, places in zip(parts, order):
        values[np.repeat(starts[places], part.counts) + within(part.counts)] = part.values
    return Column(counts, is_there, values)


def within(counts: Array) -> Array:
    """0, 1, … for each count, one after the other."""
    places: Array = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return places


# ---- messages of one layout


def _as_one_array(
    messages: Sequence[bytes], rows: Sequence[int], wanted: Wanted, refusal: Refusal
) -> dict[bytes, Column] | None:
    layout = layout_of(messages[0])
    if layout is None:
        return None
    table = np.frombuffer(b"".join(messages), np.uint8).reshape(len(messages), -1)
    frame = table[:, layout.frame]
    if not (frame == frame[0]).all():
        return None
    columns = {}
    for key, kind in wanted.items():
        field = layout.fields.get(key)
        if field is None or not field.kind:
            columns[key] = _absent(len(messages), kind)
            continue
        if field.kind != kind:
            raise refusal(key, rows[0], kind, field.kind)
        column = _sliced(messages, table, field)
        if column is None:
            return None
        columns[key] = column
    return columns


def _absent(rows: int, kind: int) -> Column:
    return Column(np.zeros(rows, np.int64), np.zeros(rows, bool), np.empty(0, VALUE_TYPES[kind]))


def _sliced(messages: Sequence[bytes], table: Array, field: Field) -> Column | None:
    rows, spans = len(messages), field.spans
    counts = np.full(rows, len(spans), np.int64)
    if not spans:
        values = np.empty(0, VALUE_TYPES[field.kind])
    elif field.kind == BYTES:
        values = np.empty(rows * len(spans), object)
        for i, (begin, end) in enumerate(spans):
            values[i :: len(spans)] = [message[begin:end] for message in messages]
    else:
        ((begin, end),) = spans
        data = np.ascontiguousarray(table[:, begin:end])
        if field.kind == FLOATS:
            counts[:] = (end - begin) // 4
            values = data.reshape(-1).view("<f4")
        else:
            is_last = data < 128
            numbers = decoded_varints(data.reshape(-1)) if is_last[:, -1:].all() and end > begin else None
            if numbers is None:
                return None
            counts, values = is_last.sum(1), numbers
    return Column(counts, np.ones(rows, bool), values)


# ---- other messages


def _through_protobuf(
    messages: Sequence[bytes], rows: Sequence[int], wanted: Wanted, refusal: Refusal
) -> dict[bytes, Column]:
    features = [parsed(Example, message).features.feature for message in messages]
    columns = {}
    for key, kind in wanted.items():
        try:
            name = key.decode()
        except UnicodeDecodeError:
            columns[key] = _absent(len(messages), kind)
            continue
        found = [each.get(name) for each in features]
        columns[key] = column_of(found, kind, partial(_refused, refusal, key, rows))
    return columns


def _refused(
    refusal: Refusal, key: bytes, rows: Sequence[int], row: int, expected: int, actual: int
) -> Exception:
    return refusal(key, rows[row], expected, actual)


def parsed(message_type: Any, message: bytes) -> Any:
    """A message of this type. InvalidArgumentError for bytes that are none."""
    try:
        return message_type.FromString(message)
    except DecodeError:
        raise invalid(f"Could not parse example input, value: '{message[:200]!r}'") from None


def column_of(features: Sequence[Any], kind: int, refusal: Callable[[int, int, int], Exception]) -> Column:
    """The column of the lists of Feature messages, or None where a row has none."""
    name = _LISTS[kind]
    counts, is_there = [0] * len(features), [False] * len(features)
    parts: list[Any] = []
    for row, feature in enumerate(features):
        if feature is None:
            continue
        values = getattr(feature, name)
        count = len(values.value)
        if not count and not feature.HasField(name):
            other = feature.WhichOneof("kind")
            if other is None:
                continue
            raise refusal(row, kind, next(k for k, v in _LISTS.items() if v == other))
        counts[row], is_there[row] = count, True
        parts.append(values)
    return Column(np.array(counts, np.int64), np.array(is_there, bool), _joined(parts, kind, sum(counts)))


def _joined(parts: Sequence[Any], kind: int, total: int) -> Array:
    """The values of all lists, `total` of them."""
    if kind == FLOATS and total > _LONG * len(parts):
        return np.concatenate([_floats(each, len(each.value)) for each in parts])
    values = itertools.chain.from_iterable([each.value for each in parts])
    return np.fromiter(values, object if kind == BYTES else VALUE_TYPES[kind], total)


def _floats(values: Any, count: int) -> Array:
    """The numbers of a list, by its bytes: a tag and a size, then the floats."""
    data = values.SerializeToString()
    return np.frombuffer(data, "<f4", count, len(data) - 4 * count)
