"""AlexNet, as Krizhevsky gave it for many GPUs (One weird trick for parallelizing convolutional neural
networks, 2014), without local response normalisation.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib import layers
from flowstone.contrib.framework import arg_scope
from flowstone.contrib.slim.nets.end_points import end_points_of, scores, squeezed
from flowstone.contrib.slim.nets.end_points import trunc_normal as trunc_normal

__all__ = ["alexnet_v2", "alexnet_v2_arg_scope", "trunc_normal"]


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The arguments of the network's layers; `weight_decay`: of the L2 regularisation."""
    weighted = arg_scope(
        [layers.conv2d, layers.fully_connected],
        activation_fn=tf.nn.relu,
        weights_regularizer=layers.l2_regularizer(weight_decay),
        biases_initializer=tf.constant_initializer(0.1),
    )
    padded = arg_scope([layers.conv2d], padding="SAME")
    with weighted, padded, arg_scope([layers.max_pool2d], padding="VALID") as scope:
        return scope


def alexnet_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "alexnet_v2",
) -> tuple[Any, dict[str, Any]]:
    """The scores of images and the layers by name.

    `inputs`: [batch, height, width, channels], 224 pixels square where the scores are [batch, num_classes];
    for larger images `spatial_squeeze` must be false. `dropout_keep_prob` holds where `is_training` is true.
    """
    with tf.variable_scope(scope, "alexnet_v2", [inputs]) as outer:
        collection = f"{outer.name}/_end_points"
        with arg_scope(
            [layers.conv2d, layers.fully_connected, layers.max_pool2d], outputs_collections=[collection]
        ):
            net = layers.conv2d(inputs, 64, [11, 11], 4, padding="VALID", scope="conv1")
            net = layers.max_pool2d(net, [3, 3], 2, scope="pool1")
            net = layers.conv2d(net, 192, [5, 5], scope="conv2")
            net = layers.max_pool2d(net, [3, 3], 2, scope="pool2")
            net = layers.conv2d(net, 384, [3, 3], scope="conv3")
            net = layers.conv2d(net, 384, [3, 3], scope="conv4")
            net = layers.conv2d(net, 256, [3, 3], scope="conv5")
            net = layers.max_pool2d(net, [3, 3], 2, scope="pool5")
            net = scores(net, 4096, [5, 5], num_classes, dropout_keep_prob, is_training)
        end_points = end_points_of(collection)
        return squeezed(net, spatial_squeeze, outer, end_points), end_points


alexnet_v2.default_image_size = 224  # type: ignore[attr-defined]
