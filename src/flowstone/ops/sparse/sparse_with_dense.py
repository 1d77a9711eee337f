"""Sparse tensors with dense ones: added to one, or combined with it where they have elements.

The dense side of SparseDenseCwise* is broadcast to the sparse one, never the other way round, and the result
has the elements' places: a sum is taken only there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.arrays import invalid, whole_copy
from flowstone.ops.numbers.elementwise import ALL_NUMBERS
from flowstone.ops.numbers.unsigned_integers import divided, modular
from flowstone.ops.sparse.elements import add_at
from flowstone.ops.sparse.index_rows import (
    check_rank,
    check_within,
    checked_parts,
    checked_positions,
    columns_of,
    listed,
    positions,
)

# ---- added to a dense tensor

sparse_tensor_dense_add_op = op(
    "SparseTensorDenseAdd",
    "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T -> output: T",
    T=ALL_NUMBERS,
    Tindices=dtypes.INDICES,
    host=["a_shape"],
    capturable=False,
    cost=2,
)


@sparse_tensor_dense_add_op.infer
def _(node: Node) -> Shapes:
    return node.dims(3)


@sparse_tensor_dense_add_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    def add(
        rows: torch.Tensor, values: torch.Tensor, shape: torch.Tensor, dense: torch.Tensor
    ) -> torch.Tensor:
        sizes = checked_parts(rows, values, shape, "a_")
        _check_same(sizes, dense)
        places = checked_positions(rows, sizes, "a_indices")
        result = whole_copy(dense)
        add_at(result.view(-1), places, values)
        return result

    return add


def _check_same(sizes: list[int], dense: torch.Tensor) -> None:
    if len(sizes) != dense.ndim:
        raise invalid(f"Two operands have different ranks; received: {len(sizes)} and {dense.ndim}")
    if not 1 <= dense.ndim <= 5:
        raise invalid(
            f"Only tensors with ranks between 1 and 5 are currently supported.  Tensor rank: {dense.ndim}"
        )
    for axis, (m, n) in enumerate(zip(sizes, dense.shape)):
        if m != n:
            raise invalid(
                f"Dimension {axis} does not equal (no broadcasting is supported): sparse side {m} vs dense "
                f"side {n}"
            )


@sparse_tensor_dense_add_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    return None, F.GatherNd(dy, op.inputs[0]), None, dy


# ---- element by element, at the places of the sparse tensor


def _dense_values(rows: torch.Tensor, sizes: list[int], dense: torch.Tensor) -> torch.Tensor:
    """The elements of `dense`, broadcast to the sizes, at these rows."""
    extra = len(sizes) - dense.ndim
    if not sizes or extra < 0 or any(n not in (1, m) for n, m in zip(dense.shape, sizes[extra:])):
        raise invalid(
            "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
            f"{listed(sizes)} vs. {listed(dense.shape)}"
        )
    if list(dense.shape) == sizes:
        return dense.reshape(-1)[checked_positions(rows, sizes, "sp_indices")]
    check_within(rows, sizes, "sp_indices")
    axes = [axis for axis, n in enumerate(dense.shape) if n != 1]
    if not axes:
        return dense.reshape(-1)[torch.zeros(len(rows), dtype=torch.int64, device=rows.device)]
    columns = [axis + extra for axis in axes]
    found = rows if columns == list(range(len(sizes))) else columns_of(rows, columns)
    return dense.reshape(-1)[positions(found, [dense.shape[axis] for axis in axes])]


def _check_divisor(dense: torch.Tensor) -> None:
    if not bool((dense != 0).all()):
        raise invalid("SparseDenseCwiseDiv cannot divide by zero, but the dense tensor contains zero")


def _truncated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.div(x, y, rounding_mode="trunc")


def _quotient(dtype: DType) -> Callable[..., torch.Tensor]:
    return divided(dtype, _truncated) if dtype.is_integer or dtype.is_quantized else torch.div


def _cwise(name: str, function_for: Callable[[DType], Callable[..., torch.Tensor]]) -> OpDeclaration:
    declaration = op(
        name,
        "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T -> output: T",
        T=ALL_NUMBERS,
        host=["sp_shape"],
        capturable=False,
        cost=4,
    )

    @declaration.infer
    def _(node: Node) -> Shapes:
        indices = node.dims(0)
        check_rank(indices, 2)
        return (None if indices is None else indices[0],)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        function = function_for(node.dtype(1))
        checks_zero = name == "SparseDenseCwiseDiv" and node.dtype(1).is_integer

        def combine(
            rows: torch.Tensor, values: torch.Tensor, shape: torch.Tensor, dense: torch.Tensor
        ) -> torch.Tensor:
            sizes = checked_parts(rows, values, shape, "sp_")
            if checks_zero:
                _check_divisor(dense)
            return function(values, _dense_values(rows, sizes, dense))

        return combine

    return declaration


sparse_dense_cwise_add_op = _cwise("SparseDenseCwiseAdd", lambda dtype: modular(dtype, torch.add))
sparse_dense_cwise_add_op.no_gradient()
sparse_dense_cwise_mul_op = _cwise("SparseDenseCwiseMul", lambda dtype: modular(dtype, torch.mul))
sparse_dense_cwise_div_op = _cwise("SparseDenseCwiseDiv", _quotient)


def _places_in_dense(op: Operation) -> tuple[Tensor, Tensor]:
    """For every element, the index row of its partner in the dense tensor; and that tensor's sizes."""
    indices, _, sizes, dense = op.inputs
    dense_sizes = F.Shape(dense, out_type=dtypes.int64)
    extra = F.Reshape(F.Sub(F.Size(sizes), F.Rank(dense)), np.array([1], np.int32))
    ones = F.Fill(extra, np.array(1, np.int64))
    scaling = F.FloorDiv(sizes, F.ConcatV2([ones, dense_sizes], np.int32(0)))
    begin = F.ConcatV2([np.array([0], np.int32), extra], np.int32(0))
    rows = F.Slice(F.FloorDiv(indices, scaling), begin, np.array([-1, -1], np.int32))
    return rows, dense_sizes


def _flows(op: Operation, to_values: Tensor, to_dense: Tensor) -> Gradients:
    """The gradients with respect to the values, and to the dense tensor, to which every element adds."""
    dense = op.inputs[3]
    if dense.ndim == 0:
        return None, to_values, None, F.Sum(to_dense, np.array([0], np.int32))
    rows, sizes = _places_in_dense(op)
    return None, to_values, None, F.SparseTensorDenseAdd(rows, to_dense, sizes, F.ZerosLike(dense))


def _partner(op: Operation) -> Tensor:
    """The dense tensor's element for each of the sparse tensor's."""
    dense = op.inputs[3]
    return dense if dense.ndim == 0 else F.GatherNd(dense, _places_in_dense(op)[0])


@sparse_dense_cwise_mul_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    values, partner = op.inputs[1], _partner(op)
    return _flows(op, F.Mul(dz, partner), F.Mul(dz, values))


@sparse_dense_cwise_div_op.gradient
def _(op: Operation, dz: Tensor) -> Gradients:
    values, partner = op.inputs[1], _partner(op)
    to_dense = F.Mul(dz, F.RealDiv(F.Neg(values), F.Square(partner)))
    return _flows(op, F.RealDiv(dz, partner), to_dense)
