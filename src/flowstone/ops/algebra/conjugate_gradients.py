"""The method of conjugate gradients for A x = b with a Hermitian positive definite A [..., n, n].

Each round takes the best step along a direction, which is conjugate to all directions before (Golub and Van
Loan, Matrix Computations, algorithm 11.3.3). It ends when the residual is small, or after a number of rounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.algebra.tensor_contractions import norm
from flowstone.ops.control.loops import while_loop
from flowstone.ops.numbers.elementwise import conjugate

_INT = np.int32


class CGState(NamedTuple):
    """Where the method stands: round i, solution x, residual r, direction p, and gamma = r · M r."""

    i: Tensor
    x: Tensor
    r: Tensor
    p: Tensor
    gamma: Tensor


def conjugate_gradient(
    operator: Any,
    rhs: Any,
    preconditioner: Any = None,
    x: Any = None,
    tol: Any = 1e-5,
    max_iter: Any = 20,
    name: str | None = "conjugate_gradient",
) -> CGState:
    """Solves A x = rhs [..., n] for a Hermitian positive definite linear operator A.

    Args:
        operator: a LinearOperator that is self-adjoint and positive definite. ValueError for another.
        rhs: [..., n].
        preconditioner: a LinearOperator near the inverse of A, or None.
        x: where to start, zeros if None.
        tol: it ends when the norm of the residual is at most this times that of rhs,
        max_iter: or after this many rounds.
        name: a name for the operations.

    Returns:
        The last state, a named tuple (i, x, r, p, gamma).
    """
    if not (operator.is_self_adjoint and operator.is_positive_definite):
        raise ValueError("Expected a self-adjoint, positive definite operator.")
    with get_default_graph().name_scope(name or "conjugate_gradient"):
        b = convert_to_tensor(rhs, operator.dtype, name="rhs")
        limit = F.Mul(norm(b, axis=-1), convert_to_tensor(tol, b.dtype))
        start = F.ZerosLike(b) if x is None else convert_to_tensor(x, b.dtype)
        r = F.Sub(b, operator.matvec(start))
        p = r if preconditioner is None else preconditioner.matvec(r)
        state = CGState(convert_to_tensor(_INT(0)), start, r, p, _dot(r, p))

        def goes_on(i: Tensor, x: Tensor, r: Tensor, p: Tensor, gamma: Tensor) -> Tensor:
            size, bound = _real(norm(r, axis=-1)), _real(limit)
            is_large = F.Greater(size, bound)
            axes = F.Range(_INT(0), F.Rank(is_large), _INT(1))
            return F.LogicalAnd(F.Less(i, _INT(max_iter)), F.Any(is_large, axes))

        def one_round(i: Tensor, x: Tensor, r: Tensor, p: Tensor, gamma: Tensor) -> CGState:
            image = operator.matvec(p)
            step = F.ExpandDims(_ratio(gamma, _dot(p, image)), _INT(-1))
            x, r = F.AddV2(x, F.Mul(step, p)), F.Sub(r, F.Mul(step, image))
            q = r if preconditioner is None else preconditioner.matvec(r)
            found = _dot(r, q)
            turn = F.ExpandDims(_ratio(found, gamma), _INT(-1))
            return CGState(F.AddV2(i, _INT(1)), x, r, F.AddV2(q, F.Mul(turn, p)), found)

        return CGState(*while_loop(goes_on, one_round, list(state)))


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return F.Sum(F.Mul(conjugate(a), b), [-1])


def _ratio(a: Tensor, b: Tensor) -> Tensor:
    """a / b, and 0 where b is 0: a system of the batch that is solved already."""
    return F.DivNoNan(a, b)


def _real(x: Tensor) -> Tensor:
    return F.Real(x, Tout=x.dtype.real_dtype) if x.dtype.is_complex else x
