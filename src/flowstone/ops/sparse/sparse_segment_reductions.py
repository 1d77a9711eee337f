"""Reductions over sorted segments of rows that are picked first (SparseSegment*), and counts of values.

On a host machine code sums up the rows and spreads the gradients, where there is the native tier; what it
finds wrong is told by the checks of the other kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.machine_code import SegmentSums, segment_sums
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import merge
from flowstone.ops.arrays.constants import constant
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.numbers.elementwise import FLOATS, REAL
from flowstone.ops.numbers.reductions import reduce_max, reduce_prod
from flowstone.ops.numbers.segment_reductions import check_sorted, gather_rows, in_int64, invalid, sum_rows

__all__ = ["bincount", "sparse_segment_mean", "sparse_segment_sqrt_n", "sparse_segment_sum"]

_INDEX = "type in [int32, int64]"

_SPARSE = f"Tidx: {_INDEX} = int32 ; Tsegmentids: {_INDEX} = int32"


def segment_scale(how: str, data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor:
    """1, or for each segment 1 / its size or 1 / sqrt of it."""
    sizes = torch.bincount(ids, minlength=count).clamp(min=1).to(data.dtype)
    return (1 / sizes if how == "mean" else torch.rsqrt(sizes)).reshape([-1] + [1] * (data.ndim - 1))


def check_picked(data: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor) -> None:
    if indices.ndim != 1 or ids.shape != indices.shape:
        raise invalid("segment_ids and indices should have same size.")
    if not data.ndim:
        raise invalid("Shape must be at least rank 1")
    if indices.numel():
        low, high = (int(value) for value in torch.aminmax(indices))
        if low < 0 or high >= data.shape[0]:
            raise invalid(f"indices = {low if low < 0 else high} out of range [0, {data.shape[0]})")


def machine_code_of(how: str, node: Node, env: Environment) -> SegmentSums | None:
    """What sums up rows, the first input, on a host; see `framework/machine/machine_code.py`."""
    if env.device.type != "cpu":
        return None
    return segment_sums(how, *(node.dtype(i).torch for i in range(3)))


def fit_together(data: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor) -> bool:
    """Whether machine code can look at them: rows, and vectors of one length that is not 0."""
    return bool(data.ndim and indices.ndim == 1 and ids.shape == indices.shape and indices.shape[0])


IN_BAGS = frozenset({torch.float32, torch.float64})


def sum_in_bags(data: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor:
    """The sums of segments without the picked rows in between: a third to a half of the time."""
    segments = torch.arange(count, dtype=ids.dtype)
    starts = torch.searchsorted(ids, segments, out_int32=indices.dtype == torch.int32)
    table = data if data.ndim == 2 else data.reshape(data.shape[0], -1)
    bags = torch._embedding_bag_forward_only(table, indices, starts)[0]
    return bags if data.ndim == 2 else bags.reshape(count, *data.shape[1:])


def _sparse_segments(name: str, types: tuple[DType, ...], how: str) -> OpDeclaration:
    declaration = op(
        name,
        "data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T",
        f"{_SPARSE} ; sparse_gradient: bool = false",
        T=types,
        capturable=False,
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        dims = node.dims(0)
        merge(merge(node.dims(1), (None,)), node.dims(2))
        if dims == ():
            raise ValueError("Shape must be at least rank 1 but is rank 0")
        return None if dims is None else (None, *dims[1:])

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        native = machine_code_of(how, node, env)

        def reduce(data: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
            if native and fit_together(data, indices, ids) and (count := int(ids[-1]) + 1) > 0:
                found = native.reduce(data, indices, ids, count)
                if found is not None:
                    return found
            check_picked(data, indices, ids)
            count = check_sorted(ids)
            if in_bags and count and data.numel():
                total = sum_in_bags(data, indices, ids, count)
            else:
                total = sum_rows(data.index_select(0, indices), ids, count)
            return total if how == "sum" else total * segment_scale(how, data, ids, count)

        in_bags = env.device.type == "cpu" and node.dtype(0).torch in IN_BAGS
        return in_int64(node.dtype(0), reduce)

    return declaration


sparse_segment_sum_op = _sparse_segments("SparseSegmentSum", REAL, "sum")
sparse_segment_mean_op = _sparse_segments("SparseSegmentMean", FLOATS, "mean")
sparse_segment_sqrt_n_op = _sparse_segments("SparseSegmentSqrtN", FLOATS, "sqrtn")


def picked_gradient(op: Operation, name: str, dy: Tensor) -> IndexedSlices:
    """The gradient with respect to the data of the picked rows, by the op of this name."""
    data, indices, ids = op.inputs[:3]
    sizes = F.Shape(data)
    rows = F.GatherV2(sizes, np.int32(0), np.int32(0))
    values, places = getattr(F, name).several(dy, indices, ids, rows)
    return IndexedSlices(values, places, sizes)


def _sparse_segment_gradient(name: str, forward: OpDeclaration, how: str) -> OpDeclaration:
    declaration = op(
        name,
        "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32[] -> output: T",
        _SPARSE,
        T=FLOATS,
        host=["output_dim0"],
        capturable=False,
    ).no_gradient()

    @declaration.infer
    def _(node: Node) -> Shapes:
        dims, rows = node.dims(0), node.constant(3)
        if dims == ():
            raise ValueError("Shape must be at least rank 1 but is rank 0")
        return None if dims is None else (None if rows is None else int(rows), *dims[1:])

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        native = machine_code_of(how, node, env)

        def spread(
            dy: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, output_dim0: torch.Tensor
        ) -> torch.Tensor:
            rows = int(output_dim0)
            if native and rows > 0 and fit_together(dy, indices, ids):
                found = native.spread(dy, indices, ids, rows)
                if found is not None:
                    return found
            count = check_sorted(ids)
            if indices.ndim != 1 or ids.shape != indices.shape or count > dy.shape[0]:
                raise invalid("segment_ids and indices should have same size, and ids a row of the gradient.")
            if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < rows:
                raise invalid(f"Index out of range [0, {rows}).")
            flows = dy.index_select(0, ids)  # of the rows that are picked: the others may be many
            flows *= segment_scale(how, dy, ids, dy.shape[0]).index_select(0, ids)
            return sum_rows(flows, indices, rows)

        return spread

    @forward.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        data, indices, ids = op.inputs
        if op.attributes["sparse_gradient"]:
            return picked_gradient(op, f"{name}V2", dy), None, None
        rows = shape(data)[0]
        return getattr(F, name)(dy, indices, ids, rows), None, None

    return declaration


sparse_segment_mean_grad_op = _sparse_segment_gradient(
    "SparseSegmentMeanGrad", sparse_segment_mean_op, "mean"
)
sparse_segment_sqrt_n_grad_op = _sparse_segment_gradient(
    "SparseSegmentSqrtNGrad", sparse_segment_sqrt_n_op, "sqrtn"
)


@sparse_segment_sum_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    data, indices, ids = op.inputs
    if op.attributes["sparse_gradient"]:
        return picked_gradient(op, "SparseSegmentSumGradV2", dy), None, None
    rows = shape(data)[0]
    return F.UnsortedSegmentSum(gather_rows(dy, ids), indices, rows), None, None


# ---- counts

bincount_op = op(
    "Bincount",
    "arr: int32, size: int32[], weights: T -> bins: T",
    T=(dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64),
    host=["size"],
    capturable=False,
).no_gradient()


@bincount_op.infer
def _(node: Node) -> Shapes:
    size = node.constant(1)
    if size is not None and int(size) < 0:
        raise ValueError(f"size ({int(size)}) must be non-negative")
    return (None if size is None else int(size),)


@bincount_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    kind = node.dtype(2).torch

    def count(values: torch.Tensor, size: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        bins = int(size)
        if bins < 0:
            raise invalid(f"size ({bins}) must be non-negative")
        values = values.reshape(-1)
        if bool((values < 0).any()):
            raise invalid("Input arr must be non-negative!")
        weights = (
            weights.reshape(-1)
            if weights.numel()
            else torch.ones(values.shape, dtype=kind, device=values.device)
        )
        kept = values < bins
        return sum_rows(weights[kept], values[kept], bins)

    return count


# ---- public functions


def sparse_segment_sum(
    data: Any,
    indices: Any,
    segment_ids: Any,
    name: str | None = None,
    num_segments: Any = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """The sums of the rows `indices` of `data` by sorted segment numbers, one for each index.

    `num_segments`: how many segments there are, None for those up to the last number. `sparse_gradient`:
    whether the gradient for `data` is IndexedSlices of the rows that were picked.
    """
    return _segments("SparseSegmentSum", data, indices, segment_ids, name, num_segments, sparse_gradient)


def sparse_segment_mean(
    data: Any,
    indices: Any,
    segment_ids: Any,
    name: str | None = None,
    num_segments: Any = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """The means of the picked rows of each segment; see `sparse_segment_sum`."""
    return _segments("SparseSegmentMean", data, indices, segment_ids, name, num_segments, sparse_gradient)


def sparse_segment_sqrt_n(
    data: Any,
    indices: Any,
    segment_ids: Any,
    name: str | None = None,
    num_segments: Any = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """The sums of the picked rows of each segment over the square root of their number; see
    `sparse_segment_sum`.
    """
    return _segments("SparseSegmentSqrtN", data, indices, segment_ids, name, num_segments, sparse_gradient)


def _segments(
    op_name: str,
    data: Any,
    indices: Any,
    segment_ids: Any,
    name: str | None,
    num_segments: Any,
    sparse_gradient: bool,
) -> Tensor:
    declaration: OpDeclaration = getattr(F, op_name if num_segments is None else f"{op_name}WithNumSegments")
    count = [] if num_segments is None else [num_segments]
    return declaration(data, indices, segment_ids, *count, sparse_gradient=sparse_gradient, name=name)


def bincount(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dtypes.int32
) -> Tensor:
    """How often each value occurs in `arr` (int32, not negative), or the sums of the values' `weights`.

    The output has max(arr) + 1 elements, at least `minlength` and at most `maxlength`; `dtype` without
    weights.
    """
    with get_default_graph().name_scope("bincount"):
        arr = convert_to_tensor(arr, dtypes.int32, name="arr")
        occupied = F.Cast(F.Greater(reduce_prod(shape(arr)), np.int32(0)), DstT=dtypes.int32)
        size = occupied * (reduce_max(arr) + 1)
        if minlength is not None:
            size = F.Maximum(convert_to_tensor(minlength, dtypes.int32, "minlength"), size)
        if maxlength is not None:
            size = F.Minimum(convert_to_tensor(maxlength, dtypes.int32, "maxlength"), size)
        if weights is None:
            nothing = constant([], dtypes.as_dtype(dtype))
            return bincount_op(arr, size, nothing)
        return F.UnsortedSegmentSum(convert_to_tensor(weights, name="weights"), arr, size)
