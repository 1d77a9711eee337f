"""`tensorflow.python.ops.math_ops`: shapes of reductions."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["reduced_shape"]


def reduced_shape(input_shape: Any, axes: Any) -> Any:
    """The shape that a reduction over `axes` with `keepdims` gives, as a vector of int32.

    Args:
        input_shape: the shape of what is reduced, a vector.
        axes: a scalar or vector of dimensions, which may be negative.
    """
    known_shape, known_axes = tf.get_static_value(input_shape), tf.get_static_value(axes)
    if known_shape is not None and known_axes is not None:
        known_shape = known_shape.copy()
        known_shape[known_axes] = 1
        return known_shape
    input_shape, axes = tf.to_int32(input_shape), tf.to_int32(axes)
    rank = tf.size(input_shape)
    axes = tf.reshape((axes + rank) % rank, [-1])
    return tf.dynamic_stitch([tf.range(rank), axes], [input_shape, tf.fill(tf.shape(axes), 1)])
