"""Inverses and determinants of square matrices [..., n, n].

A matrix of which a pivot is zero is refused by MatrixInverse; its determinant is zero.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.matrix_gradients import product
from flowstone.ops.algebra.matrix_shapes import (
    check_square,
    code_for_small,
    cubic,
    invalid,
    square_dims_of,
    square_shape,
)
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import shape

__all__ = ["matrix_determinant", "matrix_inverse"]

TYPES = (dtypes.float64, dtypes.float32, *dtypes.COMPLEX)

# ---- inverse

matrix_inverse_op = op(
    "MatrixInverse",
    "input: T -> output: T",
    "adjoint: bool = false",
    T=(*TYPES, dtypes.float16),
    cost=cubic(2.0),
    capturable=False,
    starts_team=True,
)
matrix_inverse_op.infer(square_shape)


@matrix_inverse_op.kernel(CPU, GPU)
def inverse_kernel(node: Node, env: Environment) -> Kernel:
    """The inverses, of the adjoints if `adjoint`."""
    adjoint = node.attributes["adjoint"]
    narrow = node.dtype(0) is dtypes.float16  # computed in float32
    small = code_for_small(dtypes.float32 if narrow else node.dtype(0), env)

    def invert(x: torch.Tensor) -> Any:
        check_square(x)
        x = x.float() if narrow else x
        found = small.invert(x, adjoint) if small is not None and small.fits(x) else None
        if found is not None:
            return found.half() if narrow else found
        inverse, info = torch.linalg.inv_ex(x.mH if adjoint else x)
        if bool(info.any()) or bool(torch.isnan(x).any()):
            raise invalid("Input is not invertible.")
        return inverse.half() if narrow else inverse

    return invert


@matrix_inverse_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    inverse = op.outputs[0]
    if op.attributes["adjoint"]:
        flow = product(product(inverse, dy, adjoint_b=True), inverse)
    else:
        flow = product(inverse, product(dy, inverse, adjoint_b=True), adjoint_a=True)
    return F.Neg(flow)


# ---- determinants


def determinant_shape(node: Node) -> Dims:
    """Infers a number for every square matrix."""
    return square_dims_of(node)[1]


matrix_determinant_op = op(
    "MatrixDeterminant", "input: T -> output: T", T=TYPES, cost=cubic(2 / 3), starts_team=True
)
matrix_determinant_op.infer(determinant_shape)


@matrix_determinant_op.kernel(CPU, GPU)
def determinant_kernel(node: Node, env: Environment) -> Kernel:
    """The determinants."""
    small = code_for_small(node.dtype(0), env)

    def compute(x: torch.Tensor) -> Any:
        check_square(x)
        found = small.determine(x) if small is not None and small.fits(x) else None
        return torch.linalg.det(x) if found is None else found

    return compute


@matrix_determinant_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    inverse = F.MatrixInverse(op.inputs[0], adjoint=True)
    return _per_matrix(dy * op.outputs[0]) * inverse  # TensorFlow conjugates no determinant


log_matrix_determinant_op = op(
    "LogMatrixDeterminant",
    "input: T -> sign: T, log_abs_determinant: T",
    T=TYPES,
    cost=cubic(2 / 3),
    starts_team=True,
)


@log_matrix_determinant_op.infer
def _(node: Node) -> list[Dims]:
    return [determinant_shape(node)] * 2


@log_matrix_determinant_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    small = code_for_small(node.dtype(0), env)

    def compute(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        check_square(x)
        pivots = small.pivots(x) if small is not None and small.fits(x) else None
        if pivots is not None:
            return pivots.sign().prod(-1), pivots.abs_().log_().sum(-1)
        sign, logarithm = torch.linalg.slogdet(x)
        return torch.where(torch.isnan(logarithm), logarithm, sign), logarithm.to(x.dtype)

    return compute


@log_matrix_determinant_op.gradient
def _(op: Operation, _: Tensor, dy: Tensor) -> Gradients:
    inverse = F.MatrixInverse(op.inputs[0], adjoint=True)
    return _per_matrix(dy) * inverse


def _per_matrix(numbers: Tensor) -> Tensor:
    """A number for every matrix, as a matrix of one element."""
    return F.Reshape(numbers, concat([shape(numbers), [1, 1]], 0))


# ---- public functions


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverses of square matrices [..., n, n], or of their adjoints.

    InvalidArgumentError in the step for a matrix that has none.
    """
    return matrix_inverse_op(input, adjoint=adjoint, name=name)


def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """The determinants [...] of square matrices [..., n, n]."""
    return matrix_determinant_op(input, name=name)
