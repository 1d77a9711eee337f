"""What a network returns beside its output: the tensors of its layers, by name."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib import layers
from flowstone.contrib.framework import arg_scope

__all__ = ["end_points_of", "scores", "squeezed", "trunc_normal"]


def trunc_normal(stddev: float) -> Any:
    """An initialiser of a truncated normal distribution about zero."""
    return tf.truncated_normal_initializer(0.0, stddev)


def end_points_of(collection: str) -> dict[str, Any]:
    """The layers that were collected, by their scopes' names."""
    points: dict[str, Any] = layers.utils.convert_collection_to_dict(collection)
    return points


def scores(
    net: Any, depth: int, kernel_size: list[int], num_classes: int, keep_prob: float, is_training: Any
) -> Any:
    """Scores [batch, height, width, num_classes] by three layers, fully connected where the images
    have just the size of the kernel of the first, which has `depth` outputs.
    """
    with arg_scope(
        [layers.conv2d],
        weights_initializer=trunc_normal(0.005),
        biases_initializer=tf.constant_initializer(0.1),
    ):
        net = layers.conv2d(net, depth, kernel_size, padding="VALID", scope="fc6")
        net = layers.dropout(net, keep_prob, is_training=is_training, scope="dropout6")
        net = layers.conv2d(net, 4096, [1, 1], scope="fc7")
        net = layers.dropout(net, keep_prob, is_training=is_training, scope="dropout7")
        return layers.conv2d(
            net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None,
            biases_initializer=tf.zeros_initializer(), scope="fc8",
        )  # fmt: skip


def squeezed(net: Any, spatial_squeeze: bool, scope: Any, end_points: dict[str, Any]) -> Any:
    """The scores [batch, 1, 1, classes], or [batch, classes] where that is wished, the end point ``fc8``."""
    if spatial_squeeze:
        net = tf.squeeze(net, [1, 2], name="fc8/squeezed")
        end_points[f"{scope.name}/fc8"] = net
    return net
