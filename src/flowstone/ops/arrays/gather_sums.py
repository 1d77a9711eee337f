"""The gradient of a gather along any dimension: sums over equal indices, by TensorFlow's nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.constants import ones, zeros
from flowstone.ops.arrays.constants import range as numbers_to
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.shapes import shape, size


def gather_sum(op: Operation, dy: Tensor, batch: int) -> Tensor:
    """The gradient along any dimension, by sums over equal indices.

    The dimension comes first among those behind the batches, the places in place of it are one dimension.
    """
    params, indices, axis = op.inputs
    with params.graph.colocate_with(params):
        sizes = F.Cast(shape(params, out_type=dtypes.int64), DstT=dtypes.int32)
    if indices.dtype.base_dtype is dtypes.int16:
        indices = F.Cast(indices, DstT=dtypes.int32)
    F.ExpandDims(size(indices), np.int32(0))  # TensorFlow makes this one twice
    outer, inner = sizes[:axis], sizes[axis:][1:]
    flat = concat([outer, [-1], inner], 0)
    rank_of, before = size(flat), size(outer)
    batches = numbers_to(0, batch)
    middle, behind = numbers_to(batch, before), numbers_to(before + 1, rank_of)
    values = F.Reshape(dy, flat)
    order = concat([batches, [before], middle, behind], 0)
    values = F.Transpose(values, order, name="transpose")
    n = sizes[axis]
    count = F.ExpandDims(size(indices), np.int32(0))
    if batch:
        dims = shape(values)
        shared, rest = dims[:batch], dims[batch:][1:]
        rows = concat([[-1], rest], 0)
        total = n * F.Prod(shared, np.array([0], np.int32))
        known = op.constant(2)
        places = _places_in_batches(indices, sizes, axis if known is None else int(known), batch)
        summed = F.UnsortedSegmentSum(F.Reshape(values, rows), F.Reshape(places, count), total)
        summed = F.Reshape(summed, concat([shared, rows], 0))
    else:
        summed = F.UnsortedSegmentSum(values, F.Reshape(indices, count), n)
    back = concat([batches, middle + 1, [batch], behind], 0)
    return F.Transpose(summed, back, name="transpose")


def _places_in_batches(indices: Tensor, sizes: Tensor, axis: Any, batch: int) -> Tensor:
    """The places of indices where the dimensions of batches and the gathered one are one dimension."""
    sizes = sizes if indices.dtype.base_dtype is sizes.dtype else F.Cast(sizes, DstT=indices.dtype)
    row = ones([], indices.dtype)
    for i in reversed(range(batch)):
        number = sizes[i]
        row *= sizes[axis if i == batch - 1 else i + 1]
        starts = numbers_to(zeros([], indices.dtype), number, ones([], indices.dtype)) * row
        behind = len(indices.known_dims) - i - 1
        indices += F.Reshape(starts, stack([1] * i + [number] + [1] * behind))
    return indices
