"""MatrixSolveLs: the X [..., n, k] for which |A X - B|² + l2 |X|² is least, of matrices A [..., m, n].

The fast way solves the normal equations by a Cholesky factor: (A^H A + l2) X = A^H B, or, of matrices wider
than high, X = A^H Y with (A A^H + l2) Y = B. It wants full rank, or a regulariser. The other way
orthogonalises A, takes any rank, gives the least X, and leaves the regulariser out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.building import operand
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.matrix_kernels import SmallMatrices
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.algebra.inverses import TYPES
from flowstone.ops.algebra.matrix_gradients import product
from flowstone.ops.algebra.matrix_shapes import (
    at_least,
    check_sides,
    code_for_small,
    exactly,
    invalid,
    same_size,
)
from flowstone.ops.control.conditionals import cond
from flowstone.ops.numbers.elementwise import conjugate

__all__ = ["matrix_solve_ls"]


def _cost(node: Node) -> float:
    """Products of the matrix with itself and with both sides, by the lesser side."""
    dims = node.dims(0)
    sides = [work.ASSUMED_SIZE if size is None else size for size in (dims or (None, None))[-2:]]
    return 2.0 * work.count(node.inputs[0]) * min(sides) + 4.0 * work.count(node.inputs[1]) * min(sides)


matrix_solve_ls_op = op(
    "MatrixSolveLs",
    "matrix: T, rhs: T, l2_regularizer: double -> output: T",
    "fast: bool = true",
    T=TYPES,
    host=["l2_regularizer"],
    cost=_cost,
    capturable=False,
)


@matrix_solve_ls_op.infer
def least_squares_shape(node: Node) -> Dims:
    """Infers [..., n, k]."""
    exactly(0, node.dims(2))
    matrix, rhs = at_least(2, node.dims(0)), at_least(2, node.dims(1))
    if matrix is None or rhs is None:
        known = matrix if rhs is None else rhs
        sides = (None if matrix is None else matrix[-1], None if rhs is None else rhs[-1])
        return None if known is None else (*known[:-2], *sides)
    same_size(matrix[-2], rhs[-2])
    return (*(merge(matrix[:-2], rhs[:-2]) or ()), matrix[-1], rhs[-1])


@matrix_solve_ls_op.kernel(CPU, GPU)
def least_squares_kernel(node: Node, env: Environment) -> Kernel:
    """The solutions. InvalidArgumentError where the fast way finds no factor."""
    is_fast, small = node.attributes["fast"], code_for_small(node.dtype(0), env)

    def solve(matrix: torch.Tensor, rhs: torch.Tensor, l2_regularizer: torch.Tensor) -> torch.Tensor:
        check_sides(matrix, rhs)
        if l2_regularizer.ndim:
            raise invalid(f"l2_regularizer must be scalar, got shape {list(l2_regularizer.shape)}")
        l2 = float(l2_regularizer)
        if l2 < 0:
            raise invalid(f"l2_regularizer must be >= 0, got {l2}")
        if not matrix.shape[-1]:  # no unknowns
            return rhs.new_empty((*matrix.shape[:-2], 0, rhs.shape[-1]))
        return _by_normal_equations(matrix, rhs, l2, small) if is_fast else _orthogonal(matrix, rhs)

    return solve


def _by_normal_equations(
    a: torch.Tensor, b: torch.Tensor, l2: float, small: SmallMatrices | None
) -> torch.Tensor:
    is_deep = a.shape[-2] >= a.shape[-1]
    gramian = a.mH @ a if is_deep else a @ a.mH
    gramian.diagonal(0, -2, -1).add_(l2)
    if is_deep:
        return _of_definite(gramian, a.mH @ b, small)
    return a.mH @ _of_definite(gramian, b, small)


def _of_definite(matrix: torch.Tensor, rhs: torch.Tensor, small: SmallMatrices | None) -> torch.Tensor:
    """The solutions of systems of positive definite matrices, by Cholesky's factors."""
    if small is not None and small.fits(matrix, rhs) and (lower := small.factor(matrix)) is not None:
        middle = small.substitute(lower, rhs, True, False)
        found = None if middle is None else small.substitute(lower, middle, True, True)
        if found is not None:
            return found
    factor, info = torch.linalg.cholesky_ex(matrix)
    if bool(info.any()):
        raise invalid(
            "Input matrix was rank deficient or ill-conditioned. "
            "Try setting fast=False or provide a larger l2_regularizer > 0."
        )
    return torch.cholesky_solve(rhs, factor)


