"""Means of the rows of unsorted segments: `tf.unsorted_segment_mean` and `tf.unsorted_segment_sqrt_n`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor

__all__ = ["unsorted_segment_mean", "unsorted_segment_sqrt_n"]


def _rows_in_segments(data: Tensor, ids: Tensor, count: Any) -> Tensor:
    """How many rows each segment has, at least 1, in a shape that broadcasts with the sums."""
    ones = F.Fill(F.Shape(ids), np.ones((), data.dtype.as_numpy_dtype))
    rows = F.UnsortedSegmentSum(ones, ids, count)
    behind = F.Fill(F.ExpandDims(F.Sub(F.Rank(data), F.Rank(ids)), 0), np.int32(1))
    rows = F.Reshape(rows, F.ConcatV2([F.Shape(rows), behind], np.int32(0)))
    return F.Maximum(rows, np.ones((), data.dtype.as_numpy_dtype))


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The mean of the rows of each segment, 0 of one without rows.

    Shapes are those of `unsorted_segment_sum`: `segment_ids`, in any order, is a prefix of the shape of
    `data`; rows of negative ids are dropped.
    """
    with get_default_graph().name_scope(name or "UnsortedSegmentMean"):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        sums = F.UnsortedSegmentSum(data, ids, num_segments)
        return F.RealDiv(sums, _rows_in_segments(data, ids, num_segments))


def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The sum of the rows of each segment over the root of their number; see `unsorted_segment_mean`."""
    with get_default_graph().name_scope(name or "UnsortedSegmentSqrtN"):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        sums = F.UnsortedSegmentSum(data, ids, num_segments)
        return F.RealDiv(sums, F.Sqrt(_rows_in_segments(data, ids, num_segments)))
