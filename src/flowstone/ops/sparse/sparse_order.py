"""Sparse tensors put in order and reshaped: SparseReorder, SparseReshape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.arrays.arrays import invalid, whole_numbers
from flowstone.ops.sparse.elements import copied, taken
from flowstone.ops.sparse.index_rows import (
    LARGEST,
    check_rank,
    checked_parts,
    in_order,
    listed,
    positions,
    rows_at,
)

sparse_reorder_op = op(
    "SparseReorder",
    "input_indices: int64, input_values: T, input_shape: int64 -> output_indices: int64, output_values: T",
    T=None,
    host=["input_shape"],
    capturable=False,
    cost=10,
)


@sparse_reorder_op.infer
def _(node: Node) -> Shapes:
    indices, values = node.dims(0), node.dims(1)
    check_rank(indices, 2)
    check_rank(values, 1)
    check_rank(node.dims(2), 1)
    return [indices or (None, None), values or (None,)]


@sparse_reorder_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def reorder(rows: torch.Tensor, values: Any, shape: torch.Tensor) -> tuple[torch.Tensor, Any]:
        checked_parts(rows, values, shape)
        order = in_order(rows)
        if order is None:
            return rows.clone(), copied(values)
        return rows.index_select(0, order), taken(values, order)

    return reorder


@sparse_reorder_op.gradient
def _(op: Operation, d_indices: Tensor, d_values: Tensor) -> Gradients:
    """An element's gradient stands where the element went to."""
    indices, values, shape = op.inputs
    places = F.Range(np.int32(0), F.Size(values), np.int32(1))
    order = F.SparseReorder.several(indices, places, shape)[1]
    return None, F.GatherV2(d_values, F.InvertPermutation(order), np.int32(0)), None


sparse_reshape_op = op(
    "SparseReshape",
    "input_indices: int64, input_shape: int64, new_shape: int64 -> output_indices: int64, "
    "output_shape: int64",
    host=["input_shape", "new_shape", "output_shape"],
    capturable=False,
    cost=4,
).not_differentiable()


@sparse_reshape_op.infer
def _(node: Node) -> Shapes:
    indices, sizes = node.dims(0), node.dims(2)
    check_rank(indices, 2)
    check_rank(node.dims(1), 1)
    check_rank(sizes, 1)
    rank = None if sizes is None else sizes[0]
    return [(None if indices is None else indices[0], rank), (rank,)]


@sparse_reshape_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def reshape(
        rows: torch.Tensor, shape: torch.Tensor, new_shape: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if rows.ndim != 2:
            raise invalid(f"Input indices should be a matrix but received shape {listed(rows.shape)}")
        for what, sizes in (("Input shape", shape), ("Target shape", new_shape)):
            if sizes.ndim != 1:
                raise invalid(f"{what} should be a vector but received shape {listed(sizes.shape)}")
        before = shape.tolist()
        if rows.shape[1] != len(before):
            raise invalid(
                f"Input tensor rank must match input shape length: index rows have {rows.shape[1]} numbers, "
                f"but the shape is {listed(before)}"
            )
        after = _completed(before, new_shape.tolist())
        output_shape = whole_numbers(after)
        if before == after:
            return rows.clone(), output_shape
        return rows_at(positions(rows, before), after), output_shape

    return reshape


def _completed(before: list[int], after: list[int]) -> list[int]:
    """The new sizes, with the one that is -1 worked out. InvalidArgumentError where they do not fit."""
    for size in before:
        if size < 0:
            raise invalid(f"Expected shape dimensions to be non-negative, got {size}")
    total = math.prod(before)
    if total > LARGEST:
        raise invalid(f"The input shape {listed(before)} has more elements than 64 bits count")
    unknown = [axis for axis, size in enumerate(after) if size == -1]
    if len(unknown) > 1:
        raise invalid(f"only one output dimension may be -1, not both {unknown[0]} and {unknown[1]}")
    for axis, size in enumerate(after):
        if size < -1:
            raise invalid(f"size {axis} must be non-negative, not {size}")
    if unknown:
        rest = math.prod(size for size in after if size != -1)
        if not rest:
            raise invalid(
                "reshape cannot infer the missing input size for an empty tensor unless all specified input "
                "sizes are non-zero"
            )
        if total % rest:
            raise invalid(
                f"Input to reshape is a SparseTensor with {total} dense values, but the requested shape "
                f"requires a multiple of {rest}. input_shape={listed(before)} output_shape={listed(after)}"
            )
        after = [total // rest if size == -1 else size for size in after]
    if math.prod(after) != total:
        raise invalid(
            f"Input to reshape is a tensor with {total} dense values, but the requested shape has "
            f"{math.prod(after)}. input_shape={listed(before)} output_shape={listed(after)}"
        )
    return after