def _orthogonal(a: torch.Tensor, b: torch.Tensor) -> Any:
    finite = torch.isfinite(a).all(-1).all(-1)[..., None, None]
    a = torch.where(finite, a, torch.zeros_like(a))
    if a.device.type == "cpu" and a.numel() and b.numel():
        return torch.linalg.lstsq(a, b, driver="gelsy").solution
    return torch.linalg.pinv(a) @ b


@matrix_solve_ls_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    if not op.attributes["fast"]:
        raise ValueError("Gradient not defined for fast=False")
    matrix, rhs, l2 = op.inputs
    solution = op.outputs[0]

    def deep() -> list[Tensor]:
        """As many rows as columns or more."""
        inner = _solve_gramian(_gramian_factor(matrix, l2, True), dy)
        d_rhs = product(matrix, inner)
        rest = F.Sub(rhs, product(matrix, solution))
        back, other = d_rhs, solution
        if matrix.dtype.is_complex:  # where TensorFlow transposes what conjugates, too
            back, other = product(matrix, conjugate(inner)), conjugate(solution)
        d_matrix = F.Sub(product(rest, inner, adjoint_b=True), product(back, other, adjoint_b=True))
        return [d_matrix, d_rhs]

    def wide() -> list[Tensor]:
        factor = _gramian_factor(matrix, l2, False)
        d_rhs = _solve_gramian(factor, product(matrix, dy))
        inner = _solve_gramian(factor, rhs)
        rest = F.Sub(dy, product(matrix, d_rhs, adjoint_a=True))
        d_matrix = F.Sub(product(inner, rest, adjoint_b=True), product(d_rhs, solution, adjoint_b=True))
        return [d_matrix, d_rhs]

    return (*_by_shape(matrix, deep, wide), None)


def _by_shape(matrix: Tensor, deep: Callable[[], Any], wide: Callable[[], Any]) -> Any:
    """What one of both makes: `deep` where the matrices have as many rows as columns or more."""
    rows, columns = (None, None) if matrix.dims is None else matrix.dims[-2:]
    if rows is not None and columns is not None:
        return deep() if rows >= columns else wide()
    shape = F.Shape(matrix)
    sides = [
        F.StridedSlice(shape, [i], [i + 1], [1], shrink_axis_mask=1, end_mask=int(i == -1)) for i in (-2, -1)
    ]
    return cond(F.GreaterEqual(*sides), deep, wide)


def _gramian_factor(matrix: Tensor, l2: Tensor, is_deep: bool) -> Tensor:
    """The Cholesky factor of A^H A + l2, or of A A^H + l2."""
    gramian = product(matrix, matrix, adjoint_a=is_deep, adjoint_b=not is_deep)
    diagonal = F.MatrixDiagPart(gramian)
    return F.Cholesky(F.MatrixSetDiag(gramian, F.AddV2(diagonal, F.Cast(l2, DstT=matrix.dtype))))


def _solve_gramian(factor: Tensor, rhs: Tensor) -> Tensor:
    return F.MatrixTriangularSolve(factor, F.MatrixTriangularSolve(factor, rhs), adjoint=True)


# ---- public function


def matrix_solve_ls(
    matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """The X [..., n, k] for which |A X - rhs|² + l2_regularizer |X|² is least, for matrices A [..., m, n].

    Args:
        matrix: float or complex [..., m, n].
        rhs: of the same type, [..., m, k].
        l2_regularizer: a number, 0 or more.
        fast: whether to solve the normal equations: A must have full rank or the regulariser be positive,
            else the step raises InvalidArgumentError. Otherwise A is orthogonalised, which takes any rank,
            has no gradient, and leaves the regulariser out.
    """
    a = convert_to_tensor(matrix, name="matrix")
    if not fast:
        return matrix_solve_ls_op(a, rhs, l2_regularizer, fast=False, name=name)
    with a.graph.name_scope(name or "matrix_solve_ls"):
        b = operand(rhs, a.dtype, "rhs")
        l2 = convert_to_tensor(l2_regularizer, a.dtype.real_dtype, name="l2_regularizer")

        def deep() -> Tensor:
            return _solve_gramian(_gramian_factor(a, l2, True), product(a, b, adjoint_a=True))

        def wide() -> Tensor:
            return product(a, _solve_gramian(_gramian_factor(a, l2, False), b), adjoint_a=True)

        result: Tensor = _by_shape(a, deep, wide)
        return result
