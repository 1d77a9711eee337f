"""The tensors that become of a `Column`: dense, sparse or ragged, of a batch or of one message."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.parsing.columns import Column, type_name, within
from flowstone.ops.parsing.layouts import Array


class Rows:
    """What errors call the messages of a batch: by their `names`, if any, and numbers; or one message."""

    def __init__(self, names: Sequence[bytes] = (), is_one: bool = False) -> None:
        self._names, self._is_one = names, is_one

    def of(self, rows: Array) -> Rows:
        """The same for a batch of these rows of the batch."""
        return Rows([self._names[row] for row in rows] if len(self._names) else ())

    def _name(self, row: int) -> str:
        name = self._names[row].decode(errors="replace") if len(self._names) else "<unknown>"
        return f"Name: {name}, "

    def key(self, row: int, key: str) -> str:
        """A row's feature."""
        return f"Key: {key}." if self._is_one else f"{self._name(row)}Key: {key}, Index: {row}."

    def missing(self, row: int, key: str, type_name: str) -> Exception:
        """The error where a row lacks a feature that it must have."""
        name = "" if self._is_one else self._name(row)
        return invalid(f"{name}Feature: {key} (data type: {type_name}) is required but could not be found.")

    def refusal(self, key: bytes, row: int, expected: int, actual: int) -> Exception:
        """The error where a row's feature is of another kind."""
        return invalid(
            f"{self.key(row, key.decode(errors='replace'))}  Data types don't match. "
            f"Data type: {type_name(actual)} but expected type: {type_name(expected)}"
        )


class Wanted(NamedTuple):
    """A dense feature: its key, type, shape (the first size None: of any length) and default value."""

    key: str
    dtype: DType
    dims: tuple[Any, ...]
    default: Array

    @property
    def is_padded(self) -> bool:
        """Whether rows are of any length, and filled up to the longest."""
        return len(self.dims) > 0 and self.dims[0] is None


def as_value(array: Array) -> Any:
    """An array as a step's value."""
    return array if array.dtype == object else torch.from_numpy(array)


def as_array(value: Any) -> Array:
    """A step's value as an array."""
    return value if isinstance(value, np.ndarray) else value.numpy()


def format_shape(dims: tuple[int | None, ...]) -> str:
    """A shape as TensorFlow's errors write it."""
    return f"[{','.join('?' if n is None else str(n) for n in dims)}]"


def check_default(wanted: Wanted) -> None:
    """InvalidArgumentError for a default value that is not of the feature's shape, or no padding element."""
    key, _, dims, default = wanted
    if not default.size:
        return
    if dims and dims[0] is None:
        if default.size != 1:
            raise invalid(
                f"dense_shape of {key} is a variable length shape: {format_shape(dims)}, therefore its "
                f'default must contain a single element ("the padding element").  But its shape is: '
                f"{format_shape(default.shape)}"
            )
    elif default.shape != dims:
        raise invalid(
            f"def_value of {key} has shape {format_shape(default.shape)}, not the feature's, "
            f"{format_shape(dims)}"
        )


def dense(column: Column, wanted: Wanted, names: Rows) -> Array:
    """[rows, *dims]; rows without the feature have the default value."""
    counts, is_there, values = column
    dims = wanted.dims
    size, rows = math.prod(dims), len(counts)
    wrong = is_there & (counts != size)
    if wrong.any():
        row = int(wrong.argmax())
        raise invalid(
            f"{names.key(row, wanted.key)}  Number of {type_name(wanted.dtype)} values != expected.  "
            f"Values size: {counts[row]} but output shape: {format_shape(dims)}"
        )
    if is_there.all():
        return values.reshape(rows, *dims)
    if not wanted.default.size:
        raise names.missing(int(is_there.argmin()), wanted.key, type_name(wanted.dtype))
    out = np.empty((rows, *dims), values.dtype)
    out[:] = wanted.default.reshape(dims)
    out[is_there] = values.reshape(-1, *dims)
    return out


def padded(column: Column, wanted: Wanted, names: Rows) -> Array:
    """[rows, longest, *dims[1:]], rows filled up with the default value (zeros if there is none)."""
    counts, _, values = column
    padding, rest = wanted.default, wanted.dims[1:]
    stride = math.prod(rest)
    wrong = counts % stride != 0 if stride else counts > 0
    if wrong.any():
        row = int(wrong.argmax())
        raise invalid(
            f"{names.key(row, wanted.key)}  Number of {type_name(wanted.dtype)} values is not a multiple of "
            f"stride length. Saw {counts[row]} values but output shape is: {format_shape(wanted.dims)}"
        )
    lengths = counts // max(stride, 1)
    longest = int(lengths.max(initial=0))
    shape = (len(counts), longest, *rest)
    if bool((lengths == longest).all()):
        return values.reshape(shape)
    out = np.empty((len(counts), longest * stride), values.dtype)
    out[:] = padding.reshape(()) if padding.size else zero_of(values.dtype)
    out[np.arange(longest * stride) < counts[:, None]] = values
    return out.reshape(shape)


def zero_of(dtype: Any) -> Any:
    """Zero, or the empty string."""
    return b"" if np.dtype(dtype).hasobject else 0


def sparse(column: Column) -> tuple[Array, Array, Array]:
    """Indices [n, 2], values [n] and the shape, [rows, most values of a row]."""
    counts = column.counts
    indices = np.stack([np.repeat(np.arange(len(counts)), counts), within(counts)], axis=1)
    return indices, column.values, np.array([len(counts), counts.max(initial=0)], np.int64)


def splits(counts: Array, dtype: Any) -> Array:
    """Where rows of these lengths begin and end."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(dtype)
