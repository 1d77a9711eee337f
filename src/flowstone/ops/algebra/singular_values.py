"""Svd: a matrix [..., m, n] as U diag(s) V^H, with singular values s that descend.

With p the smaller of m and n, U is [..., m, p] and V [..., n, p], or [..., m, m] and [..., n, n] if the
matrices are full. Where they are not asked for they are empty. Of a matrix that has NaN or an infinity all
is NaN.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra import decompositions
from flowstone.ops.algebra.inverses import TYPES
from flowstone.ops.algebra.matrix_gradients import (
    adjoint,
    as_real,
    columns_of,
    product,
    reciprocal,
    reciprocal_gaps,
)
from flowstone.ops.algebra.matrix_shapes import are_finite, at_least, check_matrix, cubic, smaller

__all__ = ["svd"]


svd_op = op(
    "Svd",
    "input: T -> s: T, u: T, v: T",
    "compute_uv: bool = true ; full_matrices: bool = false",
    T=TYPES,
    cost=cubic(12.0),
    capturable=False,
)


@svd_op.infer
def _(node: Node) -> list[Dims]:
    dims = at_least(2, node.dims(0))
    has_vectors, is_full = node.attributes["compute_uv"], node.attributes["full_matrices"]
    if dims is None:
        return [None, None, None] if has_vectors else [None, (0,), (0,)]
    outer, (rows, columns) = dims[:-2], dims[-2:]
    inner = smaller(rows, columns)
    if not has_vectors:
        return [(*outer, inner), (0,), (0,)]
    of_u, of_v = (rows, columns) if is_full else (inner, inner)
    return [(*outer, inner), (*outer, rows, of_u), (*outer, columns, of_v)]


@svd_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    has_vectors, is_full = node.attributes["compute_uv"], node.attributes["full_matrices"]

    def factor(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        check_matrix(x)
        if not has_vectors:
            empty = x.new_empty(0)
            return _or_nan(lambda y: (decompositions.svdvals(y),), x)[0].to(x.dtype), empty, empty
        u, s, vh = _or_nan(lambda y: decompositions.svd(y, is_full), x)
        return s.to(x.dtype), u, vh.mH.resolve_conj()

    return factor


def _or_nan(decompose: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The decomposition, which is NaN where the matrices are not finite."""
    if are_finite(x):
        found: tuple[torch.Tensor, ...] = decompose(x)
        return found
    bad = ~torch.isfinite(x).all(-1).all(-1)
    parts = decompose(torch.where(bad[..., None, None], torch.zeros_like(x), x))
    return tuple(
        torch.where(bad.reshape(*bad.shape, *[1] * (part.ndim - bad.ndim)), torch.nan, part) for part in parts
    )


# ---- the gradient


@svd_op.gradient
def _(op: Operation, ds: Tensor, du: Tensor, dv: Tensor) -> Gradients:
    x = op.inputs[0]
    if not op.attributes["compute_uv"]:
        _, u, v = F.Svd.several(x, compute_uv=True, full_matrices=False)
        return product(u, product(F.MatrixDiag(ds, name="diag"), v, adjoint_b=True))
    s, u, v = op.outputs
    rows, columns = _known_sides(x)
    if rows < columns:  # of the adjoint, whose vectors change places
        u, v, du, dv = v, u, dv, du
    if op.attributes["full_matrices"] and rows != columns:
        if abs(rows - columns) > 1:
            raise NotImplementedError(
                "svd gradient is not implemented for abs(m - n) > 1 when full_matrices is True. "
                f"Received: m={rows} and n={columns}"
            )
        u, du = _without_last(u, du, min(rows, columns))
    flow = _deep_gradient(s, u, v, ds, du, dv, rows == columns)
    return adjoint(flow) if rows < columns else flow


def _known_sides(x: Tensor) -> tuple[int, int]:
    rows, columns = (None, None) if x.dims is None else x.dims[-2:]
    if rows is None or columns is None:
        raise NotImplementedError(
            "SVD gradient has not been implemented for input with unknown inner matrix shape."
        )
    return rows, columns


def _without_last(u: Tensor, du: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """U without its last column, and a gradient that tells what the last one would: it stays orthogonal to
    the others."""
    first, last = columns_of(u, 0, count), columns_of(u, count, count + 1)
    d_first, d_last = columns_of(du, 0, count), columns_of(du, count, count + 1)
    return first, F.Sub(d_first, product(last, product(d_last, first, adjoint_a=True)))


def _deep_gradient(
    s: Tensor, u: Tensor, v: Tensor, ds: Tensor, du: Tensor, dv: Tensor, is_square: bool
) -> Tensor:
    """The gradient of matrices that have as many rows as columns or more.

    ds moves the diagonal; du and dv rotate each basis in itself, as the gaps between squares allow, and du
    also moves U out of the space that it spans.
    """
    squares = F.Square(s)
    rates = reciprocal_gaps(squares)
    u_du, v_dv = product(u, du, adjoint_a=True), product(v, dv, adjoint_a=True)
    row, column = F.ExpandDims(s, -2), F.ExpandDims(s, -1)
    turned_u, turned_v = F.Mul(rates, F.Sub(u_du, adjoint(u_du))), F.Mul(rates, F.Sub(v_dv, adjoint(v_dv)))
    middle = F.AddV2(F.Mul(turned_u, row), F.Mul(column, turned_v))
    if s.dtype.is_complex:  # a phase that is not U's is V's
        turned = F.Mul(F.Sub(F.MatrixDiagPart(v_dv), as_real(F.MatrixDiagPart(v_dv))), reciprocal(s))
        ds = F.Sub(ds, turned)
    middle = F.AddV2(middle, F.MatrixDiag(ds))
    flow = product(u, middle)
    if not is_square:
        flow = F.AddV2(flow, F.Mul(F.Sub(du, product(u, u_du)), F.ExpandDims(reciprocal(s), -2)))
    return product(flow, v, adjoint_b=True)


# ---- public functions


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """The singular values s [..., p], descending, and vectors U, V of matrices [..., m, n] = U diag(s) V^H.

    With p = min(m, n): U [..., m, p] and V [..., n, p], or [..., m, m] and [..., n, n] if `full_matrices`.

    Returns:
        (s, U, V), or s alone unless `compute_uv`. s has the real type of the elements.
    """
    s, u, v = svd_op.several(tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name)
    if s.dtype.is_complex:
        s = F.Real(s, Tout=s.dtype.real_dtype)
    return (s, u, v) if compute_uv else s
