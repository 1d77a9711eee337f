"""Losses of examples, weighted and reduced as TensorFlow 1.15 has them.

losses = weighted(losses_of_examples, weights)
loss = reduced(losses, "sum_over_batch_size")
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.keras.published import own
from flowstone.layers.weights_broadcast import broadcast_weights

__all__ = ["extend", "reduced", "weighted"]


def weighted(losses: Any, weights: Any) -> Any:
    """The losses times their weights, which have the losses' shape or fewer axes; by default 1."""
    with tf.name_scope("weighted_loss"):
        losses = tf.convert_to_tensor(losses)
        kind = losses.dtype.base_dtype
        losses = tf.cast(losses, tf.float32)
        if weights is None:
            weights = broadcast_weights(tf.cast(1.0, tf.float32), losses)
        else:
            utilities = own("utils.losses_utils")
            weights = tf.cast(weights, tf.float32)
            losses, _, weights = utilities.squeeze_or_expand_dimensions(losses, None, weights)
            weights = utilities.broadcast_weights(losses, weights)
        return tf.cast(tf.multiply(losses, weights), kind)


def reduced(losses: Any, reduction: str) -> Any:
    """The weighted losses as they are, their sum, or that divided by their number."""
    if reduction == "none":
        return losses
    total = tf.reduce_sum(losses)
    if reduction == "sum":
        return total
    with tf.name_scope("num_elements") as scope:
        count = tf.cast(tf.size(losses, name=scope), losses.dtype)
    return tf.div_no_nan(tf.reduce_sum(total), count, name="value")


def _repeated(values: Any, weights: Any) -> Any:
    """The weights in the shape of the values, which may have more axes behind those of the weights."""
    values, weights = tf.convert_to_tensor(values), tf.convert_to_tensor(weights)
    for axis in range(weights.shape.ndims, values.shape.ndims):
        weights = tf.expand_dims(weights, axis)
    return broadcast_weights(weights, values)


def extend(module: ModuleType) -> None:
    """Has `keras.utils.losses_utils` repeat weights by TensorFlow's nodes."""
    vars(module)["broadcast_weights"] = _repeated
