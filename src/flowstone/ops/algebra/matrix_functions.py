"""Functions of square matrices [..., n, n]: exponential, principal logarithm and principal square root.

The root is by Newton's iteration (the product form of Denman and Beavers, scaled by determinants), or, where
that does not give the matrix back, that of the eigenvalues in the basis of the eigenvectors. The logarithm is
the other way round: where that basis is so skew that it does not give the matrix back, it is that of a root
near the identity, by Gauss-Legendre quadrature of its integral (Higham, Functions of Matrices, 6.3 and 11.4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine.matrix_kernels import ComplexEigenvalues, SmallMatrices
from flowstone.framework.machine.number_code import complex_eigenvalues
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.ops.algebra import decompositions
from flowstone.ops.algebra.inverses import TYPES
from flowstone.ops.algebra.matrix_gradients import adjoint, transposed
from flowstone.ops.algebra.matrix_shapes import check_square, code_for_small, cubic, square_shape

__all__ = ["matrix_square_root"]

_TYPES = (*TYPES, dtypes.float16)

# ---- exponential

matrix_exponential_op = op("MatrixExponential", "input: T -> output: T", T=_TYPES, cost=cubic(20.0))
matrix_exponential_op.infer(square_shape)


@matrix_exponential_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    is_half = node.dtype(0) is dtypes.float16

    def compute(x: torch.Tensor) -> Any:
        check_square(x)
        if not x.numel():
            return x.clone()
        return torch.linalg.matrix_exp(x.float()).half() if is_half else torch.linalg.matrix_exp(x)

    return compute


@matrix_exponential_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """The derivative along dY stands beside the exponential of [[A^H, dY], [0, A^H]]."""
    x = adjoint(op.inputs[0])
    upper, lower = F.ConcatV2([x, dy], -1), F.ConcatV2([F.ZerosLike(x), x], -1)
    both = F.MatrixExponential(F.ConcatV2([upper, lower], -2))
    size = F.StridedSlice(F.Shape(x), [-1], [0], [1], end_mask=1)
    start, end = F.ConcatV2([[0, 0], size], 0), F.ConcatV2([[0], size, [0]], 0)
    return F.StridedSlice(both, start, end, [1, 1, 1], ellipsis_mask=1, begin_mask=2, end_mask=4)


# ---- square root and logarithm

matrix_square_root_op = op(
    "MatrixSquareRoot", "input: T -> output: T", T=_TYPES, cost=cubic(30.0), capturable=False
)
matrix_square_root_op.infer(square_shape)
matrix_logarithm_op = op(
    "MatrixLogarithm", "input: T -> output: T", T=dtypes.COMPLEX, cost=cubic(60.0), capturable=False
)
matrix_logarithm_op.infer(square_shape)
matrix_logarithm_op.no_gradient()


@matrix_square_root_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    is_half, is_complex = node.dtype(0) is dtypes.float16, node.dtype(0).is_complex
    small = code_for_small(dtypes.float32 if is_half else node.dtype(0), env)

    def compute(x: torch.Tensor) -> torch.Tensor:
        check_square(x)
        if not x.numel():
            return x.clone()
        wide = x.float() if is_half else x
        root = _of_finite(lambda finite: _square_root(finite, small), wide)
        return root if is_complex else root.real.to(x.dtype)

    return compute


@matrix_logarithm_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    eigen, dims = complex_eigenvalues(node.dtype(0).torch), node.static_shape(0)
    if (
        eigen is None
        or env.device.type != "cpu"
        or not (dims is None or eigen.fits(torch.empty(dims, device="meta")))
    ):
        eigen = None
    else:
        eigen.prepare()
    small = code_for_small(node.dtype(0).real_dtype, env)

    def compute(x: torch.Tensor) -> torch.Tensor:
        check_square(x)
        return _of_finite(lambda finite: _logarithm(finite, eigen, small), x) if x.numel() else x.clone()

    return compute


def _of_finite(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The function of the matrices [b, n, n] that are finite, NaN for others."""
    size = x.shape[-1]
    matrices = x.reshape(-1, size, size)
    finite = torch.isfinite(matrices).all(-1).all(-1)[:, None, None]
    eye = torch.eye(size, dtype=x.dtype, device=x.device)
    found = function(torch.where(finite, matrices, eye))
    return torch.where(finite, found, torch.nan).reshape(x.shape)


