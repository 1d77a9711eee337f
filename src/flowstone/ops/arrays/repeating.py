"""`tf.repeat`: each element or slice several times."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes

__all__ = ["repeat"]


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """The slices of `input` along `axis`, each ``repeats[i]`` times in place.

    `repeats`: an integer, or a vector of them, one a slice. Without an axis `input` is flattened. ValueError
    for an axis that does not exist, repeats of another number than the slices, or of rank above 1.
    """
    with get_default_graph().name_scope(name or "Repeat"):
        data = convert_to_tensor(input, name="input")
        if axis is None:
            data, axis = F.Reshape(data, [-1]), 0
        counts = convert_to_tensor(repeats, name="repeats")
        axis = _checked_axis(data, axis)
        counts = counts if counts.dtype in (dtypes.int32, dtypes.int64) else F.Cast(counts, DstT=dtypes.int32)
        _check_counts(counts, data, axis)
        size = F.GatherV2(F.Shape(data, out_type=counts.dtype), np.int32(axis), np.int32(0))
        counts = F.BroadcastTo(counts, F.ExpandDims(size, 0))
        return F.GatherV2(data, _positions(counts), np.int32(axis))


def _positions(counts: Tensor) -> Tensor:
    """The number of the slice at each place of the result: i stands ``counts[i]`` times."""
    kind = counts.dtype.as_numpy_dtype
    ends = F.Cumsum(F.Maximum(counts, kind(0)), np.int32(0))
    total = F.Max(F.ConcatV2([ends, np.zeros(1, kind)], np.int32(0)), np.int32(0))
    places = F.Range(convert_to_tensor(0, counts.dtype), total, convert_to_tensor(1, counts.dtype))
    rows = F.UpperBound(F.ExpandDims(ends, 0), F.ExpandDims(places, 0), out_type=counts.dtype)
    return F.Squeeze(rows, squeeze_dims=[0])


def _checked_axis(data: Tensor, axis: int) -> int:
    rank = data.shape.ndims
    if rank is None:
        if axis < 0:
            raise ValueError("axis must be non-negative where the rank of input is not known")
        return axis
    if not -rank <= axis < rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    return axis % rank


def _check_counts(counts: Tensor, data: Tensor, axis: int) -> None:
    dims = counts.dims
    if dims is None or not dims:
        return
    if len(dims) > 1:
        raise ValueError(f"Shape {counts.shape} must have rank at most 1")
    size = None if data.dims is None else data.dims[axis]
    if None not in (dims[0], size) and dims[0] not in (1, size):
        raise ValueError(f"Dimensions {size} and {dims[0]} are not compatible")
