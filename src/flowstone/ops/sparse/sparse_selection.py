"""Functions that take parts of sparse tensors, join them, and give empty rows an element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.choice import where
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.gathering import gather
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.selection import setdiff1d
from flowstone.ops.arrays.shapes import reshape
from flowstone.ops.sparse.empty_rows import sparse_fill_empty_rows_op
from flowstone.ops.sparse.sparse_arithmetic import as_sparse
from flowstone.ops.sparse.sparse_layout import as_int64
from flowstone.ops.sparse.sparse_pieces import sparse_concat_op, sparse_slice_op, sparse_split_op

_REQUIRED: Any = type("KeywordRequired", (), {"__repr__": lambda self: "KeywordRequired()"})()


def sparse_slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The part of a SparseTensor from `start` on, of `size`, as a SparseTensor with indices from 0.

    `start`, `size`: int64 vectors, one number a dimension; what would be beyond the end is left out.
    """
    sparse = as_sparse(sp_input)
    parts = (sparse.indices, sparse.values, sparse.dense_shape)
    return SparseTensor(*sparse_slice_op.several(*parts, as_int64(start), as_int64(size), name=name))


def sparse_split(
    keyword_required: Any = _REQUIRED,
    sp_input: Any = None,
    num_split: Any = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """A SparseTensor cut along an axis into `num_split` pieces, as equal as can be, longer ones first.

    Args:
        keyword_required: not to be given: the others are keywords.
        sp_input: SparseTensor.
        num_split: int, at most the size of the axis.
        axis: int scalar, may be negative.
        name: the node's name.
        split_dim: an old name of `axis`.

    Raises:
        ValueError: an argument is missing, or given without its name.
        InvalidArgumentError: (in the step) no such axis, too many pieces, or indices out of bounds.
    """
    if keyword_required is not _REQUIRED:
        raise ValueError("Keyword arguments are required for this function.")
    for value, what in ((sp_input, "sp_input"), (num_split, "num_split")):
        if value is None:
            raise ValueError(f"{what} is required")
    if axis is not None and split_dim is not None:
        raise ValueError("Cannot specify both 'axis' and 'split_dim'")
    axis = split_dim if axis is None else axis
    if axis is None:
        raise ValueError("axis is required")
    sparse = as_sparse(sp_input)
    parts = (axis, sparse.indices, sparse.values, sparse.dense_shape)
    found = sparse_split_op.several(*parts, num_split=num_split, name=name)
    return [SparseTensor(*each) for each in zip(*found)]


def sparse_concat(
    axis: Any,
    sp_inputs: Sequence[Any],
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: Any = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """SparseTensors one after the other along an axis; the result's indices are in row-major order.

    Args:
        axis: int, may be negative.
        sp_inputs: list or tuple of SparseTensors of one type and rank.
        name: the node's name.
        expand_nonconcat_dim: whether the other sizes may differ; the largest ones count.
        concat_dim: an old name of `axis`.
        expand_nonconcat_dims: another name of `expand_nonconcat_dim`.

    Raises:
        TypeError: `sp_inputs` is no list.
        InvalidArgumentError: (in the step) no such axis, or other sizes that differ.
    """
    expand = expand_nonconcat_dim if expand_nonconcat_dims is None else expand_nonconcat_dims
    axis = axis if concat_dim is None else concat_dim
    if not isinstance(sp_inputs, (list, tuple)):
        raise TypeError("Inputs must be a list or tuple.")
    inputs = [as_sparse(each) for each in sp_inputs]
    if len(inputs) == 1:
        return inputs[0]
    shapes = [each.dense_shape for each in inputs]
    if expand and inputs:
        shapes = _widened(shapes, axis)
    lists = ([each.indices for each in inputs], [each.values for each in inputs], shapes)
    found = sparse_concat_op.several(*lists, concat_dim=axis, name=name)
    known = _concatenated([each.shape for each in inputs], axis, expand)
    fixed = known.is_fully_defined() and not expand
    sizes = constant(known.as_list(), dtypes.int64) if fixed else found[2]
    result = SparseTensor(found[0], found[1], sizes)
    result.set_shape(known)
    return result


def _widened(shapes: list[Tensor], axis: int) -> list[Tensor]:
    """The shapes, but for the axis as large as the largest."""
    largest = F.Max(concat([reshape(each, [1, -1]) for each in shapes], 0), np.int32(0), name="Max")
    return [
        concat(
            [
                largest[:axis],
                each[-1:] if axis == -1 else each[axis : axis + 1],
                [] if axis == -1 else largest[axis + 1 :],
            ],
            0,
        )
        for each in shapes
    ]


def _concatenated(shapes: list[TensorShape], axis: int, expand: bool) -> TensorShape:
    """What is known of the result's shape."""
    ranks = {each.ndims for each in shapes if each.ndims is not None}
    count = min(ranks, default=0)
    if len(ranks) != 1 or not -count <= axis < count:
        return TensorShape(None)
    known = [each.as_list() if each.ndims is not None else [None] * count for each in shapes]
    if expand and any(None in each for each in known):
        return TensorShape([None] * count)
    sizes: list[Any] = [[each[i] for each in known] for i in range(count)]
    along = axis % count
    dims = [max((n for n in column if n is not None), default=None) for column in sizes]
    dims[along] = None if None in sizes[along] else sum(sizes[along])
    return TensorShape(dims)


def sparse_retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """The SparseTensor with those of its elements for which `to_retain`, a bool vector, is true.

    ValueError if the vector is known to have another length than the values.
    """
    sparse = as_sparse(sp_input)
    chosen = convert_to_tensor(to_retain, dtypes.bool)
    chosen.shape.assert_has_rank(1)
    chosen.shape[0].merge_with(sparse.values.shape[0])
    places = reshape(where(chosen), [-1])
    found = gather(sparse.indices, places), gather(sparse.values, places)
    return SparseTensor(*found, F.Identity(sparse.dense_shape))


def sparse_fill_empty_rows(
    sp_input: Any, default_value: Any, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """The SparseTensor with `default_value` at [row, 0, …] of every row that has no element.

    Returns:
        The SparseTensor, its indices ordered by rows, and a bool vector that says which rows were empty.

    Raises:
        InvalidArgumentError: (in the step) indices of rows that the shape does not have.
    """
    sparse = as_sparse(sp_input)
    with get_default_graph().name_scope(name or "SparseFillEmptyRows"):
        default = convert_to_tensor(default_value, sparse.values.dtype.base_dtype)
        parts = (sparse.indices, sparse.values, sparse.dense_shape)
        indices, values, empty, _ = sparse_fill_empty_rows_op.several(*parts, default)
        return SparseTensor(indices, values, sparse.dense_shape), empty


def sparse_mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """IndexedSlices without the slices at `mask_indices`, a vector of positions of the first dimension."""
    with a.graph.as_default(), a.graph.name_scope(name or "sparse_mask") as scope:
        indices, places = setdiff1d(a.indices, mask_indices)
        return IndexedSlices(gather(a.values, places, name=scope), indices, a.dense_shape)
