"""Sums and maxima of sparse tensors along axes, dense or sparse, and the soft-max of their last dimension.

What a sparse tensor does not hold takes no part: a maximum is that of the elements that are there, and zero
where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.numbers.elementwise import ALL_NUMBERS, FLOATS, REAL
from flowstone.ops.sparse.elements import add_at
from flowstone.ops.sparse.index_rows import (
    are_within,
    check_countable,
    check_rank,
    checked_parts,
    columns_of,
    listed,
    numbered_together,
    positions,
)

_INPUTS = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32"
_HIGHEST_BIT = -(2**63)

_Reduce = Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor]


# ---- reductions of groups: values [n] of groups [n] into `count` results


def _sums(values: torch.Tensor, groups: torch.Tensor, count: int) -> torch.Tensor:
    return add_at(torch.zeros(count, dtype=values.dtype, device=values.device), groups, values)


def _maxima(values: torch.Tensor, groups: torch.Tensor, count: int) -> torch.Tensor:
    dtype = values.dtype
    if dtype in (torch.uint16, torch.uint32):
        return _maxima(values.long(), groups, count).to(dtype)
    if dtype is torch.uint64:  # in int64's order
        lowest = torch.full((count,), _HIGHEST_BIT, dtype=torch.int64, device=values.device)
        found = lowest.scatter_reduce_(0, groups, values.view(torch.int64) ^ _HIGHEST_BIT, "amax")
        return (found ^ _HIGHEST_BIT).view(dtype)
    zeros = torch.zeros(count, dtype=dtype, device=values.device)
    return zeros.scatter_reduce_(0, groups, values, "amax", include_self=False)


# ---- axes


def _axes_of(axes: torch.Tensor, rank: int) -> list[int]:
    """The axes, from the front. InvalidArgumentError outside [-rank, rank)."""
    if axes.ndim > 1:
        raise invalid(f"Expected reduction_axes to be a scalar or a vector; got shape: {listed(axes.shape)}")
    found = axes.reshape(-1).tolist()
    for axis in found:
        if not -rank <= axis < rank:
            raise invalid(f"Invalid reduction dimension {axis}, for input with {rank} dimensions.")
    return sorted({axis % rank for axis in found})


def _reduced(sizes: Sequence[int], axes: Sequence[int], keep_dims: bool) -> list[int]:
    if keep_dims:
        return [1 if axis in axes else size for axis, size in enumerate(sizes)]
    return [size for axis, size in enumerate(sizes) if axis not in axes]


# ---- dense results


def _check_groups(rows: torch.Tensor, sizes: Sequence[int]) -> None:
    if are_within(rows, sizes):
        return
    limits = torch.tensor(list(sizes), dtype=torch.int64, device=rows.device)
    outside = ((rows < 0) | (rows >= limits)).any(1)
    if bool(outside.any()):
        i = int(outside.nonzero()[0])
        raise errors.InternalError(
            None, None, f"The index {listed(rows[i])} of element {i} is outside of the result {listed(sizes)}"
        )


def _dense_reduction(name: str, types: tuple[DType, ...], reduce: _Reduce) -> OpDeclaration:
    declaration = op(
        name,
        f"{_INPUTS} -> output: T",
        "keep_dims: bool = false",
        T=types,
        host=["input_shape", "reduction_axes"],
        capturable=False,
        cost=4,
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        sizes, axes = node.constant(2), node.constant(3)
        if sizes is None or axes is None:
            return None
        found = [int(axis) % max(len(sizes), 1) for axis in axes.reshape(-1)]
        return tuple(_reduced(sizes.tolist(), found, node.attributes["keep_dims"]))

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        keep_dims = node.attributes["keep_dims"]

        def run(
            rows: torch.Tensor, values: torch.Tensor, shape: torch.Tensor, axes: torch.Tensor
        ) -> torch.Tensor:
            sizes = checked_parts(rows, values, shape, "input_")
            found = _axes_of(axes, len(sizes))
            check_countable(sizes, "input_shape")
            kept = _reduced(sizes, found, False)
            columns = (
                rows if not found else columns_of(rows, [i for i in range(len(sizes)) if i not in found])
            )
            result = torch.zeros(kept, dtype=values.dtype, device=values.device)  # before any work
            if len(rows):
                _check_groups(columns, kept)
                result = reduce(values, positions(columns, kept), result.numel())
            return result.reshape(_reduced(sizes, found, keep_dims))

        return run

    return declaration


sparse_reduce_sum_op = _dense_reduction("SparseReduceSum", ALL_NUMBERS, _sums)
sparse_reduce_max_op = _dense_reduction("SparseReduceMax", REAL, _maxima).no_gradient()


@sparse_reduce_sum_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """Every element gets the gradient of its sum."""
    indices, _, sizes, axes = op.inputs
    rank = F.Size(sizes)
    axes = F.FloorMod(F.Reshape(axes, np.array([-1], np.int32)), rank)
    ones = F.Fill(F.Shape(axes), np.array(1, np.int64))
    kept = F.DynamicStitch([F.Range(np.int32(0), rank, np.int32(1)), axes], [sizes, ones])
    rows = F.FloorDiv(indices, F.FloorDiv(sizes, F.Maximum(kept, np.array(1, np.int64))))
    return None, F.GatherNd(F.Reshape(dy, kept), rows), None, None


# ---- sparse results


def _sparse_reduction(name: str, types: tuple[DType, ...], reduce: _Reduce) -> OpDeclaration:
    declaration = op(
        name,
        f"{_INPUTS} -> output_indices: int64, output_values: T, output_shape: int64",
        "keep_dims: bool = false",
        T=types,
        host=["input_shape", "reduction_axes", "output_shape"],
        capturable=False,
        cost=10,
    ).no_gradient()

    @declaration.infer
    def _(node: Node) -> Shapes:
        return [None, None, None]

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        keep_dims = node.attributes["keep_dims"]

        def run(
            rows: torch.Tensor, values: torch.Tensor, shape: torch.Tensor, axes: torch.Tensor
        ) -> tuple[Any, ...]:
            sizes = checked_parts(rows, values, shape, "input_")
            found = _axes_of(axes, len(sizes))
            check_countable(sizes, "input_shape")
            columns = columns_of(rows, [i for i in range(len(sizes)) if i not in found])
            groups, count = _groups_of(columns)
            place = torch.empty(count, dtype=torch.int64, device=rows.device)
            place[groups] = torch.arange(len(rows), device=rows.device)  # any element of the group
            result = columns[place]
            if keep_dims:
                result = rows[place]
                result[:, found] = 0
            return (
                result,
                reduce(values, groups, count),
                torch.tensor(_reduced(sizes, found, keep_dims), dtype=torch.int64),
            )

        return run

    return declaration


def _groups_of(columns: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Which of the groups of equal rows each row is in, in the rows' order, and how many there are."""
    numbers = columns[:, 0] if columns.shape[1] == 1 else numbered_together(columns)[0]
    count = numbers.shape[0]
    if count < 2:
        return torch.zeros_like(numbers), count
    before, after = numbers[:-1], numbers[1:]
    if bool((after < before).any()):
        found, groups = torch.unique(numbers, return_inverse=True)
        return groups, found.shape[0]
    groups = torch.zeros_like(numbers, memory_format=torch.contiguous_format)
    torch.cumsum(after != before, 0, out=groups[1:])
    return groups, int(groups[-1]) + 1


