"""The features of a batch of examples, sparse and dense, as rows over one vector of weights.

The weights of all groups of sparse features, and then those of the dense ones, lie end to end in that vector.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework.types.shape import format_dims
from flowstone.ops.arrays.arrays import invalid

Array = np.ndarray[Any, Any]
Entries = tuple[Array, Array, Array]  # examples in ascending order, places in the vector, values


class Features:
    """Rows of features: sparse `entries`, and `dense` columns at the end of the vector of `size` weights."""

    def __init__(self, entries: Entries, dense: Array, count: int, size: int) -> None:
        self._examples, self._places, self._values = entries
        self._dense, self._count = dense, count
        self._tail = slice(size - dense.shape[1], size)
        bounds = np.searchsorted(self._examples, np.arange(count + 1)).tolist()
        # The sparse part of each row, sliced once; None where there is none.
        self._rows = [
            (self._places[low:high], self._values[low:high]) if low < high else None
            for low, high in itertools.pairwise(bounds)
        ]

    def times(self, weights: Array) -> Array:
        """The products of all rows and the vector."""
        sparse = np.bincount(self._examples, self._values * weights[self._places], minlength=self._count)
        result: Array = sparse[: self._count] + self._dense @ weights[self._tail]
        return result

    def squared_norms(self) -> Array:
        """Of all rows."""
        sparse = np.bincount(self._examples, self._values**2, minlength=self._count)
        result: Array = sparse[: self._count] + np.einsum("ij,ij->i", self._dense, self._dense)
        return result

    def row_times(self, i: int, vector: Array, at: Callable[[Any], Array] | None = None) -> float:
        """The product of row `i` and the vector; or what `at` gives for places of it."""
        at = at or vector.__getitem__
        total = float(self._dense[i].dot(at(self._tail)))
        row = self._rows[i]
        return total if row is None else total + float(row[1].dot(at(row[0])))

    def add(self, i: int, scale: float, vector: Array) -> None:
        """Adds row `i` times `scale` to the vector."""
        vector[self._tail] += scale * self._dense[i]
        row = self._rows[i]
        if row is not None:
            vector[row[0]] += scale * row[1]


def sparse_entries(
    examples: Sequence[Array],
    ids: Sequence[Array],
    values: Sequence[Array],
    known: Sequence[Array],
    sizes: Sequence[int],
    count: int,
) -> Entries:
    """The entries of all groups of sparse features, sorted by example.

    Those of examples that the batch does not have are left out. InvalidArgumentError for a feature that the
    group does not know, or that an example has twice.
    """
    if not examples:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    parts = []
    first = 0
    for group, (rows, features) in enumerate(zip(examples, ids, strict=True)):
        if rows.shape != features.shape or rows.ndim != 1:
            raise invalid(
                "Found mismatched example_indices and feature_indices "
                f"{format_dims(rows.shape)} vs {format_dims(features.shape)}"
            )
        amounts = values[group].astype(np.float64) if group < len(values) else np.ones(len(rows))
        if amounts.shape != rows.shape:
            raise invalid(f"Found {amounts.size} sparse_feature_values for {rows.size} feature_indices")
        places = _places(features, known[group], sizes[group]) + first
        parts.append((rows, places, amounts))
        first += sizes[group]
    rows, places, amounts = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((places, rows))
    order = order[(rows[order] >= 0) & (rows[order] < count)]
    rows, places, amounts = rows[order], places[order], amounts[order]
    if ((rows[1:] == rows[:-1]) & (places[1:] == places[:-1])).any():
        raise invalid("Duplicate index in sparse vector.")
    return rows, places, amounts


def _places(features: Array, known: Array, size: int) -> Array:
    """Where among the group's weights each feature has its own."""
    known = known.reshape(-1)
    if len(known) > size:
        raise invalid(f"Found {len(known)} sparse_indices for {size} sparse weights")
    if np.array_equal(known, np.arange(len(known))):
        wrong = (features < 0) | (features >= len(known))
        places = features
    else:
        order = np.argsort(known, kind="stable")
        found = np.minimum(np.searchsorted(known[order], features), max(len(known) - 1, 0))
        places = order[found]
        wrong = known[places] != features
    if wrong.any():
        raise invalid(f"Found sparse feature indices out of valid range: {features[wrong][0]}")
    return places


def dense_columns(groups: Sequence[Array], sizes: Sequence[int], count: int) -> Array:
    """The matrices of dense features side by side; InvalidArgumentError where one does not fit."""
    for i, (group, size) in enumerate(zip(groups, sizes, strict=True)):
        if group.ndim != 2:
            raise invalid(f"Dense features at index {i} must be rank 2 but is rank {group.ndim}")
        if group.shape != (count, size):
            raise invalid(
                f"Dense features at index {i} must have shape [{count},{size}], "
                f"got {format_dims(group.shape)}"
            )
    return np.concatenate([np.zeros((count, 0)), *groups], 1).astype(np.float64)
