"""Functions of ragged tensors: gather, concat, stack, tile, masks, ranges, and functions of flat values."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.arrays import gathering, joining, masks, packing
from flowstone.ops.arrays.searching import argsort
from flowstone.ops.arrays.shapes import expand_dims as expand_dense
from flowstone.ops.arrays.shapes import reshape, shape
from flowstone.ops.control.checks import assert_equal, assert_less, assert_non_negative
from flowstone.ops.numbers.reductions import reduce_min
from flowstone.ops.numbers.segment_reductions import unsorted_segment_sum
from flowstone.ops.ragged.conversions import from_tensor
from flowstone.ops.ragged.ragged_tensor import RaggedTensor, as_ragged_or_tensor
from flowstone.ops.ragged.row_layouts import counted, places

__all__ = [
    "batch_gather",
    "boolean_mask",
    "concat",
    "expand_dims",
    "gather",
    "map_flat_values",
    "range",
    "rows_between",
    "same_rows",
    "stack",
    "stack_dynamic_partitions",
    "tile",
]


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`op` of the innermost values of all ragged arguments, also in lists, with their rows; a step checks
    that all have the same rows. Without ragged arguments, `op` of them.

    ValueError for arguments of several ragged ranks, and for a result with another number of values.
    """
    found: list[RaggedTensor] = []

    def flat(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            found.append(value)
            return value.flat_values
        if isinstance(value, (list, tuple)):
            return type(value)([flat(item) for item in value])
        return {key: flat(item) for key, item in value.items()} if isinstance(value, dict) else value

    given, named = [flat(value) for value in args], {key: flat(value) for key, value in kwargs.items()}
    if not found:
        return op(*args, **kwargs)
    if any(each.ragged_rank != found[0].ragged_rank for each in found):
        raise ValueError("All ragged inputs must have the same ragged_rank.")
    like = found[0]
    with get_default_graph().control_dependencies(same_rows(found)):
        result = op(*given, **named)
    if result.shape[:1].as_list() and not result.shape[:1].is_compatible_with(like.flat_values.shape[:1]):
        raise ValueError(
            "tf.ragged.map_flat_values requires that the output of `op` have the same outer-dimension size "
            f"as flat_values of any ragged inputs. (output shape: {result.shape}; expected outer dimension "
            f"size: {like.flat_values.shape[0]})"
        )
    return like.with_flat_values(result)


def same_rows(ragged: Sequence[RaggedTensor]) -> list[Any]:
    """What checks that all have the same rows."""
    checks = []
    for other in ragged[1:]:
        for a, b in zip(ragged[0].nested_row_splits, other.nested_row_splits):
            if a is not b:
                b = b if a.dtype == b.dtype else F.Cast(b, DstT=a.dtype)
                checks.append(assert_equal(a, b, message="Inputs must have identical ragged splits"))
    return [check for check in checks if check is not None]


# ---- ranges


def range(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """A row for each start, limit and delta: ``start, start + delta, …`` before the limit. Without limits the
    starts are these, and rows begin with 0. Scalars count for all rows."""
    kind = dtypes.as_dtype(row_splits_dtype)
    if limits is None:
        starts, limits = 0, starts
    with get_default_graph().name_scope(name or "RaggedRange"):
        values = [x for x in (starts, limits, deltas) if isinstance(x, Tensor)]
        own = dtype or (values[0].dtype if values else None)
        found = [
            convert_to_tensor(x, None if isinstance(x, Tensor) else own) for x in (starts, limits, deltas)
        ]
        wanted = dtypes.as_dtype(dtype) if dtype else max((x.dtype for x in found), key=_width)
        first, last, step = [x if x.dtype == wanted else F.Cast(x, DstT=wanted) for x in found]
        splits, flat = F.RaggedRange.several(first, last, step, Tsplits=kind)
        return RaggedTensor.from_row_splits(flat, splits, validate=False)


def _width(dtype: Any) -> int:
    return [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64].index(dtype)


# ---- rows


def rows_between(ragged: Any, starts: Tensor, limits: Tensor) -> Any:
    """For each start and limit, both places of `values`, the rows between: `values` is that of `ragged`."""
    at, splits = places(starts, limits)
    return RaggedTensor.from_row_splits(gather(ragged.values, at), splits, validate=False)


def gather(params: Any, indices: Any, validate_indices: Any = None, name: str | None = None, axis: Any = None,
           batch_dims: int = 0) -> Any:  # fmt: skip
    """Rows of `params`, ragged or dense, in the form of `indices`, ragged or dense; along another axis of a
    ragged one what the indices name in each row. ValueError for others."""
    with get_default_graph().name_scope(name or "RaggedGather"):
        params, indices = as_ragged_or_tensor(params), as_ragged_or_tensor(indices)
        place = batch_dims if axis is None else axis
        if place or batch_dims:
            return _gather_within(params, indices, place, batch_dims)
        if isinstance(indices, RaggedTensor):
            return indices.with_values(gather(params, indices.values))
        if not isinstance(params, RaggedTensor):
            return gathering.gather(params, indices)
        if indices.shape.ndims is None:
            raise ValueError("indices must have a known rank")
        splits = list(params.nested_row_splits)
        found = F.RaggedGather.several(
            splits, params.flat_values, indices, OUTPUT_RAGGED_RANK=indices.shape.ndims + len(splits) - 1
        )
        ends, flat = list(found[0]), found[1]
        return RaggedTensor.from_nested_row_splits(flat, ends, validate=False) if ends else flat


def _gather_within(params: Any, indices: Any, axis: int, batch_dims: int) -> Any:
    """`gather` along another axis than the first of a ragged `params`."""
    rank = (params.shape.ndims or 0) if isinstance(params, RaggedTensor) else 0
    is_known = -rank <= axis < rank
    if not is_known or (batch_dims and (batch_dims, axis % rank) != (1, 1)):
        raise ValueError(f"A ragged gather cannot have the axis {axis} and {batch_dims} batch dimensions")
    axis %= rank
    if batch_dims:
        return batch_gather(params, indices)
    if not axis:
        return gather(params, indices)
    if axis > 1:
        inner = gather if isinstance(params.values, RaggedTensor) else gathering.gather
        return params.with_values(inner(params.values, indices, axis=axis - 1))
    if isinstance(indices, RaggedTensor):
        raise ValueError("Ragged indices name whole rows: axis=0")
    shortest = F.Cast(reduce_min(params.row_lengths()), DstT=indices.dtype)
    bounds = [assert_non_negative(indices), assert_less(indices, shortest, message="not in every row")]
    with get_default_graph().control_dependencies(bounds):
        every = gather(expand_dims(indices, 0), F.Fill(F.ExpandDims(params.nrows(), 0), 0))
    return batch_gather(params, every)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """For each row, the values of `params` at the places that the same row of `indices` names."""
    with get_default_graph().name_scope(name or "RaggedBatchGather"):
        params, indices = as_ragged_or_tensor(params), as_ragged_or_tensor(indices)
        if not isinstance(params, RaggedTensor):
            params = from_tensor(params)
        dense = not isinstance(indices, RaggedTensor)
        kind = params.row_splits.dtype
        rows = from_tensor(indices, row_splits_dtype=kind) if dense else indices.with_row_splits_dtype(kind)
        if isinstance(rows.values, RaggedTensor):
            return rows.with_values(batch_gather(params.values, rows.values))
        starts = gathering.gather(params.row_starts(), rows.value_rowids())
        flat = gather(params.values, F.Cast(rows.values, DstT=kind) + starts)
        found = rows.with_values(flat)
        return (
            reshape(flat, joining.concat([shape(indices), shape(flat)[1:]], 0))
            if dense and not isinstance(flat, RaggedTensor)
            else found
        )


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """What is true in `mask`, whose shape is the beginning of that of `data`: one dimension is kept, as rows
    of different lengths, but for a vector, whose result has no rows.

    ValueError for a mask of rank 0 or unknown rank.
    """
    with get_default_graph().name_scope(name or "RaggedMask"):
        data, mask = as_ragged_or_tensor(data), as_ragged_or_tensor(mask, dtypes.bool)
        if mask.shape.ndims is None:
            raise ValueError("mask.shape.ndims must be known statically.")
        if mask.shape.ndims == 0:
            raise ValueError("mask cannot be scalar.")
        if mask.shape.ndims == 1 and not isinstance(mask, RaggedTensor):
            if not isinstance(data, RaggedTensor):
                return masks.boolean_mask(data, mask)
            starts = masks.boolean_mask(data.row_starts(), mask)
            return rows_between(data, starts, masks.boolean_mask(data.row_limits(), mask))
        if not isinstance(mask, RaggedTensor):
            mask = from_tensor(mask)
        if not isinstance(data, RaggedTensor):
            data = from_tensor(data, row_splits_dtype=mask.row_splits.dtype)
        if data.row_splits.dtype != mask.row_splits.dtype:
            data, mask = (x.with_row_splits_dtype(dtypes.int64) for x in (data, mask))
        with get_default_graph().control_dependencies(_same_outer(data, mask)):
            if isinstance(mask.values, RaggedTensor) or mask.values.shape.ndims != 1:
                return data.with_values(boolean_mask(data.values, mask.values))
            kept = F.Cast(mask.values, DstT=data.row_splits.dtype)
            lengths = unsorted_segment_sum(kept, mask.value_rowids(), mask.nrows())
            return RaggedTensor.from_row_lengths(
                boolean_mask(data.values, mask.values), lengths, validate=False
            )


def _same_outer(a: RaggedTensor, b: RaggedTensor) -> list[Any]:
    if a.row_splits is b.row_splits:
        return []
    check = assert_equal(a.row_splits, b.row_splits, message="mask and data must have the same rows")
    return [] if check is None else [check]


# ---- joined


def concat(values: Any, axis: Any, name: str | None = None) -> Any:
    """Ragged and dense tensors of one rank, one after the other along `axis`. ValueError for none, other
    ranks, and an axis that is not known."""
    return _joined(values, axis, False, name or "RaggedConcat")


def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Ragged and dense tensors of one rank along a new dimension. ValueError as `concat`."""
    return _joined(values, axis, True, name or "RaggedStack")


def _joined(values: Any, axis: Any, stacked: bool, name: str) -> Any:
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    if not values:
        raise ValueError("rt_inputs may not be empty.")
    with get_default_graph().name_scope(name):
        items = [as_ragged_or_tensor(each) for each in values]
        if len(items) == 1 and not stacked:
            return items[0]
        ranks = {item.shape.ndims for item in items if item.shape.ndims is not None}
        if len(ranks) > 1:
            raise ValueError(f"All inputs must have the same rank, got {sorted(ranks)}")
        if ranks and axis < 0:
            axis += ranks.copy().pop() + (1 if stacked else 0)
        if axis < 0:
            raise ValueError("axis may only be negative if the rank is known")
        if ranks and axis >= next(iter(ranks)) + (1 if stacked else 0):
            raise ValueError(f"axis={axis} out of bounds")
        if (
            all(not isinstance(item, RaggedTensor) for item in items)
            and stacked
            and ((axis == 0 and ranks == {0}) or axis > 1)
        ):
            return packing.stack(items, axis)
        return _along(_of_one_rank(items), axis, stacked)


def _of_one_rank(items: list[Any]) -> list[Any]:
    """All with the most ragged dimensions that one has, and splits of one type."""
    most = max((item.ragged_rank for item in items if isinstance(item, RaggedTensor)), default=0)
    kinds = {item.row_splits.dtype for item in items if isinstance(item, RaggedTensor)}
    kind = kinds.pop() if len(kinds) == 1 else dtypes.int64
    found = []
    for item in items:
        if not isinstance(item, RaggedTensor):
            item = (
                item
                if most == 0 or item.shape.ndims == 1
                else from_tensor(item, ragged_rank=min(most, item.shape.ndims - 1), row_splits_dtype=kind)
            )
        found.append(
            _deeper(item.with_row_splits_dtype(kind), most) if isinstance(item, RaggedTensor) else item
        )
    return found


def _deeper(item: RaggedTensor, most: int) -> RaggedTensor:
    missing = most - item.ragged_rank
    if missing <= 0:
        return item
    flat = from_tensor(item.flat_values, ragged_rank=missing, row_splits_dtype=item.row_splits.dtype)
    return item.with_flat_values(flat)  # type: ignore[no-any-return]


def _along(items: list[Any], axis: int, stacked: bool) -> Any:
    if axis == 0:
        if not stacked:
            return _rows_after(items)
        lengths = [_rows(item) for item in items]
        return RaggedTensor.from_row_lengths(_rows_after(items), packing.stack(lengths), validate=False)
    if axis == 1:
        return _columns_after(items, stacked)
    inner = _along([item.values for item in items], axis - 1, stacked)
    with get_default_graph().control_dependencies(_same_outer_all(items)):
        return items[0].with_values(inner)


def _same_outer_all(items: list[Any]) -> list[Any]:
    return [check for other in items[1:] for check in _same_outer(items[0], other)]


def _rows(item: Any) -> Tensor:
    if isinstance(item, RaggedTensor):
        return item.nrows()
    found: Tensor = shape(item, out_type=dtypes.int64)[0]
    return found


def _rows_after(items: list[Any]) -> Any:
    if not any(isinstance(item, RaggedTensor) for item in items):
        return joining.concat(items, axis=0)
    values = _rows_after([item.values for item in items])
    splits, end = [items[0].row_splits], items[0].row_splits[-1]
    for item in items[1:]:
        splits.append(item.row_splits[1:] + end)
        end = end + item.row_splits[-1]
    return RaggedTensor.from_row_splits(values, joining.concat(splits, axis=0), validate=False)


def _columns_after(items: list[Any], stacked: bool) -> Any:
    """The rows of the first, each followed by the same row of the others."""
    count, rows = len(items), _rows(items[0])
    below = _rows_after(items)
    kind = below.row_splits.dtype if isinstance(below, RaggedTensor) else dtypes.int64
    rows = F.Cast(rows, DstT=kind)
    order = reshape(F.Transpose(reshape(counted(rows * count), [count, -1]), [1, 0]), [-1])
    mixed = gather(below, order)
    ends = counted(rows + 1) * count
    if stacked:
        return RaggedTensor.from_row_splits(mixed, ends, validate=False)
    return RaggedTensor.from_row_splits(
        mixed.values, gathering.gather(mixed.row_splits, ends), validate=False
    )


def expand_dims(input: Any, axis: int | None = None, name: str | None = None, dim: Any = None) -> Any:
    """A new dimension of size 1. ValueError for an axis that is not there."""
    axis = dim if axis is None else axis
    with get_default_graph().name_scope(name or "RaggedExpandDims"):
        input = as_ragged_or_tensor(input)
        if not isinstance(input, RaggedTensor):
            return expand_dense(input, axis)
        ndims = input.shape.ndims
        if axis is None or (axis < 0 and ndims is None):
            raise ValueError("axis must be given, and not be negative where the rank is not known")
        if axis < 0:
            axis += (ndims or 0) + 1
        if ndims is not None and not 0 <= axis <= ndims:
            raise ValueError(f"axis={axis} out of bounds: expected {-ndims - 1}<=axis<{ndims + 1}")
        if axis == 0:
            ends = packing.stack([F.ZerosLike(input.nrows()), input.nrows()])
            return RaggedTensor.from_row_splits(input, ends, validate=False)
        if axis == 1:
            return RaggedTensor.from_row_splits(input, counted(input.nrows() + 1), validate=False)
        return input.with_values(expand_dims(input.values, axis - 1))


def tile(input: Any, multiples: Any, name: str | None = None) -> Any:
    """The tensor repeated along each dimension; `multiples` are known numbers. ValueError for others."""
    with get_default_graph().name_scope(name or "RaggedTile"):
        counts = static_value(convert_to_tensor(multiples))
        if counts is None:
            raise ValueError("The multiples of a RaggedTensor must be known when the graph is built.")
        result = as_ragged_or_tensor(input)
        for axis, count in enumerate(counts.tolist()):
            if count == 1:
                continue
            if count == 0:
                raise ValueError("The multiples of a RaggedTensor must be positive.")
            result = concat([result] * count, axis=axis)
        return result


def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any, name: str | None = None) -> Any:
    """A row for each partition, with the data whose partition it is, in order; of a ragged `partitions` all
    elements count."""
    with get_default_graph().name_scope(name or "SegmentStack"):
        data, partitions = as_ragged_or_tensor(data), as_ragged_or_tensor(partitions)
        count = convert_to_tensor(num_partitions, partitions.dtype)
        if isinstance(partitions, RaggedTensor):
            if not isinstance(data, RaggedTensor):
                data = from_tensor(data, row_splits_dtype=partitions.row_splits.dtype)
            return stack_dynamic_partitions(data.values, partitions.values, num_partitions)
        if partitions.shape.ndims is None:
            raise ValueError("partitions must have known rank")
        if partitions.shape.ndims == 0:
            partitions, data = F.ExpandDims(partitions, 0), expand_dims(data, 0)
        for _ in builtins.range(partitions.shape.ndims - 1):
            data = (
                data.values
                if isinstance(data, RaggedTensor)
                else reshape(data, joining.concat([[-1], shape(data)[2:]], axis=0))
            )
        partitions = reshape(partitions, [-1])
        order = argsort(partitions, stable=True)
        ids = F.Cast(gathering.gather(partitions, order), DstT=dtypes.int64)
        return RaggedTensor.from_value_rowids(
            gather(data, order), ids, F.Cast(count, DstT=dtypes.int64), validate=False
        )
