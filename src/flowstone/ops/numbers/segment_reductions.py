"""Reductions over segments: rows of a tensor that share a segment number go into one row of the output.

Sorted segment numbers (Segment*) start anywhere and leave zeros where a number is missing. Unsorted ones
(UnsortedSegment*) come with the number of segments; a negative number drops its row, and an empty segment
holds the reduction of nothing. `sparse_segment_reductions` picks the rows first.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.machine_code import segment_rows, unsorted_rows
from flowstone.framework.tensors.dispatch import dispatched
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import concatenate, merge
from flowstone.ops.arrays.constants import ones_like, zeros_like
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import rank, shape
from flowstone.ops.numbers.elementwise import ALL_NUMBERS, REAL, constant_like
from flowstone.ops.numbers.unsigned_integers import SIGNED

__all__ = [
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "unsorted_segment_max",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sum",
]

warnings.filterwarnings("ignore", message=r"index_reduce\(\) is in beta")

_INDEX = "type in [int32, int64]"


def invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


# ---- the reductions themselves: rows of `data` [n, ...] by `ids` [n] into `count` rows


_FEW = 2048  # elements that are added as fast where they lie


def sum_rows(data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor:
    """The rows of `data` [n, …] added up in rows `ids` [n] of `count`. IndexError or RuntimeError on a host
    where one is outside."""
    out = data.new_zeros((count, *data.shape[1:]))
    rows = data if data.numel() <= _FEW else data.contiguous()  # three to five times as fast
    return out.index_add_(0, ids.long(), rows)  # ten times as fast as by 32-bit indices


def _mean_rows(data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor:
    sizes = torch.bincount(ids, minlength=count).clamp(min=1)
    sizes = sizes.reshape([-1] + [1] * (data.ndim - 1))
    total = sum_rows(data, ids, count)
    if data.dtype.is_floating_point or data.dtype.is_complex:
        return total / sizes.to(data.dtype)
    return torch.div(total, sizes, rounding_mode="trunc").to(data.dtype)


def _reduce_rows(how: str, neutral: Callable[[torch.dtype], float]) -> Callable[..., torch.Tensor]:
    def reduce(data: torch.Tensor, ids: torch.Tensor, count: int, empty: float | None = None) -> torch.Tensor:
        start = neutral(data.dtype) if empty is None else empty
        out = torch.full((count, *data.shape[1:]), start, dtype=data.dtype, device=data.device)
        if data.dtype.is_complex:  # index_reduce_ lacks it
            for row, i in enumerate(ids.tolist()):
                out[i] *= data[row]
            return out
        if data.device.type == "cpu" and data.numel():  # two to four times as fast
            places = ids.long().view([-1] + [1] * (data.dim() - 1)).expand(data.shape)
            return out.scatter_reduce_(0, places, data, how, include_self=how == "prod")
        return out.index_reduce_(0, ids.long(), data, how, include_self=how == "prod")

    return reduce


def _lowest(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).min if dtype.is_floating_point else torch.iinfo(dtype).min


def _highest(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).max if dtype.is_floating_point else torch.iinfo(dtype).max


max_rows = _reduce_rows("amax", _lowest)
min_rows = _reduce_rows("amin", _highest)
prod_rows = _reduce_rows("prod", lambda dtype: 1)


def in_int64(dtype: DType, function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """`function` of data that goes through int64 where ATen lacks the type."""
    if dtype not in SIGNED:
        return function
    return lambda data, *rest: function(data.to(torch.int64), *rest).to(dtype.torch)


def _or_zero(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """`function`, with 0 in segments that have no rows."""

    def reduce(data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor:
        out = function(data, ids, count)
        missing = torch.ones(count, dtype=torch.bool, device=data.device)
        missing[ids.long()] = False
        if data.device.type == "cpu":  # in a fraction of the time of a mask
            return out.index_fill_(0, missing.nonzero().squeeze(1), 0)
        return out.masked_fill_(missing.reshape([-1] + [1] * (data.ndim - 1)), 0)

    return reduce


_max_rows_or_zero, _min_rows_or_zero = _or_zero(max_rows), _or_zero(min_rows)


def _of_bits(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """`function`, which compares, on uint64 numbers that int64 holds the bits of."""
    highest_bit = -(2**63)
    return lambda data, ids, count: function(data ^ highest_bit, ids, count) ^ highest_bit


_FOR_UINT64 = {function: _of_bits(function) for function in (max_rows, min_rows)}
_FOR_UINT64 |= {
    _max_rows_or_zero: _or_zero(_FOR_UINT64[max_rows]),
    _min_rows_or_zero: _or_zero(_FOR_UINT64[min_rows]),
}


def function_for(dtype: DType, function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return _FOR_UINT64.get(function, function) if dtype is dtypes.uint64 else function


# ---- sorted


def check_sorted(ids: torch.Tensor) -> int:
    """The number of segments. InvalidArgumentError unless `ids` is sorted and not negative."""
    if ids.numel() == 0:
        return 0
    if len(ids) > 1 and ids.diff().amin().item() < 0:
        raise invalid("segment ids are not increasing")
    if int(ids[0]) < 0:
        raise invalid("segment ids must be >= 0")
    return int(ids[-1]) + 1


def _sorted_segments(
    name: str, types: tuple[DType, ...], function: Callable[..., torch.Tensor]
) -> OpDeclaration:
    declaration = op(
        name,
        "data: T, segment_ids: Tindices -> output: T",
        f"Tindices: {_INDEX}",
        T=types,
        capturable=False,
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        dims = node.dims(0)
        merge(node.dims(1), (None,))
        if dims == ():
            raise ValueError("Shape must be at least rank 1 but is rank 0")
        return None if dims is None else (None, *dims[1:])

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        def reduce(data: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
            if ids.ndim != 1 or not data.ndim or ids.shape[0] != data.shape[0]:
                raise invalid("segment_ids should be a vector of the size of dimension 0 of input.")
            if native is not None and ids.numel() and (count := int(ids[-1]) + 1) > 0:
                found = native(data, ids, count)
                if found is not None:
                    return found
            return reduce_rows(data, ids, check_sorted(ids))

        reduce_rows = function_for(node.dtype(0), function)
        native = None
        if env.device.type == "cpu" and node.dtype(0) not in SIGNED:
            how = name.removeprefix("Segment").lower()
            native = segment_rows(how, node.dtype(0).torch, node.dtype(1).torch)
        return in_int64(node.dtype(0), reduce)

    return declaration


segment_sum_op = _sorted_segments("SegmentSum", ALL_NUMBERS, sum_rows)
segment_mean_op = _sorted_segments("SegmentMean", ALL_NUMBERS, _mean_rows)
segment_max_op = _sorted_segments("SegmentMax", REAL, _max_rows_or_zero)
segment_min_op = _sorted_segments("SegmentMin", REAL, _min_rows_or_zero)
segment_prod_op = _sorted_segments("SegmentProd", ALL_NUMBERS, prod_rows)


@segment_sum_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return gather_rows(dy, op.inputs[1]), None


def gather_rows(params: Tensor, ids: Tensor) -> Tensor:
    return F.GatherV2(params, ids, np.int32(0))


@segment_mean_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    data, ids = op.inputs
    rank_of, sizes = rank(data), shape(ids)
    behind = F.Fill(F.ExpandDims(rank_of - 1, 0), np.int32(1))
    ones = F.Fill(concat([sizes, behind], 0), constant_like(1, dy))
    return gather_rows(dy / F.SegmentSum(ones, ids), ids), None


@segment_max_op.gradient
@segment_min_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    data, ids = op.inputs
    zeros = zeros_like(data)
    chosen = F.Equal(data, gather_rows(op.outputs[0], ids))
    ties = F.SegmentSum(F.Cast(chosen, DstT=dy.dtype), ids)
    return F.Select(chosen, gather_rows(dy / ties, ids), zeros), None


@segment_prod_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    data, ids = op.inputs
    zero, one = constant_like(0, dy), constant_like(1, dy)
    is_zero = F.Equal(data, zero)
    zeros = F.SegmentSum(F.Cast(is_zero, DstT=dtypes.int32), ids)
    flow = F.SelectV2(F.Greater(zeros, np.int32(1)), zero, dy)
    nonzero = F.SelectV2(is_zero, one, data)
    rest = F.SegmentProd(nonzero, ids)
    others = F.SelectV2(is_zero, gather_rows(rest, ids), F.RealDiv(gather_rows(op.outputs[0], ids), nonzero))
    return F.Mul(gather_rows(flow, ids), others), None


# ---- unsorted


def _unsorted_segments(
    name: str, types: tuple[DType, ...], function: Callable[..., torch.Tensor]
) -> OpDeclaration:
    declaration = op(
        name,
        "data: T, segment_ids: Tindices, num_segments: Tnumsegments[] -> output: T",
        f"Tindices: {_INDEX} ; Tnumsegments: {_INDEX} = int32",
        T=types,
        host=["num_segments"],
        capturable=False,
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        data, ids, count = node.dims(0), node.dims(1), node.constant(2)
        merge(node.dims(2), ())
        size = None if count is None else count.item()
        if size is not None and size < 0:
            raise ValueError(f"Dimension size, given by scalar input 2, must be non-negative but is {size}")
        if data is None or ids is None:
            return None
        if len(ids) > len(data):
            raise ValueError(f"Shape must be at least rank {len(ids)} but is rank {len(data)}")
        merge(ids, data[: len(ids)])
        return concatenate((size,), data[len(ids) :])

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        def reduce(data: torch.Tensor, ids: torch.Tensor, num_segments: int) -> torch.Tensor:
            count = int(num_segments)
            if tuple(data.shape[: ids.ndim]) != tuple(ids.shape):
                shapes = f"{list(data.shape)} does not start with segment_ids.shape = {list(ids.shape)}"
                raise invalid(f"data.shape = {shapes}")
            if count < 0:
                raise invalid(f"num_segments must be non-negative, got {count}")
            rows = data.reshape(ids.numel(), *data.shape[ids.ndim :]) if ids.ndim != 1 else data
            if native is not None and count and data.numel() > (_FEW if rows.ndim == 1 else 0):
                found = native(rows, ids.reshape(-1), count)
                if found is not None:
                    return found
            if is_checked and data.numel() and count:
                with contextlib.suppress(IndexError, RuntimeError):
                    return reduce_rows(rows, ids.reshape(-1), count)
            return reduce_rows(rows, _drop_negative(ids, count), count + 1)[:count]

        reduce_rows = function_for(node.dtype(0), function)
        is_checked = function is sum_rows and env.device.type == "cpu"  # by ATen, at no cost
        native = None
        if env.device.type == "cpu" and node.dtype(0) not in SIGNED:
            how = name.removeprefix("UnsortedSegment").lower()
            native = unsorted_rows(how, node.dtype(0).torch, node.dtype(1).torch)
        return in_int64(node.dtype(0), reduce)

    return declaration


def _drop_negative(ids: torch.Tensor, count: int) -> torch.Tensor:
    """Flat segment numbers, the negative ones turned into `count`, a row more. InvalidArgumentError beyond
    that.
    """
    flat = ids.reshape(-1)
    if flat.numel():
        low, high = (int(value) for value in torch.aminmax(flat))
        if high >= count:
            at = int((flat >= count).nonzero()[0])
            raise invalid(f"segment_ids[{at}] = {int(flat[at])} is out of range [0, {count})")
        if low < 0:
            flat = torch.where(flat < 0, count, flat)
    return flat


unsorted_segment_sum_op = _unsorted_segments("UnsortedSegmentSum", ALL_NUMBERS, sum_rows)
unsorted_segment_max_op = _unsorted_segments("UnsortedSegmentMax", REAL, max_rows)
unsorted_segment_min_op = _unsorted_segments("UnsortedSegmentMin", REAL, min_rows)
unsorted_segment_prod_op = _unsorted_segments("UnsortedSegmentProd", ALL_NUMBERS, prod_rows)


def _kept(rows: Tensor, present: Tensor) -> Tensor:
    """The rows, zero where they are not present."""
    return F.Select(present, rows, zeros_like(rows))


def _valid(ids: Tensor) -> Tensor:
    return F.Maximum(ids, zeros_like(ids))


def _present(ids: Tensor, rows: Tensor) -> Tensor:
    """Which elements of the rows are of ids that are not negative."""
    present = F.GreaterEqual(ids, 0)
    if rows.dims is None or present.dims is None:
        behind = F.Fill(F.ExpandDims(rank(rows) - rank(present), 0), np.int32(1))
        present = F.Reshape(present, concat([shape(present), behind], 0))
    else:
        for _ in range(len(rows.dims) - len(present.dims)):
            present = F.ExpandDims(present, -1)
    return present & ones_like(rows, dtypes.bool)


@unsorted_segment_sum_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    ids = op.inputs[1]
    rows = gather_rows(dy, _valid(ids))
    return _kept(rows, _present(ids, rows)), None, None


@unsorted_segment_max_op.gradient
@unsorted_segment_min_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    data, ids, count = op.inputs
    valid_ids = _valid(ids)
    rows = gather_rows(op.outputs[0], valid_ids)
    present = _present(ids, rows)
    chosen = F.LogicalAnd(F.Equal(data, _kept(rows, present)), present)
    ties = F.UnsortedSegmentSum(F.Cast(chosen, DstT=dy.dtype), ids, count)
    flow = _kept(gather_rows(dy / ties, valid_ids), present)
    return _kept(flow, chosen), None, None


@unsorted_segment_prod_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """The product of the others: the product over the element, or where it is zero that of the rest,
    without zeros.
    """
    data, ids, count = op.inputs
    is_zero = F.Equal(data, 0)
    zeros = F.UnsortedSegmentSum(F.Cast(is_zero, DstT=dtypes.int32), ids, count)
    flow = F.Select(F.Greater(zeros, np.int32(1)), zeros_like(dy), dy)
    rest = F.UnsortedSegmentProd(F.Select(is_zero, ones_like(data), data), ids, count)
    valid_ids = _valid(ids)
    product = gather_rows(op.outputs[0], valid_ids)
    others = gather_rows(rest, valid_ids)
    others = F.Select(is_zero, others, product / data)
    flow = gather_rows(flow, valid_ids)
    return _kept(flow, _present(ids, flow)) * others, None, None


# ---- public functions


def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The sums of the rows of each segment; `segment_ids` [n] sorted, of int32 or int64, for `data` [n,
    ...].
    """
    return segment_sum_op(data, segment_ids, name=name)


