"""Polyharmonic splines: smooth functions through scattered points.

The interpolant is a sum of radial functions around the training points and an affine function (Duchon,
"Splines minimizing rotation-invariant semi-norms in Sobolev spaces", 1977). Its coefficients solve one linear
system.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["interpolate_spline"]

_LEAST_SQUARE = 1e-10


def _squared_distances(x: Any, y: Any) -> Any:
    squares = tf.reduce_sum(tf.square(x), -1, keepdims=True)
    others = tf.matrix_transpose(tf.reduce_sum(tf.square(y), -1, keepdims=True))
    return squares - 2.0 * tf.matmul(x, y, transpose_b=True) + others


def _radial(squared: Any, order: int) -> Any:
    """r to the power of the order for odd orders, times log r for even ones, of squares of r."""
    with tf.name_scope("phi"):
        squared = tf.maximum(squared, _LEAST_SQUARE)
        if order == 1:
            return tf.sqrt(squared)
        if order % 2:
            return tf.pow(squared, 0.5 * order)
        return 0.5 * tf.pow(squared, 0.5 * order) * tf.log(squared)


def _with_ones(points: Any) -> Any:
    return tf.concat([points, tf.ones_like(points[..., :1])], -1)


def _coefficients(points: Any, values: Any, order: int, regularization_weight: Any) -> tuple[Any, Any]:
    """The weights of the radial functions, and those of the affine function."""
    with tf.name_scope("solve"):
        count = points.get_shape().dims[1].value
        count = tf.shape(points)[1] if count is None else count
        radial = _radial(_squared_distances(points, points), order)
        if not isinstance(regularization_weight, (int, float)) or regularization_weight > 0:
            radial += regularization_weight * tf.eye(count, dtype=points.dtype)
        affine = _with_ones(points)
        corner = tf.zeros_like(tf.matmul(affine, affine, transpose_a=True))
        upper = tf.concat([radial, affine], 2)
        lower = tf.concat([tf.matrix_transpose(affine), corner], 2)
        known = tf.concat([values, tf.zeros_like(tf.matmul(affine, values, transpose_a=True))], 1)
        solved = tf.matrix_solve(tf.concat([upper, lower], 1), known)
        return solved[:, :count], solved[:, count:]


def interpolate_spline(
    train_points: Any,
    train_values: Any,
    query_points: Any,
    order: int,
    regularization_weight: float = 0.0,
    name: str = "interpolate_spline",
) -> Any:
    """The values at points of the polyharmonic spline through other points.

    Args:
        train_points: float tensor of shape [batch size, n, d], n points of d coordinates.
        train_values: float tensor of shape [batch size, n, k], the values at these points.
        query_points: float tensor of shape [batch size, m, d].
        order: of the spline; 2 makes thin-plate splines.
        regularization_weight: above 0 the spline is smoother and passes near the points.
        name: of the operation.

    Returns a tensor of shape [batch size, m, k]. A step fails with InvalidArgumentError if the points do not
    determine the spline, as fewer than d + 1 do.
    """
    with tf.name_scope(name):
        train_points = tf.convert_to_tensor(train_points)
        train_values = tf.convert_to_tensor(train_values)
        query_points = tf.convert_to_tensor(query_points)
        weights, affine = _coefficients(train_points, train_values, order, regularization_weight)
        with tf.name_scope("predict"):
            radial = tf.matmul(_radial(_squared_distances(query_points, train_points), order), weights)
            return radial + tf.matmul(_with_ones(query_points), affine)
