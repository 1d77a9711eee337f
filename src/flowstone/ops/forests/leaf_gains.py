"""What a leaf's sums of first and second derivatives say: its best weight, and the best way to split it."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["best_splits", "weight_and_gain"]

Array = np.ndarray[Any, Any]
_LEAST_CURVATURE = 1e-15


def weight_and_gain(gradients: Array, hessians: Array, l1: float, l2: float) -> tuple[Array, Array]:
    """The weight w that minimises g w + (h + l2) w² / 2 + l1 |w|, and twice what that takes off; float32 as
    given.
    """
    shrunk = np.sign(gradients) * np.maximum(np.abs(gradients) - np.float32(l1), 0)
    curvature = hessians + np.float32(l2)
    solvable = curvature > _LEAST_CURVATURE
    weights = np.where(solvable, -shrunk / np.where(solvable, curvature, 1), np.float32(0))
    return weights, -shrunk * weights


def best_splits(
    summary: Array, first: int, end: int, l1: float, l2: float, complexity: float, least_weight: float
) -> tuple[Array, Array, Array, Array, Array]:
    """The best split of each of the nodes from `first` to before `end` by one feature.

    Args:
        summary: float32 [nodes, buckets, 2], sums of gradients and hessians.
        complexity: what a split costs; `least_weight`: the sum of hessians that a node needs to be split.

    Returns node numbers, gains, thresholds (the greatest bucket that goes left), and the weights [nodes, 1]
    of the left and the right child. Of equal gains the least threshold counts.
    """
    sums = np.cumsum(summary[first:end], axis=1, dtype=np.float32)
    totals = sums[:, -1]
    nodes = np.flatnonzero(totals[:, 1] >= np.float32(least_weight))
    sums, totals = sums[nodes], totals[nodes]
    left_weights, left_gains = weight_and_gain(sums[:, :, 0], sums[:, :, 1], l1, l2)
    rest = totals[:, None] - sums
    right_weights, right_gains = weight_and_gain(rest[:, :, 0], rest[:, :, 1], l1, l2)
    gains = left_gains + right_gains
    thresholds = gains.argmax(1) if len(nodes) else np.zeros(0, np.int64)
    rows = np.arange(len(nodes))
    _, parents = weight_and_gain(totals[:, 0], totals[:, 1], l1, l2)
    return (
        (nodes + first).astype(np.int32),
        gains[rows, thresholds] - np.float32(complexity) - parents,
        thresholds.astype(np.int32),
        left_weights[rows, thresholds][:, None],
        right_weights[rows, thresholds][:, None],
    )
