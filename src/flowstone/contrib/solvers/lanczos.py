"""Bidiagonal matrices that stand for large ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import flowstone as tf
from flowstone.contrib.solvers import util
from flowstone.contrib.solvers.util import l2norm

__all__ = ["LanczosBidiagState", "bidiag_matmul", "lanczos_bidiag", "util"]


class LanczosBidiagState(NamedTuple):
    """A V = U B, where B [k + 1, k] has `alpha` in its diagonal and `beta` below it."""

    u: Any
    v: Any
    alpha: Any
    beta: Any


def _orthogonal(vector: Any, basis: list[Any]) -> Any:
    """The vector [n, 1] without its parts along the orthonormal ones, which are taken away twice."""
    for _ in range(2):
        for each in basis:
            vector = vector - each * tf.reduce_sum(each * vector)
    return vector


def _normalized(vector: Any) -> tuple[Any, Any]:
    """The vector divided by its length, and the length; a vector of zeros stays one."""
    length = l2norm(vector)
    safe = tf.where(length > 0, length, tf.ones_like(length))
    return vector / safe, length


def lanczos_bidiag(
    operator: Any,
    k: int,
    orthogonalize: bool = True,
    starting_vector: Any = None,
    name: str = "lanczos_bidiag",
) -> LanczosBidiagState:
    """Golub's and Kahan's bidiagonalisation of A [m, n] in k steps.

    Args:
        operator: A, as of `create_operator`.
        k: the number of steps.
        orthogonalize: whether vectors are made orthogonal to all before, against rounding.
        starting_vector: [m]; random by default.
        name: the scope of its operations.

    Returns u [m, k + 1] and v [n, k] with orthonormal columns, alpha [k] and beta [k].
    """
    with tf.name_scope(name):
        if starting_vector is None:
            starting_vector = tf.random_uniform(operator.shape[:1], -1, 1, dtype=operator.dtype)
        first, _ = _normalized(tf.convert_to_tensor(starting_vector)[..., None])
        us: list[Any] = [first]
        vs: list[Any] = []
        alphas: list[Any] = []
        betas: list[Any] = []
        for _ in range(k):
            r = operator.apply_adjoint(us[-1])
            if vs:
                r = r - betas[-1] * vs[-1]
            v, alpha = _normalized(_orthogonal(r, vs) if orthogonalize else r)
            p = operator.apply(v) - alpha * us[-1]
            u, beta = _normalized(_orthogonal(p, us) if orthogonalize else p)
            us, vs, alphas, betas = [*us, u], [*vs, v], [*alphas, alpha], [*betas, beta]
        return LanczosBidiagState(
            tf.concat(us, axis=-1), tf.concat(vs, axis=-1), tf.stack(alphas), tf.stack(betas)
        )


def bidiag_matmul(
    matrix: Any, alpha: Any, beta: Any, adjoint_b: bool = False, name: str = "bidiag_matmul"
) -> Any:
    """The product of a matrix with B [k + 1, k], which has `alpha` in its diagonal and `beta` below it.

    Args:
        matrix: [m, k + 1]; [m, k] if `adjoint_b`.
        alpha, beta: [k].
        adjoint_b: whether B is transposed.
        name: the scope of its operations.

    Returns [m, k]; [m, k + 1] if `adjoint_b`.
    """
    with tf.name_scope(name):
        matrix = tf.convert_to_tensor(matrix)
        alpha = tf.convert_to_tensor(alpha, dtype=matrix.dtype)[None]
        beta = tf.convert_to_tensor(beta, dtype=matrix.dtype)[None]
        if not adjoint_b:
            return matrix[:, :-1] * alpha + matrix[:, 1:] * beta
        inner = matrix[:, 1:] * alpha[:, 1:] + matrix[:, :-1] * beta[:, :-1]
        return tf.concat([matrix[:, :1] * alpha[:, :1], inner, matrix[:, -1:] * beta[:, -1:]], axis=1)
