"""Examples as the trees of a forest see them: rows of features, dense ones, then those of a sparse matrix.

A feature that a row of the sparse matrix lacks is zero. What a column held before it became float32 says how
nodes test it: numbers are compared with a threshold, integers and strings with one value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from flowstone.ops.arrays.arrays import invalid

__all__ = ["Examples", "categorical_columns"]

Array = np.ndarray[Any, Any]
_COLUMN = re.compile(r"\{name: (?P<name>.*?) original_type: (?P<type>-?\d+) size: (?P<size>-?\d+)\}")


@lru_cache(maxsize=64)
def categorical_columns(input_spec: bytes) -> tuple[tuple[bool, ...], bool]:
    """Of each dense feature whether it is a category, and whether the sparse ones are.

    `input_spec` is the text of a `TensorForestDataSpec`. InvalidArgumentError for another text.
    """
    text = input_spec.decode()
    dense, found, sparse = text.partition(" sparse: ")
    if not found:
        raise invalid(f"input_spec is not that of a forest's examples: {text[:80]!r}")
    columns = [(int(c["type"]) != 0, int(c["size"])) for c in _COLUMN.finditer(dense)]
    sparse_columns = [int(c["type"]) != 0 for c in _COLUMN.finditer(sparse)]
    return tuple(kind for kind, size in columns for _ in range(size)), any(sparse_columns)


class Examples:
    """A batch: `dense` is float32 [examples, features], empty if there is none; then a sparse matrix."""

    def __init__(self, dense: Array, indices: Array, values: Array, shape: Array, input_spec: bytes) -> None:
        self._categories, self._sparse_is_category = categorical_columns(input_spec)
        self.dense_size = dense.shape[1] if dense.ndim == 2 else 0
        rows = dense.shape[0] if self.dense_size else (int(shape[0]) if len(shape) else 0)
        self.values: Array = dense if self.dense_size else np.zeros((rows, 0), np.float32)
        self._given: dict[int, list[int]] = {}
        if len(indices):
            self._add_sparse(indices, values, int(shape[1]))

    def _add_sparse(self, indices: Array, values: Array, width: int) -> None:
        columns, of_value = np.unique(indices[:, 1], return_inverse=True)
        if len(columns) and (columns[-1] >= width or indices[:, 0].max() >= len(self)):
            raise invalid(f"sparse features lie outside of their shape [{len(self)},{width}]")
        self._column_of = {int(column): at for at, column in enumerate(columns)}
        sparse = np.zeros((len(self), len(columns)), np.float32)
        sparse[indices[:, 0], of_value] = values
        self._sparse = sparse
        for row, column in indices.tolist():
            self._given.setdefault(row, []).append(self.dense_size + column)

    def __len__(self) -> int:
        return len(self.values)

    def column(self, feature: int, rows: Array) -> Array:
        """The feature of these rows, float32."""
        if feature < self.dense_size:
            return np.asarray(self.values[rows, feature])
        at = self._column_of.get(feature - self.dense_size) if self._given else None
        return np.zeros(len(rows), np.float32) if at is None else np.asarray(self._sparse[rows, at])

    def is_category(self, feature: int) -> bool:
        """Whether the feature is compared with one value."""
        if feature < self.dense_size:
            return self._categories[feature] if feature < len(self._categories) else False
        return self._sparse_is_category

    def draw_feature(self, row: int, draws: np.random.RandomState) -> int | None:
        """One of the row's features; None if it has none."""
        given = self._given.get(row, ())
        count = self.dense_size + len(given)
        if not count:
            return None
        drawn = int(draws.randint(count)) if count > 1 else 0
        return drawn if drawn < self.dense_size else given[drawn - self.dense_size]
