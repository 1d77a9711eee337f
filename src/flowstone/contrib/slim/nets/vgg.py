"""VGG (Simonyan and Zisserman, Very deep convolutional networks for large-scale image recognition, 2014)."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib import layers
from flowstone.contrib.framework import arg_scope
from flowstone.contrib.slim.nets.end_points import end_points_of, squeezed

__all__ = ["vgg_16", "vgg_19", "vgg_a", "vgg_arg_scope", "vgg_d", "vgg_e"]

_DEPTHS = (64, 128, 256, 512, 512)


def vgg_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The arguments of the networks' layers; `weight_decay`: of the L2 regularisation."""
    with (
        arg_scope(
            [layers.conv2d, layers.fully_connected],
            activation_fn=tf.nn.relu,
            weights_regularizer=layers.l2_regularizer(weight_decay),
            biases_initializer=tf.zeros_initializer(),
        ),
        arg_scope([layers.conv2d], padding="SAME") as scope,
    ):
        return scope


def _vgg(
    inputs: Any,
    repetitions: tuple[int, ...],
    num_classes: int,
    is_training: Any,
    dropout_keep_prob: float,
    spatial_squeeze: bool,
    scope: str,
    default_scope: str,
) -> tuple[Any, dict[str, Any]]:
    with tf.variable_scope(scope, default_scope, [inputs]) as outer:
        collection = f"{outer.name}/_end_points" if default_scope == "vgg_a" else f"{outer.name}_end_points"
        with arg_scope(
            [layers.conv2d, layers.fully_connected, layers.max_pool2d], outputs_collections=collection
        ):
            net = inputs
            for number, (count, depth) in enumerate(zip(repetitions, _DEPTHS), 1):
                net = layers.repeat(net, count, layers.conv2d, depth, [3, 3], scope=f"conv{number}")
                net = layers.max_pool2d(net, [2, 2], scope=f"pool{number}")
            net = layers.conv2d(net, 4096, [7, 7], padding="VALID", scope="fc6")
            net = layers.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
            net = layers.conv2d(net, 4096, [1, 1], scope="fc7")
            net = layers.dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
            net = layers.conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8")
        end_points = end_points_of(collection)
        return squeezed(net, spatial_squeeze, outer, end_points), end_points


def vgg_a(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "vgg_a",
) -> tuple[Any, dict[str, Any]]:
    """The scores of images by the network of 11 layers, and the layers by name; see `vgg_16`."""
    return _vgg(
        inputs, (1, 1, 2, 2, 2), num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope, "vgg_a"
    )


def vgg_16(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "vgg_16",
) -> tuple[Any, dict[str, Any]]:
    """The scores of images by the network of 16 layers, and the layers by name.

    `inputs`: [batch, height, width, channels], 224 pixels square where the scores are [batch, num_classes];
    for larger images `spatial_squeeze` must be false. `dropout_keep_prob` holds where `is_training` is true.
    """
    return _vgg(
        inputs, (2, 2, 3, 3, 3), num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope, "vgg_16"
    )


def vgg_19(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "vgg_19",
) -> tuple[Any, dict[str, Any]]:
    """The scores of images by the network of 19 layers, and the layers by name; see `vgg_16`."""
    return _vgg(
        inputs, (2, 2, 4, 4, 4), num_classes, is_training, dropout_keep_prob, spatial_squeeze, scope, "vgg_19"
    )


for _net in (vgg_a, vgg_16, vgg_19):
    _net.default_image_size = 224  # type: ignore[attr-defined]

vgg_d = vgg_16
vgg_e = vgg_19
