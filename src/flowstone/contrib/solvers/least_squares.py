"""Solutions of least squares."""

from __future__ import annotations

from typing import Any, NamedTuple

import flowstone as tf
from flowstone.contrib.solvers.util import l2norm_squared

__all__ = ["CGLSState", "cgls"]


class CGLSState(NamedTuple):
    """Where a search by conjugate gradients is."""

    i: Any
    x: Any
    r: Any
    p: Any
    gamma: Any


def cgls(operator: Any, rhs: Any, tol: float = 1e-6, max_iter: int = 20, name: str = "cgls") -> CGLSState:
    """The x with the least |A x - rhs|, by conjugate gradients of the normal equations.

    Args:
        operator: A [m, n], as of `create_operator`.
        rhs: [m], of the operator's type.
        tol: it ends when the length of the gradient is at most tol times the first one's.
        max_iter: the most iterations.
        name: the scope of its operations.

    Returns the count of iterations, the solution x [n], the residual r [m], the last direction p [n], and
    the squared length of the gradient.
    """
    with tf.name_scope(name):
        rhs = tf.convert_to_tensor(rhs)[..., None]
        gradient = operator.apply_adjoint(rhs)
        gamma = l2norm_squared(gradient)
        limit = tol * tol * gamma
        state = CGLSState(tf.constant(0), tf.zeros_like(gradient), rhs, gradient, gamma)

        def step(state: CGLSState) -> tuple[CGLSState]:
            image = operator.apply(state.p)
            alpha = state.gamma / l2norm_squared(image)
            x = state.x + alpha * state.p
            r = state.r - alpha * image
            s = operator.apply_adjoint(r)
            gamma = l2norm_squared(s)
            return (CGLSState(state.i + 1, x, r, s + gamma / state.gamma * state.p, gamma),)

        (found,) = tf.while_loop(lambda state: (state.i < max_iter) & (state.gamma > limit), step, (state,))
        return CGLSState(
            found.i, tf.squeeze(found.x, -1), tf.squeeze(found.r, -1), tf.squeeze(found.p, -1), found.gamma
        )
