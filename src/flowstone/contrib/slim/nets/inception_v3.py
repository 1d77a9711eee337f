"""Inception v3 (Szegedy and others, Rethinking the Inception architecture for computer vision, 2015)."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib import layers
from flowstone.contrib.framework import arg_scope
from flowstone.contrib.slim.nets.end_points import trunc_normal as trunc_normal
from flowstone.contrib.slim.nets.inception_blocks import (
    batch_norm_scope,
    checked_depth,
    reduced_kernel_size,
    run_blocks,
    scores,
)

__all__ = ["inception_v3", "inception_v3_arg_scope", "inception_v3_base", "trunc_normal"]

_BLOCKS = {
    "Conv2d_1a_3x3": "Conv2d_1a_3x3:32/2@VALID",
    "Conv2d_2a_3x3": "Conv2d_2a_3x3:32@VALID",
    "Conv2d_2b_3x3": "Conv2d_2b_3x3:64",
    "MaxPool_3a_3x3": "MaxPool_3a_3x3/2@VALID",
    "Conv2d_3b_1x1": "Conv2d_3b_1x1:80@VALID",
    "Conv2d_4a_3x3": "Conv2d_4a_3x3:192@VALID",
    "MaxPool_5a_3x3": "MaxPool_5a_3x3/2@VALID",
    "Mixed_5b": (
        "Conv2d_0a_1x1:64",
        "Conv2d_0a_1x1:48 Conv2d_0b_5x5:64",
        "Conv2d_0a_1x1:64 Conv2d_0b_3x3:96 Conv2d_0c_3x3:96",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:32",
    ),
    "Mixed_5c": (
        "Conv2d_0a_1x1:64",
        "Conv2d_0b_1x1:48 Conv_1_0c_5x5:64",
        "Conv2d_0a_1x1:64 Conv2d_0b_3x3:96 Conv2d_0c_3x3:96",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:64",
    ),
    "Mixed_5d": (
        "Conv2d_0a_1x1:64",
        "Conv2d_0a_1x1:48 Conv2d_0b_5x5:64",
        "Conv2d_0a_1x1:64 Conv2d_0b_3x3:96 Conv2d_0c_3x3:96",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:64",
    ),
    "Mixed_6a": (
        "Conv2d_1a_1x1:384:3x3/2@VALID",
        "Conv2d_0a_1x1:64 Conv2d_0b_3x3:96 Conv2d_1a_1x1:96:3x3/2@VALID",
        "MaxPool_1a_3x3/2@VALID",
    ),
    "Mixed_6b": (
        "Conv2d_0a_1x1:192",
        "Conv2d_0a_1x1:128 Conv2d_0b_1x7:128 Conv2d_0c_7x1:192",
        "Conv2d_0a_1x1:128 Conv2d_0b_7x1:128 Conv2d_0c_1x7:128 Conv2d_0d_7x1:128 Conv2d_0e_1x7:192",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:192",
    ),
    "Mixed_6c": (
        "Conv2d_0a_1x1:192",
        "Conv2d_0a_1x1:160 Conv2d_0b_1x7:160 Conv2d_0c_7x1:192",
        "Conv2d_0a_1x1:160 Conv2d_0b_7x1:160 Conv2d_0c_1x7:160 Conv2d_0d_7x1:160 Conv2d_0e_1x7:192",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:192",
    ),
    "Mixed_6d": (
        "Conv2d_0a_1x1:192",
        "Conv2d_0a_1x1:160 Conv2d_0b_1x7:160 Conv2d_0c_7x1:192",
        "Conv2d_0a_1x1:160 Conv2d_0b_7x1:160 Conv2d_0c_1x7:160 Conv2d_0d_7x1:160 Conv2d_0e_1x7:192",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:192",
    ),
    "Mixed_6e": (
        "Conv2d_0a_1x1:192",
        "Conv2d_0a_1x1:192 Conv2d_0b_1x7:192 Conv2d_0c_7x1:192",
        "Conv2d_0a_1x1:192 Conv2d_0b_7x1:192 Conv2d_0c_1x7:192 Conv2d_0d_7x1:192 Conv2d_0e_1x7:192",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:192",
    ),
    "Mixed_7a": (
        "Conv2d_0a_1x1:192 Conv2d_1a_3x3:320/2@VALID",
        "Conv2d_0a_1x1:192 Conv2d_0b_1x7:192 Conv2d_0c_7x1:192 Conv2d_1a_3x3:192/2@VALID",
        "MaxPool_1a_3x3/2@VALID",
    ),
    "Mixed_7b": (
        "Conv2d_0a_1x1:320",
        "Conv2d_0a_1x1:384 Conv2d_0b_1x3:384+Conv2d_0b_3x1:384",
        "Conv2d_0a_1x1:448 Conv2d_0b_3x3:384 Conv2d_0c_1x3:384+Conv2d_0d_3x1:384",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:192",
    ),
    "Mixed_7c": (
        "Conv2d_0a_1x1:320",
        "Conv2d_0a_1x1:384 Conv2d_0b_1x3:384+Conv2d_0c_3x1:384",
        "Conv2d_0a_1x1:448 Conv2d_0b_3x3:384 Conv2d_0c_1x3:384+Conv2d_0d_3x1:384",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:192",
    ),
}

_reduced_kernel_size_for_small_input = reduced_kernel_size


def inception_v3_arg_scope(
    weight_decay: float = 0.00004,
    batch_norm_var_collection: str = "moving_vars",
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    updates_collections: Any = tf.GraphKeys.UPDATE_OPS,
    use_fused_batchnorm: bool = True,
) -> Any:
    """The arguments of the network's layers: L2 regularisation with `weight_decay` and batch normalisation.

    Its moving averages have `batch_norm_decay` and are in `batch_norm_var_collection`; their updates are in
    `updates_collections`. `batch_norm_epsilon` is added to variances; `use_fused_batchnorm`: whether one
    operation computes it.
    """
    return batch_norm_scope(
        weight_decay, batch_norm_var_collection, batch_norm_decay, batch_norm_epsilon, updates_collections,
        fused=use_fused_batchnorm,
    )  # fmt: skip


def inception_v3_base(
    inputs: Any,
    final_endpoint: str = "Mixed_7c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """The layers up to `final_endpoint`: (its result, all results by name).

    `inputs`: images [batch, height, width, 3]. The depths of layers are multiplied by `depth_multiplier`, but
    are at least `min_depth`. Raises ValueError if there is no such layer, or unless the factor is positive.
    """
    depth = checked_depth(depth_multiplier, min_depth)
    end_points: dict[str, Any] = {}
    with tf.variable_scope(scope, "InceptionV3", [inputs]):
        return run_blocks(inputs, _BLOCKS, final_endpoint, depth, end_points), end_points


def inception_v3(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = layers.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV3",
) -> tuple[Any, dict[str, Any]]:
    """The scores of images, and the layers by name with ``AuxLogits``, ``PreLogits``, ``Logits``,
    ``Predictions``.

    `inputs`: [batch, 299, 299, 3]; larger images need `spatial_squeeze` to be false, which leaves the scores
    [batch, height, width, num_classes]. `prediction_fn` gives predictions from scores. `is_training` is for
    batch normalisation and dropout, of which `dropout_keep_prob` is what stays. The depths of layers are
    multiplied by `depth_multiplier`, but are at least `min_depth`; ValueError unless that is positive.
    """
    depth = checked_depth(depth_multiplier, min_depth)
    with tf.variable_scope(scope, "InceptionV3", [inputs, num_classes], reuse=reuse) as outer, arg_scope(
        [layers.batch_norm, layers.dropout], is_training=is_training
    ):  # fmt: skip
        net, end_points = inception_v3_base(
            inputs, scope=outer, min_depth=min_depth, depth_multiplier=depth_multiplier
        )
        middle = end_points["Mixed_6e"]
        end_points["AuxLogits"] = _auxiliary_logits(middle, num_classes, depth, spatial_squeeze)
        before, logits = scores(net, [8, 8], num_classes, dropout_keep_prob, spatial_squeeze)
        end_points["PreLogits"] = before
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


def _auxiliary_logits(net: Any, num_classes: int, depth: Any, spatial_squeeze: bool) -> Any:
    """Scores from a layer in the middle, whose loss helps the layers before it to learn."""
    with tf.variable_scope("AuxLogits"):
        net = layers.avg_pool2d(net, [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
        net = layers.conv2d(net, depth(128), [1, 1], scope="Conv2d_1b_1x1")
        kernel = reduced_kernel_size(net, [5, 5])
        net = layers.conv2d(
            net, depth(768), kernel, weights_initializer=trunc_normal(0.01), padding="VALID",
            scope=f"Conv2d_2a_{kernel[0]}x{kernel[1]}",
        )  # fmt: skip
        net = layers.conv2d(
            net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None,
            weights_initializer=trunc_normal(0.001), scope="Conv2d_2b_1x1",
        )  # fmt: skip
        return tf.squeeze(net, [1, 2], name="SpatialSqueeze") if spatial_squeeze else net


inception_v3.default_image_size = 299  # type: ignore[attr-defined]
