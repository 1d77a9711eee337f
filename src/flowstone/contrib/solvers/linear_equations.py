"""Solutions of linear systems."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import flowstone as tf
from flowstone.contrib.solvers.util import dot, l2norm

__all__ = ["CGState", "conjugate_gradient"]


class CGState(NamedTuple):
    """Where a search by conjugate gradients is."""

    i: Any
    x: Any
    r: Any
    p: Any
    gamma: Any


def conjugate_gradient(
    operator: Any,
    rhs: Any,
    preconditioner: Any = None,
    x: Any = None,
    tol: float = 1e-4,
    max_iter: int = 20,
    name: str = "conjugate_gradient",
) -> CGState:
    """Solves A x = rhs by conjugate gradients, for a symmetric and positive definite A.

    Args:
        operator: A, as of `create_operator`.
        rhs: [n], of the operator's type.
        preconditioner: an operator near A's inverse; the identity by default.
        x: where the search starts; zeros by default.
        tol: it ends when the residual's length is at most tol times that of rhs.
        max_iter: the most iterations.
        name: the scope of its operations.

    Returns the count of iterations, the solution x [n], the residual r, the last direction p, and r's
    squared length in the preconditioner's norm.
    """
    with tf.name_scope(name):
        rhs = tf.convert_to_tensor(rhs)[..., None]
        start = tf.zeros_like(rhs) if x is None else tf.convert_to_tensor(x)[..., None]
        residual = rhs if x is None else rhs - operator.apply(start)
        limit = tol * l2norm(rhs)
        direction = residual if preconditioner is None else preconditioner.apply(residual)
        state = CGState(tf.constant(0), start, residual, direction, dot(residual, direction))

        step = partial(_step, operator, preconditioner)
        (found,) = tf.while_loop(
            lambda state: (state.i < max_iter) & (l2norm(state.r) > limit), step, (state,)
        )
        return CGState(
            found.i, tf.squeeze(found.x, -1), tf.squeeze(found.r, -1), tf.squeeze(found.p, -1), found.gamma
        )


def _step(operator: Any, preconditioner: Any, state: CGState) -> tuple[CGState]:
    image = operator.apply(state.p)
    alpha = state.gamma / dot(state.p, image)
    x = state.x + alpha * state.p
    r = state.r - alpha * image
    q = r if preconditioner is None else preconditioner.apply(r)
    gamma = dot(r, q)
    return (CGState(state.i + 1, x, r, q + gamma / state.gamma * state.p, gamma),)
