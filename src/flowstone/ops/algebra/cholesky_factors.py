"""Cholesky: the lower triangular L with L L^H = A, of Hermitian positive definite matrices [..., n, n].

Only the lower triangle of A is read. CholeskyGrad is the gradient as an op, of real matrices; the gradient of
Cholesky is made of triangular solutions, which have gradients of their own.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.algebra.inverses import TYPES
from flowstone.ops.algebra.matrix_gradients import adjoint, product
from flowstone.ops.algebra.matrix_shapes import (
    check_square,
    code_for_small,
    cubic,
    invalid,
    square,
    square_shape,
)

__all__ = ["cholesky", "cholesky_solve"]

cholesky_op = op(
    "Cholesky", "input: T -> output: T", T=TYPES, cost=cubic(1 / 3), capturable=False, starts_team=True
)
cholesky_op.infer(square_shape)


@cholesky_op.kernel(CPU, GPU)
def cholesky_kernel(node: Node, env: Environment) -> Kernel:
    """The factors. InvalidArgumentError for a matrix that is not positive definite."""
    small = code_for_small(node.dtype(0), env)

    def factor(x: torch.Tensor) -> torch.Tensor:
        check_square(x)
        found = small.factor(x) if small is not None and small.fits(x) else None
        if found is not None:
            return found
        lower, info = torch.linalg.cholesky_ex(x)
        return lower if not bool(info.any()) else _without_numbers(x, lower, info)

    return factor


def _without_numbers(x: torch.Tensor, lower: torch.Tensor, info: torch.Tensor) -> torch.Tensor:
    """The factors, which are NaN for matrices that have NaN. InvalidArgumentError for others that failed."""
    has_nan = torch.isnan(x.tril()).any(-1).any(-1)
    if bool(((info != 0) & ~has_nan).any()):
        raise invalid("Cholesky decomposition was not successful. The input might not be valid.")
    return torch.where(has_nan[..., None, None], torch.full_like(lower, torch.nan).tril(), lower)


@cholesky_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    lower = op.outputs[0]
    middle = _half_of_diagonal(F.MatrixBandPart(product(lower, dy, adjoint_a=True), *_LOWER))
    right = F.MatrixTriangularSolve(lower, adjoint(middle), adjoint=True)
    flow = F.MatrixTriangularSolve(lower, adjoint(right), adjoint=True)
    return F.Mul(F.Add(flow, adjoint(flow)), convert_to_tensor(0.5, flow.dtype))


_LOWER = (-1, 0)  # the diagonals that a lower triangle keeps


def _half_of_diagonal(x: Tensor) -> Tensor:
    return F.MatrixSetDiag(x, F.Mul(F.MatrixDiagPart(x), convert_to_tensor(0.5, x.dtype)))


# ---- the gradient as an op

cholesky_grad_op = op(
    "CholeskyGrad",
    "l: T, grad: T -> output: T",
    T=(dtypes.float32, dtypes.float64),
    cost=cubic(3.0),
    starts_team=True,
)
cholesky_grad_op.no_gradient()


@cholesky_grad_op.infer
def gradient_shape(node: Node) -> Dims:
    """Infers the shape of both inputs, which are square."""
    return merge(square(node.dims(0)), square(node.dims(1)))


@cholesky_grad_op.kernel(CPU, GPU)
def gradient_kernel(node: Node, env: Environment) -> Kernel:
    """The gradient of the matrices, symmetric, for that of their factors."""

    def compute(lower: torch.Tensor, dy: torch.Tensor) -> Any:
        check_square(lower)
        if lower.shape != dy.shape:
            raise invalid(f"Inputs must have the same shape, got {list(lower.shape)} and {list(dy.shape)}")
        lower, dy = lower.tril(), dy.tril()
        middle = _lower_product(lower, dy)
        middle.diagonal(0, -2, -1).mul_(0.5)
        right = torch.linalg.solve_triangular(lower, middle, upper=False, left=False)
        flow = torch.linalg.solve_triangular(lower, right.mT, upper=False, left=False)
        return (flow + flow.mT).mul_(0.5)

    return compute


_HALVED = 256  # rows, from which half the work of a product is worth a second one


def _lower_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The lower triangle of aᵀ b, of lower triangles a and b."""
    size = a.shape[-1]
    if size < _HALVED:
        return (a.mT @ b).tril()
    half = size // 2
    out = torch.zeros_like(b)
    out[..., :half, :half] = a[..., :half].mT @ b[..., :half]
    out[..., half:, :] = a[..., half:, half:].mT @ b[..., half:, :]
    return out.tril_()


# ---- public functions


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The lower triangular L with L L^H = A, of Hermitian positive definite matrices A [..., n, n].

    InvalidArgumentError in the step for a matrix that is not positive definite.
    """
    return cholesky_op(input, name=name)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """The X [..., n, k] with A X = rhs, given the Cholesky factors of A [..., n, n]."""
    factor = convert_to_tensor(chol, name="chol")
    with factor.graph.name_scope(name or "cholesky_solve"):
        inner = F.MatrixTriangularSolve(factor, rhs)
        return F.MatrixTriangularSolve(factor, inner, adjoint=True)
