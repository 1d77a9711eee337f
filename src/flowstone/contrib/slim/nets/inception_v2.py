"""Inception v2 (Ioffe and Szegedy, Batch normalization: accelerating deep network training by reducing
internal covariate shift, 2015).
"""

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

__all__ = ["inception_v2", "inception_v2_arg_scope", "inception_v2_base", "trunc_normal"]

_BLOCKS = {
    "MaxPool_2a_3x3": "MaxPool_2a_3x3/2",
    "Conv2d_2b_1x1": "Conv2d_2b_1x1:64~0.1",
    "Conv2d_2c_3x3": "Conv2d_2c_3x3:192",
    "MaxPool_3a_3x3": "MaxPool_3a_3x3/2",
    "Mixed_3b": (
        "Conv2d_0a_1x1:64",
        "Conv2d_0a_1x1:64~0.09 Conv2d_0b_3x3:64",
        "Conv2d_0a_1x1:64~0.09 Conv2d_0b_3x3:96 Conv2d_0c_3x3:96",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:32~0.1",
    ),
    "Mixed_3c": (
        "Conv2d_0a_1x1:64",
        "Conv2d_0a_1x1:64~0.09 Conv2d_0b_3x3:96",
        "Conv2d_0a_1x1:64~0.09 Conv2d_0b_3x3:96 Conv2d_0c_3x3:96",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:64~0.1",
    ),
    "Mixed_4a": (
        "Conv2d_0a_1x1:128~0.09 Conv2d_1a_3x3:160/2",
        "Conv2d_0a_1x1:64~0.09 Conv2d_0b_3x3:96 Conv2d_1a_3x3:96/2",
        "MaxPool_1a_3x3/2",
    ),
    "Mixed_4b": (
        "Conv2d_0a_1x1:224",
        "Conv2d_0a_1x1:64~0.09 Conv2d_0b_3x3:96",
        "Conv2d_0a_1x1:96~0.09 Conv2d_0b_3x3:128 Conv2d_0c_3x3:128",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:128~0.1",
    ),
    "Mixed_4c": (
        "Conv2d_0a_1x1:192",
        "Conv2d_0a_1x1:96~0.09 Conv2d_0b_3x3:128",
        "Conv2d_0a_1x1:96~0.09 Conv2d_0b_3x3:128 Conv2d_0c_3x3:128",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:128~0.1",
    ),
    "Mixed_4d": (
        "Conv2d_0a_1x1:160",
        "Conv2d_0a_1x1:128~0.09 Conv2d_0b_3x3:160",
        "Conv2d_0a_1x1:128~0.09 Conv2d_0b_3x3:160 Conv2d_0c_3x3:160",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:96~0.1",
    ),
    "Mixed_4e": (
        "Conv2d_0a_1x1:96",
        "Conv2d_0a_1x1:128~0.09 Conv2d_0b_3x3:192",
        "Conv2d_0a_1x1:160~0.09 Conv2d_0b_3x3:192 Conv2d_0c_3x3:192",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:96~0.1",
    ),
    "Mixed_5a": (
        "Conv2d_0a_1x1:128~0.09 Conv2d_1a_3x3:192/2",
        "Conv2d_0a_1x1:192~0.09 Conv2d_0b_3x3:256 Conv2d_1a_3x3:256/2",
        "MaxPool_1a_3x3/2",
    ),
    "Mixed_5b": (
        "Conv2d_0a_1x1:352",
        "Conv2d_0a_1x1:192~0.09 Conv2d_0b_3x3:320",
        "Conv2d_0a_1x1:160~0.09 Conv2d_0b_3x3:224 Conv2d_0c_3x3:224",
        "AvgPool_0a_3x3 Conv2d_0b_1x1:128~0.1",
    ),
    "Mixed_5c": (
        "Conv2d_0a_1x1:352",
        "Conv2d_0a_1x1:192~0.09 Conv2d_0b_3x3:320",
        "Conv2d_0a_1x1:192~0.09 Conv2d_0b_3x3:224 Conv2d_0c_3x3:224",
        "MaxPool_0a_3x3 Conv2d_0b_1x1:128~0.1",
    ),
}

_reduced_kernel_size_for_small_input = reduced_kernel_size


def inception_v2_arg_scope(
    weight_decay: float = 0.00004, batch_norm_var_collection: str = "moving_vars"
) -> Any:
    """The arguments of the network's layers: L2 regularisation with `weight_decay` and batch normalisation
    with its moving averages in `batch_norm_var_collection`.
    """
    return batch_norm_scope(weight_decay, batch_norm_var_collection)


def inception_v2_base(
    inputs: Any,
    final_endpoint: str = "Mixed_5c",
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
    with tf.variable_scope(scope, "InceptionV2", [inputs]):
        net = layers.separable_conv2d(
            inputs, depth(64), [7, 7], depth_multiplier=min(int(depth(64) / 3), 8), stride=2, padding="SAME",
            weights_initializer=trunc_normal(1.0), scope="Conv2d_1a_7x7",
        )  # fmt: skip
        end_points["Conv2d_1a_7x7"] = net
        return run_blocks(net, _BLOCKS, final_endpoint, depth, end_points), end_points


def inception_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = layers.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV2",
) -> tuple[Any, dict[str, Any]]:
    """The scores of images, and the layers by name with ``Logits`` and ``Predictions``.

    `inputs`: [batch, 224, 224, 3]; larger images need `spatial_squeeze` to be false, which leaves the scores
    [batch, height, width, num_classes]. `prediction_fn` gives predictions from scores. `is_training` is for
    batch normalisation and dropout, of which `dropout_keep_prob` is what stays. The depths of layers are
    multiplied by `depth_multiplier`, but are at least `min_depth`; ValueError unless that is positive.
    """
    checked_depth(depth_multiplier, min_depth)
    with tf.variable_scope(scope, "InceptionV2", [inputs, num_classes], reuse=reuse) as outer, arg_scope(
        [layers.batch_norm, layers.dropout], is_training=is_training
    ):  # fmt: skip
        net, end_points = inception_v2_base(
            inputs, scope=outer, min_depth=min_depth, depth_multiplier=depth_multiplier
        )
        _, logits = scores(net, [7, 7], num_classes, dropout_keep_prob, spatial_squeeze)
        end_points["Logits"] = logits
        end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


inception_v2.default_image_size = 224  # type: ignore[attr-defined]
