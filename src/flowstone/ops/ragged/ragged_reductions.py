"""Sums, means and the like of ragged tensors, over all values or over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays import constants as arrays
from flowstone.ops.arrays.gathering import gather
from flowstone.ops.arrays.joining import concat
from flowstone.ops.numbers import reductions as dense
from flowstone.ops.numbers import segment_reductions as segments
from flowstone.ops.ragged.ragged_tensor import RaggedTensor, as_ragged_or_tensor
from flowstone.ops.ragged.row_layouts import places, splits_of_lengths

__all__ = [
    "reduce_all", "reduce_any", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum",
    "segment_aggregate",
]  # fmt: skip


def segment_aggregate(op: Callable[..., Any], data: Any, segment_ids: Any, num_segments: Any) -> Any:
    """An unsorted segment reduction of rows: values at the same place of rows of one segment are reduced."""
    data, segment_ids = as_ragged_or_tensor(data), as_ragged_or_tensor(segment_ids)
    if isinstance(segment_ids, RaggedTensor):
        if not isinstance(data, RaggedTensor):
            raise ValueError("If segment_ids is ragged, then data must be ragged, too.")
        return segment_aggregate(op, data.values, segment_ids.values, num_segments)
    if not isinstance(data, RaggedTensor):
        return op(data, segment_ids, num_segments)
    kind = data.row_splits.dtype
    longest = segments.unsorted_segment_max(data.row_lengths(), segment_ids, num_segments)
    splits = splits_of_lengths(F.Maximum(longest, arrays.zeros_like(longest)))
    starts = gather(splits[:-1], segment_ids)
    at, _ = places(starts, starts + data.row_lengths())
    found = segment_aggregate(op, data.values, at, splits[-1])
    return RaggedTensor.from_row_splits(found, F.Cast(splits, DstT=kind), validate=False)


def _reducer(name: str, whole: Callable[..., Any], by_segment: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(
        input_tensor: Any,
        axis: Any = None,
        keepdims: Any = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: Any = None,
    ) -> Any:
        axis = reduction_indices if axis is None else axis
        with get_default_graph().name_scope(name or f"RaggedReduce{label}"):
            return _reduced(whole, by_segment, input_tensor, axis, bool(keepdims or keep_dims))

    label = name.capitalize()
    reduce.__name__ = reduce.__qualname__ = f"reduce_{name}"
    reduce.__doc__ = (
        f"`tf.reduce_{name}` of a ragged tensor: over `axis`, a number or list, or all values. ValueError "
        "for an axis that is not known or not there."
    )
    return reduce


def _reduced(whole: Any, by_segment: Any, value: Any, axis: Any, keep: bool) -> Any:
    ragged = as_ragged_or_tensor(value)
    if not isinstance(ragged, RaggedTensor):
        return whole(ragged, axis=axis, keepdims=keep)
    if keep:
        raise ValueError("keepdims=True is not supported for RaggedTensors.")
    if axis is None:
        return whole(ragged.flat_values, axis=None)
    if isinstance(axis, Tensor):
        axis = static_value(axis)
        if axis is None:
            raise ValueError("axis must be known at graph construction time.")
        axis = axis.tolist()
    if isinstance(axis, (list, tuple)):
        if not axis:
            return ragged
        axes = sorted({_positive(each, ragged) for each in axis}, reverse=True)
        for each in axes:
            ragged = _reduced(whole, by_segment, ragged, each, False)
        return ragged
    return _over(whole, by_segment, ragged, _positive(axis, ragged))


def _positive(axis: int, ragged: RaggedTensor) -> int:
    ndims = ragged.shape.ndims
    if axis < 0 and ndims is None:
        raise ValueError("axis may only be negative if the rank is known")
    found = axis + (ndims or 0) if axis < 0 else axis
    if found < 0 or (ndims is not None and found >= ndims):
        raise ValueError(f"axis={axis} out of bounds: expected {-(ndims or 0)}<=axis<{ndims}")
    return found


def _over(whole: Any, by_segment: Any, ragged: RaggedTensor, axis: int) -> Any:
    if axis == 0:
        zero = convert_to_tensor([0], ragged.row_splits.dtype)
        longest = dense.reduce_max(concat([ragged.row_lengths(), zero], axis=0))
        columns, _ = places(ragged.row_starts() * 0, ragged.row_lengths())
        return segment_aggregate(by_segment, ragged.values, columns, longest)
    if axis == 1:
        return segment_aggregate(by_segment, ragged.values, ragged.value_rowids(), ragged.nrows())
    return ragged.with_values(_reduced(whole, by_segment, ragged.values, axis - 1, False))


reduce_sum = _reducer("sum", dense.reduce_sum, segments.unsorted_segment_sum)
reduce_prod = _reducer("prod", dense.reduce_prod, segments.unsorted_segment_prod)
reduce_min = _reducer("min", dense.reduce_min, segments.unsorted_segment_min)
reduce_max = _reducer("max", dense.reduce_max, segments.unsorted_segment_max)


def reduce_mean(input_tensor: Any, axis: Any = None, keepdims: Any = None, name: str | None = None,
                reduction_indices: Any = None, keep_dims: Any = None) -> Any:  # fmt: skip
    """`tf.reduce_mean` of a ragged tensor: the sum over `axis`, divided by how many values it has; of
    integers a float64.
    """
    with get_default_graph().name_scope(name or "RaggedReduceMean"):
        ragged = as_ragged_or_tensor(input_tensor)
        axis, keep = reduction_indices if axis is None else axis, keepdims or keep_dims
        total = reduce_sum(ragged, axis, keep)
        count = reduce_sum(ragged.with_flat_values(arrays.ones_like(ragged.flat_values)), axis, keep)
        if isinstance(total, RaggedTensor):
            return total.with_flat_values(total.flat_values / count.flat_values)
        return total / count


def _of_bools(name: str, reducer: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(input_tensor: Any, axis: Any = None, keepdims: Any = None, name: str | None = None,
               reduction_indices: Any = None, keep_dims: Any = None) -> Any:  # fmt: skip
        with get_default_graph().name_scope(name or f"RaggedReduce{label}"):
            ragged = as_ragged_or_tensor(input_tensor, dtypes.bool)
            numbers = ragged.with_flat_values(F.Cast(ragged.flat_values, DstT=dtypes.int32))
            found = reducer(numbers, axis, keepdims, None, reduction_indices, keep_dims)
            if isinstance(found, RaggedTensor):
                return found.with_flat_values(F.Cast(found.flat_values, DstT=dtypes.bool))
            return F.Cast(found, DstT=dtypes.bool)

    label = name.capitalize()
    reduce.__name__ = reduce.__qualname__ = f"reduce_{name}"
    reduce.__doc__ = (
        f"`tf.reduce_{name}` of a ragged tensor over `axis`, a number or list, or over all values."
    )
    return reduce


reduce_any, reduce_all = _of_bools("any", reduce_sum), _of_bools("all", reduce_prod)