sparse_reduce_sum_sparse_op = _sparse_reduction("SparseReduceSumSparse", ALL_NUMBERS, _sums)
sparse_reduce_max_sparse_op = _sparse_reduction("SparseReduceMaxSparse", REAL, _maxima)


# ---- soft-max

sparse_softmax_op = op(
    "SparseSoftmax",
    "sp_indices: int64, sp_values: T, sp_shape: int64 -> output: T",
    T=FLOATS,
    host=["sp_shape"],
    capturable=False,
    cost=20,
)


@sparse_softmax_op.infer
def _(node: Node) -> Shapes:
    check_rank(node.dims(0), 2)
    check_rank(node.dims(1), 1)
    check_rank(node.dims(2), 1)
    return node.dims(1) or (None,)


@sparse_softmax_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def normalize(rows: torch.Tensor, values: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
        sizes = checked_parts(rows, values, shape, "sp_")
        if len(sizes) < 2:
            raise invalid(f"Input should have rank >= 2, but received shape: {listed(sizes)}")
        check_countable(sizes, "sp_shape")
        groups, count = _groups_of(rows[:, :-1])
        powers = torch.exp(values - _maxima(values, groups, count)[groups])
        return powers / _sums(powers, groups, count)[groups]

    return normalize


@sparse_softmax_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """y (dy - the sum of y dy in the element's row)."""
    indices, _, sizes = op.inputs
    y = op.outputs[0]
    total = F.SparseReduceSum(indices, F.Mul(y, dy), sizes, np.array([-1], np.int32), keep_dims=True)
    return None, F.Mul(F.SparseDenseCwiseAdd(indices, dy, sizes, F.Neg(total)), y), None