def _square_root(x: torch.Tensor, small: SmallMatrices | None) -> torch.Tensor:
    """The roots of matrices [b, n, n]; NaN of a real matrix that has a negative eigenvalue."""
    found = _newton_root(x, small)
    return _improved(x, found, lambda root: root @ root, _root_in_basis)


def _root_in_basis(x: torch.Tensor) -> Any:
    values, vectors = decompositions.eig(x)
    if x.is_complex():
        return _in_basis(vectors, torch.sqrt(values))
    negative = (values.real < 0) & (values.imag == 0)
    values = torch.where(negative.any(-1, keepdim=True), torch.nan, values)
    return _in_basis(vectors, torch.sqrt(values)).real


def _logarithm(
    x: torch.Tensor, eigen: ComplexEigenvalues | None, small: SmallMatrices | None
) -> torch.Tensor:
    """The logarithms of complex matrices [b, n, n]."""
    by_code = eigen(x) if eigen is not None and eigen.fits(x) else None
    values, vectors = by_code or decompositions.eig(x)
    values = torch.where(values.imag == 0, values.real.to(values.dtype), values)  # not below the cut
    inverse = _complex_inverse(vectors, small)
    found: torch.Tensor = (vectors * torch.log(values)[..., None, :]) @ inverse
    rest = ~(_norm(vectors) * _norm(inverse) <= _CONDITION * x.shape[-1])  # others magnify rounding little
    if bool(rest.any()):
        found[rest] = _improved(x[rest], found[rest], torch.linalg.matrix_exp, _scaled_logarithm)
    return found


def _complex_inverse(x: torch.Tensor, small: SmallMatrices | None) -> torch.Tensor:
    """The inverses of complex matrices [b, n, n]: of small ones from real matrices of twice as many rows."""
    size = x.shape[-1]
    if small is not None and small.fits(x.real.new_empty(len(x), 2 * size, 2 * size)):
        real, imaginary = x.real, x.imag
        above, below = torch.cat([real, -imaginary], -1), torch.cat([imaginary, real], -1)
        found = small.invert(torch.cat([above, below], -2), False)
        if found is not None:
            return torch.complex(found[..., :size, :size], found[..., size:, :size])
    inverse: torch.Tensor = torch.linalg.inv_ex(x).inverse
    return inverse


_CONDITION = 10  # of a basis, by Frobenius norms, over that of an orthonormal one, which is the size


def _norm(x: torch.Tensor) -> torch.Tensor:
    """Frobenius norms of matrices, which for complex ones ATen computes slowly."""
    dims: tuple[int, ...] = (-2, -1)
    if x.is_complex():
        x, dims = torch.view_as_real(x.resolve_conj()), (-3, -2, -1)
    norms: torch.Tensor = torch.linalg.vector_norm(x, dim=dims)
    return norms


def _in_basis(vectors: torch.Tensor, values: torch.Tensor) -> Any:
    """V diag(values) V^-1."""
    return torch.linalg.solve_ex(vectors.mT, (vectors * values[..., None, :]).mT).result.mT.contiguous()


