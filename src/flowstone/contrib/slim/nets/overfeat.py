"""OverFeat (Sermanet and others, Integrated recognition, localization and detection using convolutional
networks, 2014), its fast model.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib import layers
from flowstone.contrib.framework import arg_scope
from flowstone.contrib.slim.nets.end_points import end_points_of, scores, squeezed
from flowstone.contrib.slim.nets.end_points import trunc_normal as trunc_normal

__all__ = ["overfeat", "overfeat_arg_scope", "trunc_normal"]


def overfeat_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The arguments of the network's layers; `weight_decay`: of the L2 regularisation."""
    weighted = arg_scope(
        [layers.conv2d, layers.fully_connected],
        activation_fn=tf.nn.relu,
        weights_regularizer=layers.l2_regularizer(weight_decay),
        biases_initializer=tf.zeros_initializer(),
    )
    padded = arg_scope([layers.conv2d], padding="SAME")
    with weighted, padded, arg_scope([layers.max_pool2d], padding="VALID") as scope:
        return scope


def overfeat(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "overfeat",
) -> tuple[Any, dict[str, Any]]:
    """The scores of images and the layers by name.

    `inputs`: [batch, height, width, channels], 231 pixels square where the scores are [batch, num_classes];
    for larger images `spatial_squeeze` must be false. `dropout_keep_prob` holds where `is_training` is true.
    """
    with tf.variable_scope(scope, "overfeat", [inputs]) as outer:
        collection = f"{outer.name}_end_points"
        with arg_scope(
            [layers.conv2d, layers.fully_connected, layers.max_pool2d], outputs_collections=collection
        ):
            net = layers.conv2d(inputs, 64, [11, 11], 4, padding="VALID", scope="conv1")
            net = layers.max_pool2d(net, [2, 2], scope="pool1")
            net = layers.conv2d(net, 256, [5, 5], padding="VALID", scope="conv2")
            net = layers.max_pool2d(net, [2, 2], scope="pool2")
            net = layers.conv2d(net, 512, [3, 3], scope="conv3")
            net = layers.conv2d(net, 1024, [3, 3], scope="conv4")
            net = layers.conv2d(net, 1024, [3, 3], scope="conv5")
            net = layers.max_pool2d(net, [2, 2], scope="pool5")
            net = scores(net, 3072, [6, 6], num_classes, dropout_keep_prob, is_training)
        end_points = end_points_of(collection)
        return squeezed(net, spatial_squeeze, outer, end_points), end_points


overfeat.default_image_size = 231  # type: ignore[attr-defined]
