"""Ragged values outside the graph, and what nested lists say of their form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["RaggedTensorValue", "constant_value", "nested_value"]


class RaggedTensorValue:
    """The value of a RaggedTensor: `values`, an array or such a value, and `row_splits`, an array."""

    def __init__(self, values: Any, row_splits: Any) -> None:
        splits = np.asarray(row_splits)
        if splits.dtype not in (np.int64, np.int32):
            raise TypeError("row_splits must have dtype int32 or int64")
        if splits.ndim != 1:
            raise TypeError(f"row_splits must be 1D, got {splits!r}")
        if not isinstance(values, (np.ndarray, np.generic, RaggedTensorValue)):
            raise TypeError(f"values must have type RaggedTensorValue or numpy.ndarray, got {values!r}")
        self._values, self._row_splits = values, splits

    @property
    def values(self) -> Any:
        """All rows, one after the other."""
        return self._values

    @property
    def row_splits(self) -> Any:
        """Where rows begin, and the last one ends."""
        return self._row_splits

    @property
    def flat_values(self) -> Any:
        """The innermost values."""
        return self._values.flat_values if isinstance(self._values, RaggedTensorValue) else self._values

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The splits of all ragged dimensions, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensorValue) else ()
        return (self._row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        """How many dimensions are ragged."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> Any:
        """NumPy's element type."""
        return self._values.dtype

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape; ragged dimensions are None."""
        return (self._row_splits.shape[0] - 1, None, *self._values.shape[1:])

    def to_list(self) -> Any:
        """Nested lists."""
        inner = self._values
        items = inner.to_list() if isinstance(inner, RaggedTensorValue) else inner.tolist()
        return [items[a:b] for a, b in zip(self._row_splits[:-1], self._row_splits[1:])]

    def __repr__(self) -> str:
        return f"tf.RaggedTensorValue(values={self._values!r}, row_splits={self._row_splits!r})"

    def __str__(self) -> str:
        return f"<tf.RaggedTensorValue {self.to_list()}>"


def nested_value(flat: Any, splits: Sequence[Any]) -> RaggedTensorValue:
    """The value of these innermost values and splits, the outermost first."""
    for each in reversed(splits):
        flat = RaggedTensorValue(flat, each)
    return flat  # type: ignore[no-any-return]


def constant_value(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    row_splits_dtype: Any = "int64",
) -> Any:
    """The RaggedTensorValue of nested lists; an array if nothing is ragged. For the arguments see
    `tf.ragged.constant`; types are NumPy's."""
    kind = np.dtype(row_splits_dtype)
    if kind not in (np.int32, np.int64):
        raise ValueError("row_splits_dtype must be int32 or int64")
    flat, splits = partitioned(pylist, ragged_rank, inner_shape)
    array = _array(flat, dtype, len(splits), inner_shape)
    return nested_value(array, [np.array(each, kind) for each in splits]) if splits else array


def _array(flat: Any, dtype: Any, ragged: int, inner_shape: Any) -> Any:
    array = np.array(flat, dtype)
    if inner_shape is not None:
        array = array.reshape((-1, *inner_shape) if ragged else inner_shape)
    return array


def partitioned(pylist: Any, ragged_rank: int | None, inner_shape: Any) -> tuple[Any, list[list[int]]]:
    """The innermost values, nested as deep as they are dense, and the splits of the ragged dimensions.

    ValueError where lists are nested unevenly, and where the ranks do not fit; TypeError for what is no list.
    """
    if not isinstance(pylist, (list, tuple, np.ndarray)):
        if ragged_rank:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
        if inner_shape:
            raise ValueError(
                f"Invalid pylist={pylist!r}: incompatible with dim(inner_shape)={len(inner_shape)}"
            )
        return pylist, []
    if ragged_rank is not None and ragged_rank < 0:
        raise ValueError(f"Invalid ragged_rank={ragged_rank}: must be nonnegative")
    scalars, most = _depths(pylist)
    if scalars is not None and most > scalars:
        raise ValueError("Invalid pylist: empty list nesting is greater than scalar value nesting")
    if inner_shape is None:
        inner_shape = (
            () if ragged_rank is None else _dense_shape(pylist, max(1, scalars or most) - 1 - ragged_rank)
        )
    if ragged_rank is None:
        ragged_rank = max(1, scalars if scalars is not None else most) - 1 - len(inner_shape)
    elif scalars is not None and scalars - len(inner_shape) != ragged_rank + 1 and ragged_rank:
        raise ValueError(
            f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank} and "
            f"dim(inner_shape)={len(inner_shape)}"
        )
    splits, values = [], list(pylist)
    for _ in range(ragged_rank):
        ends = [0]
        for row in values:
            ends.append(ends[-1] + len(row))
        splits.append(ends)
        values = [item for row in values for item in row]
    return values, splits


def _depths(item: Any) -> tuple[int | None, int]:
    """How deep the scalars of nested lists are (None without any), and the deepest list."""
    if not isinstance(item, (list, tuple, np.ndarray)) or (isinstance(item, np.ndarray) and item.ndim == 0):
        return 0, 0
    if isinstance(item, np.ndarray) and item.dtype != object:
        return item.ndim, item.ndim
    scalars, most = None, 1
    for each in item:
        depth, deepest = _depths(each)
        if depth is not None:
            if scalars is not None and depth + 1 != scalars:
                raise ValueError("all scalar values must have the same nesting depth")
            scalars = depth + 1
        most = max(most, deepest + 1)
    return scalars, most


def _dense_shape(pylist: Any, rank: int) -> tuple[int, ...]:
    """The shape of the innermost `rank` dimensions, which are dense: that of the first list that has one."""
    if rank <= 0:
        return ()
    level, depth = [pylist], max(1, _depths(pylist)[0] or _depths(pylist)[1])
    for _ in range(depth - rank):
        level = [item for each in level for item in each]
    return np.asarray(level[0]).shape if level else (0,) * rank