def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The means of the rows of each segment; see `segment_sum`."""
    return segment_mean_op(data, segment_ids, name=name)


def segment_max(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The maxima of the rows of each segment; see `segment_sum`."""
    return segment_max_op(data, segment_ids, name=name)


def segment_min(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The minima of the rows of each segment; see `segment_sum`."""
    return segment_min_op(data, segment_ids, name=name)


def segment_prod(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The products of the rows of each segment; see `segment_sum`."""
    return segment_prod_op(data, segment_ids, name=name)


@dispatched("segments")
def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The sums of the segments of `data`, whose shape starts with that of `segment_ids`, as [num_segments,
    ...].
    """
    return unsorted_segment_sum_op(data, segment_ids, num_segments, name=name)


@dispatched("segments")
def unsorted_segment_max(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The maxima of the segments; the lowest number of the type for an empty one. See
    `unsorted_segment_sum`.
    """
    return unsorted_segment_max_op(data, segment_ids, num_segments, name=name)


@dispatched("segments")
def unsorted_segment_min(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The minima of the segments; the highest number of the type for an empty one. See
    `unsorted_segment_sum`.
    """
    return unsorted_segment_min_op(data, segment_ids, num_segments, name=name)


@dispatched("segments")
def unsorted_segment_prod(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The products of the segments; 1 for an empty one. See `unsorted_segment_sum`."""
    return unsorted_segment_prod_op(data, segment_ids, num_segments, name=name)
