"""Roots of symmetric positive matrices by iteration, which needs products of matrices alone.

C.-H. Guo and N. J. Higham, "A Schur-Newton method for the matrix p-th root and its inverse", SIAM Journal on
Matrix Analysis and Applications 28, 2006.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["matrix_inverse_pth_root", "matrix_square_root"]


def matrix_square_root(
    mat_a: Any, mat_a_size: int, iter_count: int = 100, ridge_epsilon: float = 1e-4
) -> Any:
    """The square root of a matrix [size, size], by Newton's and Schulz' iteration.

    Args:
        mat_a: symmetric, without negative eigenvalues.
        mat_a_size: its size.
        iter_count: the most steps, which end as soon as the error grows.
        ridge_epsilon: what is added to the diagonal.
    """
    identity = tf.eye(mat_a_size)
    mat_a = mat_a + ridge_epsilon * identity
    size = tf.sqrt(tf.reduce_sum(mat_a * mat_a))

    def goes_on(i: Any, y: Any, before: Any, z: Any, error: Any, error_before: Any) -> Any:
        return tf.logical_and(i < iter_count, error < error_before)

    def step(i: Any, y: Any, before: Any, z: Any, error: Any, error_before: Any) -> tuple[Any, ...]:
        factor = 0.5 * (3.0 * identity - tf.matmul(z, y))
        new = tf.matmul(y, factor)
        root = new * tf.sqrt(size)
        residual = mat_a - tf.matmul(root, root)
        new_error = tf.sqrt(tf.reduce_sum(residual * residual)) / size
        return i + 1, new, y, tf.matmul(factor, z), new_error, error

    first = mat_a / size
    found = tf.while_loop(goes_on, step, [0, first, first, identity, size, size + 1.0])
    return found[2] * tf.sqrt(size)  # the last one but one: the last step made it worse


def matrix_inverse_pth_root(
    mat_g: Any,
    mat_g_size: int,
    alpha: float,
    iter_count: int = 100,
    epsilon: float = 1e-6,
    ridge_epsilon: float = 1e-6,
) -> Any:
    """A matrix [size, size] to the power `alpha`, by the iteration of the paper (its equation 3.2).

    Args:
        mat_g: symmetric, without negative eigenvalues.
        mat_g_size: its size.
        alpha: -1 / p, where p is a natural number.
        iter_count: the most steps.
        epsilon: the error at which they end.
        ridge_epsilon: what is added to the diagonal.
    """
    if mat_g_size == 1:
        return tf.pow(mat_g + ridge_epsilon, alpha)
    identity = tf.eye(mat_g_size)
    damped = mat_g + ridge_epsilon * identity
    scale = (1 - 1 / alpha) / (2 * tf.norm(damped))

    def goes_on(i: Any, m: Any, x: Any) -> Any:
        return tf.logical_and(i < iter_count, tf.reduce_max(tf.abs(m - identity)) > epsilon)

    def step(i: Any, m: Any, x: Any) -> tuple[Any, ...]:
        factor = (1 - alpha) * identity + alpha * m
        return i + 1, tf.matmul(_power(factor, round(-1.0 / alpha)), m), tf.matmul(x, factor)

    return tf.while_loop(goes_on, step, [0, damped * scale, identity * tf.pow(scale, -alpha)])[2]


def _power(matrix: Any, p: int) -> Any:
    """The matrix to the power of a natural number, by squares."""
    found = None
    while p > 0:
        if p % 2:
            found = matrix if found is None else tf.matmul(matrix, found)
        p //= 2
        matrix = tf.matmul(matrix, matrix) if p else matrix
    return found
