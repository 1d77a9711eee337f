"""The outputs of an op that parses Examples: of machine code, or else of `columns`.

Outputs are, for the sparse features, all indices, all values and all shapes; then the dense features; then of
ragged ones all values and all row splits. Machine code gives no errors: whatever is wrong with messages is
found by the columns, which are made of all messages then.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from flowstone.framework.machine import record_code
from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.parsing.columns import KIND_OF, Column, columns_of
from flowstone.ops.parsing.feature_tensors import (
    Rows,
    Wanted,
    as_array,
    as_value,
    check_default,
    dense,
    padded,
    sparse,
    splits,
    zero_of,
)
from flowstone.ops.parsing.layouts import Array

_Made = TypeVar("_Made")


class Features:
    """What is asked of each message: sparse, dense and ragged features; ragged ones with the splits' type.

    `kinds`: of each key. InvalidArgumentError for one that is asked for as two. `places`: which feature of a
    walk each sparse, dense and ragged one is. `widths`: how many values a row, or a step, of a dense one has.
    """

    def __init__(
        self,
        sparse: Sequence[tuple[bytes, DType]],
        dense: Sequence[Wanted],
        ragged: Sequence[tuple[bytes, DType, DType]] = (),
    ) -> None:
        self.sparse, self.dense, self.ragged = sparse, dense, ragged
        self.kinds: dict[bytes, int] = {}
        pairs = [
            *sparse,
            *((each.key.encode(errors="surrogateescape"), each.dtype) for each in dense),
            *((key, dtype) for key, dtype, _ in ragged),
        ]
        for key, dtype in pairs:
            if self.kinds.setdefault(key, KIND_OF[dtype]) != KIND_OF[dtype]:
                raise invalid(f"Feature {key!r} is asked for with two types")
        places = [list(self.kinds).index(key) for key, _ in pairs]
        first, last = len(sparse), len(sparse) + len(dense)
        self.places = places[:first], places[first:last], places[last:]
        self.widths = [math.prod(each.dims[1:] if each.is_padded else each.dims) for each in dense]
        self._keys: Any = None
        self._are_texts = all(map(is_text, self.kinds))

    def walk(self, messages: Array) -> record_code.Walk | None:
        """What machine code finds in a vector of messages."""
        reader = record_code.example_reader()
        if reader is None or not (self._are_texts and messages.flags.c_contiguous and len(messages)):
            return None
        if self._keys is None:
            self._keys = reader.keys(self.kinds)
        return reader.walk(messages, self._keys)


def is_text(key: bytes) -> bool:
    """Whether a key is in UTF-8, as those in messages are."""
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


class Remembered(Generic[_Made]):
    """What `make` gives for inputs, always as many, kept for calls with the same objects after each other."""

    def __init__(self, make: Callable[..., _Made]) -> None:
        self._make = make
        self._last: tuple[tuple[Any, ...], _Made] | None = None

    def __call__(self, inputs: tuple[Any, ...]) -> _Made:
        last = self._last
        if last is not None and all(map(operator.is_, last[0], inputs)):
            return last[1]
        made = self._make(*inputs)
        self._last = inputs, made
        return made


def wanted_of(
    keys: Sequence[bytes], types: Sequence[DType], shapes: Sequence[Any], defaults: Sequence[Any]
) -> list[Wanted]:
    """The dense features of attributes and inputs. InvalidArgumentError for defaults of other shapes."""
    if len(keys) != len(types):
        raise invalid(f"Expected {len(types)} dense keys, one a default value, but got {len(keys)}")
    wanted = [
        Wanted(key.decode(errors="surrogateescape"), dtype, dims, as_array(default))
        for key, dtype, dims, default in zip(keys, types, shapes, defaults)
    ]
    for each in wanted:
        check_default(each)
    return wanted


def batch_outputs(messages: Array, features: Features, rows: Rows) -> tuple[Any, ...]:
    """The outputs for a vector of messages, which errors call by `rows`."""
    walk = features.walk(messages)
    found = None if walk is None else _Reading(walk, features, (len(messages),)).outputs()
    if found is not None:
        return found
    return _column_outputs(columns_of(messages.tolist(), features.kinds, rows.refusal), features, rows)


def single_outputs(message: Array, features: Features, names: Sequence[bytes] = ()) -> tuple[Any, ...]:
    """The outputs for one message, a scalar: those of a batch of one, without the dimension of the batch."""
    walk = features.walk(message.reshape(1))
    found = None if walk is None else _Reading(walk, features, ()).outputs()
    if found is not None:
        return found
    rows = Rows(names, is_one=True)
    columns = columns_of([message.item()], features.kinds, rows.refusal)
    outputs = list(_column_outputs(columns, features, rows))
    count = len(features.sparse)
    for i in range(count):
        outputs[i] = outputs[i][:, 1:]
        outputs[2 * count + i] = outputs[2 * count + i][1:]
    for i in range(3 * count, 3 * count + len(features.dense)):
        dims = outputs[i].shape[1:]
        outputs[i] = outputs[i].reshape(dims)
    for i in range(len(outputs) - len(features.ragged), len(outputs)):
        outputs[i] = outputs[i][:0]  # one list has no rows
    return tuple(outputs)


def _column_outputs(columns: dict[bytes, Column], features: Features, rows: Rows) -> tuple[Any, ...]:
    parts = [sparse(columns[key]) for key, _ in features.sparse]
    outputs = [as_value(part[i]) for i in range(3) for part in parts]
    for each in features.dense:
        column = columns[each.key.encode(errors="surrogateescape")]
        make = padded if each.is_padded else dense
        outputs.append(as_value(make(column, each, rows)))
    outputs += [as_value(columns[key].values) for key, _, _ in features.ragged]
    outputs += [as_value(splits(columns[k].counts, t.as_numpy_dtype)) for k, _, t in features.ragged]
    return tuple(outputs)


class _Reading:
    """Outputs of a walk; `batch`: the number of messages as a shape, or () of one."""

    def __init__(self, walk: record_code.Walk, features: Features, batch: tuple[int, ...]) -> None:
        self._walk, self._features, self._batch = walk, features, batch

    def outputs(self) -> tuple[Any, ...] | None:
        """All outputs; None where a feature is missing, or of another number of values."""
        features, walk = self._features, self._walk
        sparse_places, dense_places, ragged_places = features.places
        parts = [self._sparse(i, dtype) for i, (_, dtype) in zip(sparse_places, features.sparse)]
        arrays = [part[i] for i in range(3) for part in parts]
        for i, wanted, width in zip(dense_places, features.dense, features.widths):
            found = (self._padded if wanted.is_padded else self._dense)(i, wanted, width)
            if found is None:
                return None
            arrays.append(found)
        for i, (_, dtype, _) in zip(ragged_places, features.ragged):
            arrays.append(np.empty(walk.totals[i], dtype.as_numpy_dtype))
            walk.fill_list(i, arrays[-1])
        for i, (_, _, kind) in zip(ragged_places, features.ragged):
            counts = splits(walk.counts(i), kind.as_numpy_dtype)
            arrays.append(counts if self._batch else counts[:0])  # one list has no rows
        walk.read()
        return tuple([as_value(each) for each in arrays])

    def _sparse(self, i: int, dtype: DType) -> tuple[Array, Array, Array]:
        total, rank = self._walk.totals[i], 1 + len(self._batch)
        values = np.empty(total, dtype.as_numpy_dtype)
        indices, shape = np.empty((total, rank), np.int64), np.empty(rank, np.int64)
        self._walk.fill_list(i, values, indices, shape)
        return indices, values, shape

    def _dense(self, i: int, wanted: Wanted, width: int) -> Array | None:
        walk, missing = self._walk, self._walk.missing[i]
        present = (self._batch[0] if self._batch else 1) - missing
        if walk.most[i] > width or walk.totals[i] != width * present:
            return None
        default = wanted.default
        if missing and not default.size:
            return None
        out = np.empty((*self._batch, *wanted.dims), wanted.dtype.as_numpy_dtype)
        walk.fill_rows(i, out, width, np.ascontiguousarray(default) if missing else None, 1)
        return out

    def _padded(self, i: int, wanted: Wanted, stride: int) -> Array | None:
        walk = self._walk
        if stride != 1 and (not stride or (walk.counts(i) % stride).any()):
            return None
        out = np.empty((*self._batch, walk.most[i] // stride, *wanted.dims[1:]), wanted.dtype.as_numpy_dtype)
        padding = wanted.default
        if not padding.size:
            padding = np.array(zero_of(out.dtype), out.dtype)
        walk.fill_rows(i, out, walk.most[i], np.ascontiguousarray(padding), 0)
        return out