def _improved(
    x: torch.Tensor,
    found: torch.Tensor,
    back: Callable[[torch.Tensor], torch.Tensor],
    other: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """What was found, or what the other way finds where that gives x `back` more exactly."""

    wrong = _relative_error(back, found, x)
    bad = ~(wrong <= _ROUNDINGS * x.shape[-1] * torch.finfo(x.dtype).eps)  # a NaN is bad
    if not bool(bad.any()):
        return found
    again = other(x[bad])
    better = ~(_relative_error(back, again, x[bad]) >= wrong[bad])  # or nothing is finite
    result = found.clone()
    result[bad] = torch.where(better[:, None, None], again, found[bad])
    return result


def _relative_error(
    back: Callable[[torch.Tensor], torch.Tensor], found: torch.Tensor, x: torch.Tensor
) -> Any:
    finite = torch.isfinite(found).all(-1).all(-1)
    size = _norm(x).clamp_min(torch.finfo(x.dtype).tiny)
    made = back(torch.where(finite[:, None, None], found, 0))
    return torch.where(finite, _norm(made - x) / size, torch.nan)


_ROUNDINGS = 100  # how far what is found may be off, before the other way is tried
_ROUNDS = 20  # Newton's iteration doubles the digits a round, once it is near
_ROOTS = 40  # a logarithm takes until the root is near the identity


def _newton_root(x: torch.Tensor, small: SmallMatrices | None = None) -> torch.Tensor:
    """The roots of matrices [b, n, n] without eigenvalues on the negative real axis."""
    size = x.shape[-1]
    eye = torch.eye(size, dtype=x.dtype, device=x.device)
    root, rest = x, x
    for _ in range(_ROUNDS):
        determinant, inverse = _determinant_and_inverse(rest, small)
        scale = determinant.abs().pow(-0.5 / size)[:, None, None]
        scale = torch.where(torch.isfinite(scale) & (scale > 0), scale, torch.ones_like(scale))
        root = 0.5 * (scale * root @ (eye + inverse / scale**2))
        rest = 0.5 * (eye + 0.5 * (scale**2 * rest + inverse / scale**2))
        distance = _norm(rest - eye).max()
        if bool(distance < size * torch.finfo(x.dtype).eps):
            break
    return root


def _determinant_and_inverse(
    x: torch.Tensor, small: SmallMatrices | None
) -> tuple[torch.Tensor, torch.Tensor]:
    if small is not None and small.fits(x, x) and (inverse := small.invert(x, False)) is not None:
        determinant = small.determine(x)
        if determinant is not None:
            return determinant, inverse
    return torch.linalg.det(x), torch.linalg.inv_ex(x).inverse


_NODES, _WEIGHTS = (each / 2 for each in np.polynomial.legendre.leggauss(8))  # on an interval of length 1
_NEAR = 0.25  # how near the identity 8 nodes give 16 digits


def _scaled_logarithm(x: torch.Tensor) -> torch.Tensor:
    """2^s times the logarithm of a 2^s-th root that is near the identity."""
    eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
    root, factor = x, 1.0
    for _ in range(_ROOTS):
        if bool((torch.linalg.matrix_norm(root - eye, 1) < _NEAR).all()):
            break
        root, factor = _newton_root(root), 2 * factor
    rest = root - eye
    total = torch.zeros_like(rest)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total = total + float(weight) * torch.linalg.solve_ex(eye + float(0.5 + node) * rest, rest).result
    return factor * total


@matrix_square_root_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    """The Z with Y^T Z + Z Y^T = dY, as one linear system of n² unknowns."""
    root = op.outputs[0]
    eye = F.MatrixDiag(F.OnesLike(F.MatrixDiagPart(root)))
    terms = (transposed(root), eye), (eye, root)
    system = F.AddV2(*[F.Einsum([a, b], equation="...ij,...kl->...ikjl") for a, b in terms])
    shape = F.Shape(dy)
    outer, side = F.StridedSlice(shape, [0], [-2], [1]), F.StridedSlice(shape, [-1], [0], [1], end_mask=1)
    unknowns = F.Square(side)
    system = F.Reshape(system, F.ConcatV2([outer, unknowns, unknowns], 0))
    rhs = F.Reshape(dy, F.ConcatV2([outer, unknowns, [1]], 0))
    return F.Reshape(F.MatrixSolve(system, rhs), shape)


# ---- public functions


def matrix_exponential(input: Any, name: str | None = None) -> Tensor:
    """The exponentials of square matrices [..., n, n]: the sums of their powers A^k / k!."""
    return matrix_exponential_op(input, name=name or "matrix_exponential")


def matrix_logarithm(input: Any, name: str | None = None) -> Tensor:
    """The principal logarithms of complex square matrices [..., n, n], whose exponentials these are."""
    return matrix_logarithm_op(input, name=name)


def matrix_square_root(input: Any, name: str | None = None) -> Tensor:
    """The principal square roots R of square matrices [..., n, n] = R R.

    A real matrix that has a negative eigenvalue has none: NaN.
    """
    return matrix_square_root_op(input, name=name)
