"""Eigenvalues and eigenvectors of square matrices [..., n, n].

SelfAdjointEigV2 is of Hermitian matrices: values ascend, vectors are orthonormal, and the lower triangle
alone is read. SelfAdjointEig gives both as one matrix [..., n + 1, n], values first. Eig is of any matrix;
values and vectors are complex, in LAPACK's order. Vectors that are not asked for are empty.
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
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra import decompositions
from flowstone.ops.algebra.inverses import TYPES
from flowstone.ops.algebra.matrix_gradients import adjoint, as_real, product, reciprocal_gaps
from flowstone.ops.algebra.matrix_shapes import are_finite, check_square, cubic, invalid, square
from flowstone.ops.numbers.elementwise import conjugate

__all__ = ["self_adjoint_eig", "self_adjoint_eigvals"]

# ---- of Hermitian matrices

self_adjoint_eig_v2_op = op(
    "SelfAdjointEigV2",
    "input: T -> e: T, v: T",
    "compute_v: bool = true",
    T=TYPES,
    cost=cubic(9.0),
    capturable=False,
)


@self_adjoint_eig_v2_op.infer
def eigen_shapes(node: Node) -> list[Dims]:
    """Infers the shapes of values and vectors."""
    dims = square(node.dims(0))
    vectors: Dims = dims if node.attributes["compute_v"] else (0,)
    return [None if dims is None else dims[:-1], vectors]


@self_adjoint_eig_v2_op.kernel(CPU, GPU)
def self_adjoint_kernel(node: Node, env: Environment) -> Kernel:
    """Values and vectors. InvalidArgumentError if there are NaN."""
    has_vectors = node.attributes["compute_v"]

    def decompose(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        check_square(x)
        if not has_vectors:
            found = _self_adjoint(x, False)
            return found[0], x.new_empty(0)
        return _self_adjoint(x, True)

    return decompose


def _self_adjoint(x: torch.Tensor, has_vectors: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Values, of the type of x, and vectors; of a matrix with infinities NaN, and the unit vectors."""
    if not are_finite(x):
        lower = x.tril()
        if not are_finite(lower):
            return _of_infinite(lower)
    if not has_vectors:
        return decompositions.eigvalsh(x).to(x.dtype), x
    values, vectors = decompositions.eigh(x)
    return values.to(x.dtype), vectors


