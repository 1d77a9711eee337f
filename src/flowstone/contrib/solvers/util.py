"""Operators that are functions, and norms of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import flowstone as tf

__all__ = [
    "LinearOperator",
    "create_operator",
    "dot",
    "identity_operator",
    "l2norm",
    "l2norm_squared",
    "l2normalize",
]


class LinearOperator(NamedTuple):
    """A matrix by what it does."""

    shape: Any
    dtype: Any
    apply: Callable[[Any], Any]
    apply_adjoint: Callable[[Any], Any]


def _shape_of(matrix: Any) -> Any:
    shape = matrix.shape
    return shape.as_list() if shape.is_fully_defined() else tf.shape(matrix)


def create_operator(matrix: Any) -> LinearOperator:
    """The operator of a tensor [m, n]: products with it and with its adjoint."""
    matrix = tf.convert_to_tensor(matrix)
    return LinearOperator(
        shape=_shape_of(matrix),
        dtype=matrix.dtype,
        apply=lambda v: tf.matmul(matrix, v, adjoint_a=False),
        apply_adjoint=lambda v: tf.matmul(matrix, v, adjoint_a=True),
    )


def identity_operator(matrix: Any) -> LinearOperator:
    """The identity, with a matrix's shape and type."""
    matrix = tf.convert_to_tensor(matrix)
    return LinearOperator(
        shape=_shape_of(matrix), dtype=matrix.dtype, apply=lambda v: v, apply_adjoint=lambda v: v
    )


def dot(x: Any, y: Any) -> Any:
    """The sum of conj(x) y."""
    return tf.reduce_sum(tf.conj(x) * y)


def l2norm_squared(v: Any) -> Any:
    """The sum of the squares of v."""
    return tf.constant(2, dtype=v.dtype.base_dtype) * tf.nn.l2_loss(v)


def l2norm(v: Any) -> Any:
    """The Euclidean length of v."""
    return tf.sqrt(l2norm_squared(v))


def l2normalize(v: Any) -> Any:
    """v divided by its length, and the length: a pair."""
    length = l2norm(v)
    return v / length, length
