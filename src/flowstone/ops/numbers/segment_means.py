"""Means of the rows of unsorted segments: `tf.unsorted_segment_mean` and `tf.unsorted_segment_sqrt_n`."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.constants import ones
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import rank, shape

__all__ = ["unsorted_segment_mean", "unsorted_segment_sqrt_n"]


def _rows_in_segments(data: Tensor, ids: Tensor, count: Any) -> Tensor:
    """How many rows each segment has, at least 1, in a shape that broadcasts with the sums."""
    rows = F.UnsortedSegmentSum(ones(shape(ids), data.dtype), ids, count)
    if data.dims is None or ids.dims is None:
        behind: Any = F.Fill(F.ExpandDims(rank(data) - rank(ids), 0), np.int32(1))
    else:
        behind = [1] * (len(data.dims) - len(ids.dims))
    known = rows.static_shape
    if known is not None and isinstance(behind, list):
        sizes: Any = np.array([*known, *behind], np.int32)
    else:
        sizes = concat([shape(rows), behind], 0)
    rows = F.Reshape(rows, sizes)
    return F.Maximum(rows, np.ones((), data.dtype.as_numpy_dtype))


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The mean of the rows of each segment, 0 of one without rows.

    Shapes are those of `unsorted_segment_sum`: `segment_ids`, in any order, is a prefix of the shape of
    `data`; rows of negative ids are dropped.
    """
    with get_default_graph().name_scope(name or "UnsortedSegmentMean"):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        rows = _rows_in_segments(data, ids, num_segments)
        return F.UnsortedSegmentSum(data, ids, num_segments) / rows


def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """The sum of the rows of each segment over the root of their number; see `unsorted_segment_mean`."""
    with get_default_graph().name_scope(name or "UnsortedSegmentSqrtN"):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        rows = _rows_in_segments(data, ids, num_segments)
        return F.UnsortedSegmentSum(data, ids, num_segments) / F.Sqrt(rows)
