"""Reductions over segments of picked rows, where the number of segments is given; and the gradients of all
such reductions: as a whole tensor, or as the rows that were picked.
"""

from __future__ import annotations

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.numbers.elementwise import FLOATS, REAL
from flowstone.ops.numbers.segment_reductions import check_sorted, gather_rows, in_int64, invalid, sum_rows
from flowstone.ops.sparse.index_rows import check_rank
from flowstone.ops.sparse.sparse_segment_reductions import (
    IN_BAGS,
    check_picked,
    fit_together,
    machine_code_of,
    picked_gradient,
    segment_scale,
    sum_in_bags,
)

_INDEX = "type in [int32, int64] = int32"
_TYPES = f"Tidx: {_INDEX} ; Tsegmentids: {_INDEX}"


def _check_dims(node: Node) -> Dims:
    """The static shape of the rows. ValueError unless the arguments may fit together."""
    dims = node.dims(0)
    check_rank(node.dims(1), 1)
    merge(node.dims(1), node.dims(2))
    check_rank(node.dims(3), 0)
    if dims == ():
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    return dims


# ---- with the number of segments


def _numbered_segments(how: str, types: tuple[DType, ...]) -> OpDeclaration:
    declaration = op(
        f"SparseSegment{how}WithNumSegments",
        "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments -> output: T",
        f"{_TYPES} ; Tnumsegments: {_INDEX} ; sparse_gradient: bool = false",
        T=types,
        host=["num_segments"],
        capturable=False,
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        dims, count = _check_dims(node), node.constant(3)
        if count is not None and int(count) < 0:
            raise ValueError("Cannot specify a negative value for num_segments")
        return None if dims is None else (None if count is None else int(count), *dims[1:])

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        in_bags = env.device.type == "cpu" and node.dtype(0).torch in IN_BAGS
        native = machine_code_of(_KINDS[how], node, env)

        def reduce(
            data: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, num_segments: torch.Tensor
        ) -> torch.Tensor:
            if num_segments.ndim:
                raise invalid("num_segments should be a scalar")
            count = int(num_segments)
            if count < 0:
                raise invalid(f"segment ids must be >= 0 and num_segments = {count} not negative")
            if native and fit_together(data, indices, ids):
                found = native.reduce(data, indices, ids, count)
                if found is not None:
                    return found
            check_picked(data, indices, ids)
            if check_sorted(ids) > count:
                raise invalid(f"segment ids must be < num_segments: {int(ids[-1])} is not in [0, {count})")
            if in_bags and len(ids) and data.numel():
                total = sum_in_bags(data, indices, ids, count)
            else:
                total = sum_rows(data.index_select(0, indices), ids, count)
            return total if how == "Sum" else total * segment_scale(_KINDS[how], data, ids, count)

        return in_int64(node.dtype(0), reduce)

    @declaration.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        data, indices, ids = op.inputs[:3]
        if op.attributes["sparse_gradient"]:
            return picked_gradient(op, f"SparseSegment{how}GradV2", dy), None, None, None
        rows = shape(data)[0]
        if how == "Sum":
            return F.UnsortedSegmentSum(gather_rows(dy, ids), indices, rows), None, None, None
        return getattr(F, f"SparseSegment{how}Grad")(dy, indices, ids, rows), None, None, None

    return declaration


_KINDS = {"Sum": "sum", "Mean": "mean", "SqrtN": "sqrtn"}

sparse_segment_sum_op = _numbered_segments("Sum", REAL)
sparse_segment_mean_op = _numbered_segments("Mean", FLOATS)
sparse_segment_sqrt_n_op = _numbered_segments("SqrtN", FLOATS)


# ---- gradients


def _flows(how: str, dy: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, rows: int) -> torch.Tensor:
    """The gradient of each picked row. InvalidArgumentError for segments or indices that there are not."""
    if indices.ndim != 1 or ids.shape != indices.shape or not dy.ndim:
        raise invalid("segment_ids and indices should have same size.")
    if check_sorted(ids) > len(dy):
        raise invalid(f"Invalid number of segments: {int(ids[-1]) + 1} for {len(dy)} rows of gradients")
    if len(indices):
        low, high = (int(x) for x in torch.aminmax(indices))
        if low < 0 or high >= rows:
            raise invalid(f"Index {low if low < 0 else high} out of range [0, {rows}).")
    flows = dy.index_select(0, ids)
    if how != "Sum":  # of the rows that are picked: the others may be many
        flows *= segment_scale(_KINDS[how], dy, ids, len(dy)).index_select(0, ids)
    return flows


def _picked(how: str) -> OpDeclaration:
    declaration = op(
        f"SparseSegment{how}GradV2",
        "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32 -> output: T, "
        "sorted_unique_indices: Tidx",
        _TYPES,
        T=FLOATS,
        host=["dense_output_dim0"],
        capturable=False,
    ).no_gradient()

    @declaration.infer
    def _(node: Node) -> Shapes:
        dims = _check_dims(node)
        return [None if dims is None else (None, *dims[1:]), (None,)]

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        native = machine_code_of(_KINDS[how], node, env)

        def spread(
            dy: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, output_dim0: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            if native and fit_together(dy, indices, ids):
                picked = native.spread_picked(dy, indices, ids, int(output_dim0))
                if picked is not None:
                    return picked
            flows = _flows(how, dy, indices, ids, int(output_dim0))
            found, places = torch.unique(indices, return_inverse=True)
            return sum_rows(flows, places, len(found)), found

        return spread

    return declaration


sparse_segment_sum_grad_v2_op = _picked("Sum")
sparse_segment_mean_grad_v2_op = _picked("Mean")
sparse_segment_sqrt_n_grad_v2_op = _picked("SqrtN")

sparse_segment_sum_grad_op = op(
    "SparseSegmentSumGrad",
    "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32 -> output: T",
    _TYPES,
    T=FLOATS,
    host=["output_dim0"],
    capturable=False,
).no_gradient()


@sparse_segment_sum_grad_op.infer
def _(node: Node) -> Shapes:
    dims, rows = _check_dims(node), node.constant(3)
    return None if dims is None else (None if rows is None else int(rows), *dims[1:])


@sparse_segment_sum_grad_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    native = machine_code_of("sum", node, env)

    def spread(
        dy: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, output_dim0: torch.Tensor
    ) -> torch.Tensor:
        rows = int(output_dim0)
        if native and rows > 0 and fit_together(dy, indices, ids):
            found = native.spread(dy, indices, ids, rows)
            if found is not None:
                return found
        return sum_rows(_flows("Sum", dy, indices, ids, rows), indices, rows)

    return spread
