"""Look-up tables as runtime objects; no graph.

A table has a row for each key, of the value that belongs to it. Keys and values are NumPy arrays, strings
objects; a key may itself be a row of numbers or strings, and a value a tensor. All calls may come from any
thread.

=================  ==========================================================================================
kind               what it allows
=================  ==========================================================================================
`StaticTable`      is empty until it is initialised, once; then finds. `import_` initialises it.
`MutableTable`     inserts, removes, replaces all (`import_`)
`DenseTable`       the same, but one key (and another, if it was given one for removed ones) is not allowed
=================  ==========================================================================================

>>> from flowstone.framework.types import dtypes
>>> table = MutableTable("t", dtypes.string, dtypes.int64)
>>> table.insert(np.array([b"a", b"b"], object), np.array([1, 2]))
>>> table.find(np.array([[b"b", b"z"]], object), np.array(-1)).tolist()
[[2, -1]]
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.lookup.buckets import places
from flowstone.ops.lookup.key_index import NumberIndex, ObjectIndex, Rows

Array = np.ndarray[Any, Any]
_SPARE = 64  # rows of removed keys that are kept at least before the others move together


class Table(ABC):
    """What all tables share: `name`, types, the shapes of one key and one value; `size` keys in it."""

    def __init__(
        self,
        name: str,
        key_dtype: DType,
        value_dtype: DType,
        value_shape: tuple[int, ...] = (),
        key_shape: tuple[int, ...] = (),
    ) -> None:
        self.name, self.key_dtype, self.value_dtype = name, key_dtype, value_dtype
        self.value_shape, self.key_shape = value_shape, key_shape
        self._lock = threading.Lock()
        self._clear()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.size} keys>"

    @property
    def tensor(self) -> Array:
        """What a fetch of its reference shows: container and name."""
        return np.array([b"localhost", self.name.encode()], dtype=object)

    @property
    def size(self) -> int:
        """How many keys are in it."""
        return self._count - self._removed

    # ---- storage; under the lock

    def _clear(self) -> None:
        is_number = not self.key_shape and self.key_dtype is not dtypes.string
        self._index: Any = NumberIndex() if is_number else ObjectIndex()
        self._count = self._removed = 0  # rows that were given away; those of removed keys
        self._keys = np.empty((0, *self.key_shape), self.key_dtype.as_numpy_dtype)
        self._values = np.empty((0, *self.value_shape), self.value_dtype.as_numpy_dtype)
        self._live = np.empty(0, bool)

    def _indexed(self, keys: Array) -> Any:
        """Keys, [n, *key_shape], in the form that the index takes."""
        if isinstance(self._index, NumberIndex):
            return keys
        if not self.key_shape:
            return keys.tolist()
        if keys.dtype == object:
            return list(map(tuple, keys.reshape(len(keys), math.prod(keys.shape[1:])).tolist()))
        return [row.tobytes() for row in np.ascontiguousarray(keys)]

    def _put(self, keys: Array, values: Array) -> Rows:
        """Puts keys, [n, *key_shape], with their values in; the last value of a key stays."""
        rows: Rows = self._index.add(self._indexed(keys))
        count = int(rows.max(initial=self._count - 1)) + 1
        if count > len(self._keys):
            room = max(count, 2 * len(self._keys))
            self._keys, self._values = _resized(self._keys, room), _resized(self._values, room)
            self._live = _resized(self._live, room)
        self._keys[rows], self._values[rows], self._live[rows] = keys, values, True
        self._count = count
        return rows

    def _drop(self, keys: Array) -> None:
        rows = self._index.remove(self._indexed(keys))
        self._live[rows] = False
        self._removed += len(rows)
        if self._removed > self.size + _SPARE:
            kept = self._contents()
            self._clear()
            self._put(*kept)

    def _contents(self) -> tuple[Array, Array]:
        """Copies of keys and values, in the order in which the keys came."""
        live = self._live[: self._count]
        return self._keys[: self._count][live], self._values[: self._count][live]

    # ---- use

    def find(self, keys: Array, default: Array) -> Array:
        """The values of keys of shape [..., *key_shape]; `default`, one for all or one a key, for others."""
        outer = self.outer_shape(keys)
        each = (*outer, *self.value_shape)
        if default.shape not in (self.value_shape, each):
            raise invalid(
                f"Expected shape {format_dims(self.value_shape)} or {format_dims(each)} for default value, "
                f"got {format_dims(default.shape)}"
            )
        with self._lock:
            rows = self._index.find(self._indexed(keys.reshape(-1, *self.key_shape)))
            values = self._values[rows] if self._count else np.empty((len(rows), *self.value_shape), object)
        missing = rows < 0
        if missing.any():
            if not self._count:
                values = np.empty(values.shape, self.value_dtype.as_numpy_dtype)
            values[missing] = self._defaults(default, missing)
        return values.astype(self.value_dtype.as_numpy_dtype, copy=False).reshape(each)

    def _defaults(self, default: Array, missing: Array) -> Array:
        """The values of keys that are not there."""
        if default.shape == self.value_shape:
            return default
        return default.reshape(len(missing), *self.value_shape)[missing]

    def outer_shape(self, keys: Array) -> tuple[int, ...]:
        """The shape of a tensor of keys without that of one key. InvalidArgumentError if it has not that."""
        rank = len(self.key_shape)
        outer: tuple[int, ...] = keys.shape[: keys.ndim - rank]
        if keys.ndim < rank or keys.shape[keys.ndim - rank :] != self.key_shape:
            raise invalid(
                f"Input key shape {format_dims(keys.shape)} must end with the table's key shape "
                f"{format_dims(self.key_shape)}"
            )
        return outer

    def check_values(self, keys: Array, values: Array) -> None:
        """InvalidArgumentError if there is not one value for each key."""
        expected = (*self.outer_shape(keys), *self.value_shape)
        if values.shape != expected:
            raise invalid(
                f"Expected shape {format_dims(expected)} for value, got {format_dims(values.shape)}"
            )

    @abstractmethod
    def insert(self, keys: Array, values: Array) -> None:
        """Puts keys in, or gives them other values."""

    @abstractmethod
    def remove(self, keys: Array) -> None:
        """Takes keys out; those that are not there are passed over."""

    @abstractmethod
    def import_(self, keys: Array, values: Array) -> None:
        """Replaces all keys and values."""

    def initialize(self, keys: Array, values: Array) -> None:
        """Gives a static table its contents."""
        raise invalid(f"Table localhost {self.name} is not initializable")

    def export(self) -> tuple[Array, Array]:
        """All keys and their values."""
        with self._lock:
            return self._contents()


def _resized(array: Array, rows: int) -> Array:
    result = np.empty((rows, *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    return result


class StaticTable(Table):
    """A table that gets its contents once; `is_initialized` since then."""

    is_initialized = False

    def find(self, keys: Array, default: Array) -> Array:
        if not self.is_initialized:
            raise errors.FailedPreconditionError(None, None, "Table not initialized.")
        return super().find(keys, default)

    def _defaults(self, default: Array, missing: Array) -> Array:
        return default.reshape(-1)[:1]  # as in TensorFlow, the first of several is that of all

    def initialize(self, keys: Array, values: Array) -> None:
        """Gives it its contents; again, only as many keys, which change nothing.

        FailedPreconditionError for a key with two values, and for another number of keys.
        """
        _check_vectors(keys, values)
        with self._lock:
            if self.is_initialized:
                if len(set(self._indexed(keys)) if keys.dtype == object else np.unique(keys)) != self._count:
                    raise errors.FailedPreconditionError(
                        None, None, "Table was already initialized with different data."
                    )
                return
            rows = self._put(keys, values)
            if self._count < len(keys):
                self._refuse_other_values(keys, values, rows)
            self.is_initialized = True

    def _refuse_other_values(self, keys: Array, values: Array, rows: Rows) -> None:
        """Of each key, the first value counts, and the others must be equal to it."""
        first = np.empty(self._count, np.int64)
        first[rows[::-1]] = np.arange(len(keys))[::-1]
        other = np.flatnonzero(values != values[first[rows]])
        if other.size:
            key, value, old = keys[other[0]], values[other[0]], values[first[rows[other[0]]]]
            self._clear()
            raise errors.FailedPreconditionError(
                None,
                None,
                f"HashTable has different value for same key. Key {_text(key)} has {_text(old)} and trying "
                f"to add value {_text(value)}",
            )

    def import_(self, keys: Array, values: Array) -> None:
        self.initialize(keys, values)

    def insert(self, keys: Array, values: Array) -> None:
        raise _not_supported("Insert")

    def remove(self, keys: Array) -> None:
        raise _not_supported("Remove")

    def export(self) -> tuple[Array, Array]:
        if not self.is_initialized:
            raise errors.AbortedError(None, None, "HashTable is not initialized.")
        return super().export()


def _not_supported(what: str) -> Exception:
    return errors.UnimplementedError(
        None, None, f"{what} not supported by InitializableLookupTable implementations"
    )


def _check_vectors(keys: Array, values: Array) -> None:
    if keys.ndim != 1:
        raise invalid(f"Keys must be a vector, but received shape{format_dims(keys.shape)}")
    if values.shape != keys.shape:
        raise invalid(f"Keys and values must have the same size {keys.size} vs {values.size}")
    if not keys.size:
        raise invalid("keys and values cannot be empty tensors.")


def _text(item: Any) -> str:
    return item.decode("utf-8", "backslashreplace") if isinstance(item, bytes) else str(item)


class MutableTable(Table):
    """A table that changes."""

    def insert(self, keys: Array, values: Array) -> None:
        self.check_keys(keys)
        self.check_values(keys, values)
        with self._lock:
            self._put(keys.reshape(-1, *self.key_shape), values.reshape(-1, *self.value_shape))

    def remove(self, keys: Array) -> None:
        self.check_keys(keys)
        self.outer_shape(keys)
        with self._lock:
            self._drop(keys.reshape(-1, *self.key_shape))

    def import_(self, keys: Array, values: Array) -> None:
        self.check_keys(keys)
        self.check_values(keys, values)
        with self._lock:
            self._clear()
            self._put(keys.reshape(-1, *self.key_shape), values.reshape(-1, *self.value_shape))

    def check_keys(self, keys: Array) -> None:
        """InvalidArgumentError for keys that are not allowed."""


class DenseTable(MutableTable):
    """A table with `buckets` places, which exports the empty ones too, with `empty_key`."""

    def __init__(
        self,
        name: str,
        value_dtype: DType,
        value_shape: tuple[int, ...],
        empty_key: Array,
        key_dtype: DType,
        deleted_key: Array | None = None,
        buckets: int = 131072,
        max_load_factor: float = 0.8,
    ) -> None:
        self.empty_key, self.deleted_key = empty_key, deleted_key
        self.buckets, self._smallest, self._most = buckets, buckets, max_load_factor
        super().__init__(name, key_dtype, value_dtype, value_shape, empty_key.shape)

    def check_keys(self, keys: Array) -> None:
        rank = len(self.key_shape)
        if keys.ndim != 1 + rank and (rank or keys.ndim > 1):
            expected = (keys.shape[0] if keys.ndim else 1, *self.key_shape)
            raise invalid(f"Expected key shape {format_dims(expected)} got {format_dims(keys.shape)}")
        self.outer_shape(keys)
        for key, called in ((self.empty_key, "empty_key"), (self.deleted_key, "deleted_key")):
            if key is not None:
                if bool(np.any(self._is_key(key, keys.reshape(-1, *self.key_shape)))):
                    raise invalid(f"Using the {called} as a table key is not allowed")

    def find(self, keys: Array, default: Array) -> Array:
        self.check_keys(keys)
        return super().find(keys, default)

    def _put(self, keys: Array, values: Array) -> Rows:
        rows = super()._put(keys, values)
        while self.size > self.buckets * self._most:
            self.buckets *= 2
        return rows

    def import_(self, keys: Array, values: Array) -> None:
        """Replaces all by what `export` gave, or by keys and values as `insert` takes them."""
        width = max(self.empty_key.size, 1)
        if keys.ndim == 2 and keys.shape[1] == width and len(values) == len(keys):
            keys = keys.reshape(-1, *self.key_shape)
            values = values.reshape(-1, *self.value_shape) if values[:1].size == self.value_size else values
            kept = ~(self._is_key(self.empty_key, keys) | self._is_key(self.deleted_key, keys))
            keys, values = keys[kept], values[kept]
        super().import_(keys, values)

    @property
    def value_size(self) -> int:
        """The elements of a value."""
        return int(np.prod(self.value_shape))

    @staticmethod
    def _is_key(key: Array | None, keys: Array) -> Array:
        """Which keys are `key`."""
        if key is None:
            return np.zeros(len(keys), np.bool_)
        equal: Array = np.all(keys.reshape(len(keys), key.size) == key.reshape(-1), axis=1)
        return equal

    def export(self) -> tuple[Array, Array]:
        """Keys, [buckets, elements of a key], and values, [buckets, elements of a value], each in the bucket
        where TensorFlow looks for it."""
        with self._lock:
            keys, values = self._contents()
            buckets = self.buckets
        width = max(self.empty_key.size, 1)
        keys = keys.reshape(len(keys), width)
        rows = places(keys, buckets)
        all_keys = np.empty((buckets, width), keys.dtype)
        all_keys[:] = self.empty_key.reshape(1, width)
        all_keys[rows] = keys
        zero: Any = b"" if values.dtype == object else 0
        all_values = np.full((buckets, self.value_size), zero, values.dtype)
        all_values[rows] = values.reshape(len(values), self.value_size)
        return all_keys, all_values