def _of_infinite(lower: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if bool(torch.isnan(lower).any()):
        raise invalid("Self-adjoint eigen decomposition was not successful. The input might not be valid.")
    bad = ~torch.isfinite(lower).all(-1).all(-1)
    eye = torch.eye(lower.shape[-1], dtype=lower.dtype, device=lower.device)
    values, vectors = decompositions.eigh(torch.where(bad[..., None, None], eye, lower))
    return torch.where(bad[..., None], torch.nan, values).to(lower.dtype), vectors


@self_adjoint_eig_v2_op.gradient
def _(op: Operation, de: Tensor, dv: Tensor) -> Gradients:
    x = op.inputs[0]
    if op.attributes["compute_v"]:
        e, v = op.outputs
        turned = reciprocal_gaps(e) * product(v, dv, adjoint_a=True)
        flow = product(v, product(F.MatrixDiag(de, name="diag") + turned, v, adjoint_b=True))
    else:
        _, v = F.SelfAdjointEigV2.several(x)
        flow = product(v, product(F.MatrixDiag(de, name="diag"), v, adjoint_b=True))
    return _in_lower_triangle(flow)


def _in_lower_triangle(flow: Tensor) -> Tensor:
    """The gradient of a Hermitian matrix of which the lower triangle alone is read."""
    both = F.MatrixBandPart(flow + adjoint(flow), -1, 0)
    half = 0.5 * F.MatrixDiagPart(both, name="diag_part")
    return F.MatrixSetDiag(both, half, name="set_diag")


self_adjoint_eig_op = op(
    "SelfAdjointEig",
    "input: T -> output: T",
    T=(dtypes.float64, dtypes.float32),
    cost=cubic(9.0),
    capturable=False,
    deprecated=(11, "SelfAdjointEigV2"),
)
self_adjoint_eig_op.no_gradient()


@self_adjoint_eig_op.infer
def joined_shape(node: Node) -> Dims:
    """Infers [..., n + 1, n]."""
    dims = square(node.dims(0))
    return None if dims is None else (*dims[:-2], None if dims[-1] is None else dims[-1] + 1, dims[-1])


@self_adjoint_eig_op.kernel(CPU, GPU)
def joined_kernel(node: Node, env: Environment) -> Kernel:
    """Values in the first row, above the vectors."""

    def decompose(x: torch.Tensor) -> torch.Tensor:
        check_square(x)
        values, vectors = _self_adjoint(x, True)
        return torch.cat([values[..., None, :], vectors], -2)

    return decompose


# ---- of any matrix

eig_op = op(
    "Eig",
    "input: T -> e: Tout, v: Tout",
    "compute_v: bool = true ; Tout: type in [complex64, complex128]",
    T=(dtypes.float32, dtypes.float64, *dtypes.COMPLEX),
    cost=cubic(25.0),
    capturable=False,
)
eig_op.infer(eigen_shapes)


@eig_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    has_vectors, dtype = node.attributes["compute_v"], node.attributes["Tout"].torch

    def decompose(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        check_square(x)
        if not bool(torch.isfinite(x).all()):
            raise invalid("Eigen decomposition was not successful. The input might not be valid.")
        if not has_vectors:
            return decompositions.eigvals(x).to(dtype), x.new_empty(0, dtype=dtype)
        values, vectors = decompositions.eig(x)
        return values.to(dtype), vectors.to(dtype)

    return decompose


@eig_op.gradient
def _(op: Operation, de: Tensor, dv: Tensor) -> Gradients:
    x = op.inputs[0]
    if op.attributes["compute_v"]:
        e, v = op.outputs
        v_dv = product(v, dv, adjoint_a=True)
        along = F.MatrixDiag(as_real(F.MatrixDiagPart(v_dv)))
        moved = F.Sub(v_dv, product(product(v, v, adjoint_a=True), along))
        middle = F.AddV2(F.MatrixDiag(de), F.Mul(conjugate(reciprocal_gaps(e)), moved))
    else:
        _, v = F.Eig.several(x, Tout=op.attributes["Tout"])
        middle = F.MatrixDiag(de)
    flow = product(F.MatrixSolve(v, middle, adjoint=True), v, adjoint_b=True)
    return F.Cast(flow, DstT=x.dtype)


# ---- public functions


def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The eigenvalues [..., n], ascending, and the eigenvectors (the columns of [..., n, n]) of Hermitian
    matrices [..., n, n], of which the lower triangle is read."""
    e, v = self_adjoint_eig_v2_op.several(tensor, compute_v=True, name=name)
    return e, v


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues [..., n], ascending, of Hermitian matrices [..., n, n], of which the lower triangle is
    read."""
    e: Tensor = self_adjoint_eig_v2_op.several(tensor, compute_v=False, name=name)[0]
    return e


def eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The eigenvalues [..., n], complex and in no order, and the eigenvectors (the columns of [..., n, n]) of
    square matrices [..., n, n]."""
    x = convert_to_tensor(tensor, name="tensor")
    e, v = eig_op.several(x, Tout=_complex_of(x), compute_v=True, name=name)
    return e, v


def eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues [..., n], complex and in no order, of square matrices [..., n, n]."""
    x = convert_to_tensor(tensor, name="tensor")
    e: Tensor = eig_op.several(x, Tout=_complex_of(x), compute_v=False, name=name)[0]
    return e


def _complex_of(x: Tensor) -> dtypes.DType:
    return dtypes.complex64 if x.dtype in (dtypes.float32, dtypes.complex64) else dtypes.complex128
