"""Qr: Q with orthonormal columns and the upper triangular R, whose product is a matrix [..., m, n].

With p the smaller of m and n, Q is [..., m, p] and R [..., p, n], or [..., m, m] and [..., m, n] if the
matrices are full. The gradient exists where Q is square or the matrix has rank n.
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
from flowstone.ops.algebra.inverses import TYPES
from flowstone.ops.algebra.matrix_gradients import adjoint, as_real, columns_of, product
from flowstone.ops.algebra.matrix_shapes import at_least, check_matrix, cubic, smaller

__all__ = ["qr"]

qr_op = op(
    "Qr",
    "input: T -> q: T, r: T",
    "full_matrices: bool = false",
    T=(*TYPES, dtypes.float16),
    cost=cubic(4.0),
    starts_team=True,
)


@qr_op.infer
def _(node: Node) -> list[Dims]:
    dims = at_least(2, node.dims(0))
    if dims is None:
        return [None, None]
    rows, columns = dims[-2:]
    inner = rows if node.attributes["full_matrices"] else smaller(rows, columns)
    return [(*dims[:-2], rows, inner), (*dims[:-2], inner, columns)]


@qr_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    mode = "complete" if node.attributes["full_matrices"] else "reduced"
    narrow = node.dtype(0) is dtypes.float16  # computed in float32

    def factor(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        check_matrix(x)
        q, r = torch.linalg.qr(x.float() if narrow else x, mode)
        return (q.half(), r.half()) if narrow else (q, r)

    return factor


@qr_op.gradient
def _(op: Operation, dq: Tensor, dr: Tensor) -> Gradients:
    q, r = op.outputs
    if r.dims is None or None in r.dims[-2:] or q.dims is None:
        raise NotImplementedError("QrGrad not implemented with dynamic shapes.")
    rows, columns = q.dims[-2], r.dims[-1]
    if rows is None or columns is None:
        return _deep_gradient(q, r, dq, dr)  # where R is square: columns that are no more than the rows
    if rows > columns and op.attributes["full_matrices"]:
        raise NotImplementedError("QrGrad not implemented when nrows > ncols and full_matrices is true.")
    if rows >= columns:
        return _deep_gradient(q, r, dq, dr)
    rest, dr_rest = columns_of(op.inputs[0], rows, columns), columns_of(dr, rows, columns)
    dq = dq + product(rest, dr_rest, adjoint_b=True)
    first = _deep_gradient(q, columns_of(r, 0, rows), dq, columns_of(dr, 0, rows))
    return F.ConcatV2([first, product(q, dr_rest)], -1)


def _deep_gradient(q: Tensor, r: Tensor, dq: Tensor, dr: Tensor) -> Tensor:
    """The gradient of matrices that have as many rows as columns or more.

    Q' Q is the identity and R is triangular: only the lower triangle of the skew part of Q^H dQ + R dR^H
    moves both.
    """
    q_dq = product(q, dq, adjoint_a=True)
    skew_q = q_dq - adjoint(q_dq)
    r_dr = product(r, dr, adjoint_b=True)
    lower = F.MatrixBandPart(skew_q + (r_dr - adjoint(r_dr)), -1, 0)
    flow = product(q, dr + _divided(lower, r))
    flow = flow + _divided(dq - product(q, q_dq), r)
    if not q.dtype.is_complex:
        return flow
    diagonal = F.MatrixDiagPart(F.Sub(r_dr, adjoint(q_dq)))
    phases = F.MatrixDiag(F.Sub(diagonal, as_real(diagonal)))
    return F.AddV2(flow, _divided(product(q, F.Conj(phases)), r))


def _divided(x: Tensor, r: Tensor) -> Tensor:
    """x R^-H."""
    return adjoint(F.MatrixTriangularSolve(r, adjoint(x), lower=False))


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Any:
    """Q and R, a named tuple, of matrices [..., m, n] = Q R; R is upper triangular, Q^H Q the identity.

    With p = min(m, n): Q [..., m, p] and R [..., p, n], or [..., m, m] and [..., m, n] if `full_matrices`.
    """
    return qr_op.several(input, full_matrices=full_matrices, name=name)
