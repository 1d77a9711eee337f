"""Inception v1, GoogLeNet (Szegedy and others, Going deeper with convolutions, 2014)."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib import layers
from flowstone.contrib.framework import arg_scope
from flowstone.contrib.slim.nets.end_points import trunc_normal as trunc_normal
from flowstone.contrib.slim.nets.inception_blocks import batch_norm_scope, run_blocks

__all__ = ["inception_v1", "inception_v1_arg_scope", "inception_v1_base", "trunc_normal"]

_BLOCKS = {
    "Conv2d_1a_7x7": "Conv2d_1a_7x7:64/2",
    "MaxPool_2a_3x3": "MaxPool_2a_3x3/2",
    "Conv2d_2b_1x1": "Conv2d_2b_1x1:64",
    "Conv2d_2c_3x3": "Conv2d_2c_3x3:192",
    "MaxPool_3a_3x3": "MaxPool_3a_3x3/2",
    "Mixed_3b": (
        "Conv2d_0a_1x1:64",
        "Conv2d_0a_1x1:96 Conv2d_0b_3x3:128",
        "Conv2d_0a_1x1:16 Conv2d_0b_3x3:32",
        "MaxPool_0a_3x3 Conv2d_0b_1x1:32",
    ),
    "Mixed_3c": (
        "Conv2d_0a_1x1:128",
        "Conv2d_0a_1x1:128 Conv2d_0b_3x3:192",
        "Conv2d_0a_1x1:32 Conv2d_0b_3x3:96",
        "MaxPool_0a_3x3 Conv2d_0b_1x1:64",
    ),
    "MaxPool_4a_3x3": "MaxPool_4a_3x3/2",
    "Mixed_4b": (
        "Conv2d_0a_1x1:192",
        "Conv2d_0a_1x1:96 Conv2d_0b_3x3:208",
        "Conv2d_0a_1x1:16 Conv2d_0b_3x3:48",
        "MaxPool_0a_3x3 Conv2d_0b_1x1:64",
    ),
    "Mixed_4c": (
        "Conv2d_0a_1x1:160",
        "Conv2d_0a_1x1:112 Conv2d_0b_3x3:224",
        "Conv2d_0a_1x1:24 Conv2d_0b_3x3:64",
        "MaxPool_0a_3x3 Conv2d_0b_1x1:64",
    ),
    "Mixed_4d": (
        "Conv2d_0a_1x1:128",
        "Conv2d_0a_1x1:128 Conv2d_0b_3x3:256",
        "Conv2d_0a_1x1:24 Conv2d_0b_3x3:64",
        "MaxPool_0a_3x3 Conv2d_0b_1x1:64",
    ),
    "Mixed_4e": (
        "Conv2d_0a_1x1:112",
        "Conv2d_0a_1x1:144 Conv2d_0b_3x3:288",
        "Conv2d_0a_1x1:32 Conv2d_0b_3x3:64",
        "MaxPool_0a_3x3 Conv2d_0b_1x1:64",
    ),
    "Mixed_4f": (
        "Conv2d_0a_1x1:256",
        "Conv2d_0a_1x1:160 Conv2d_0b_3x3:320",
        "Conv2d_0a_1x1:32 Conv2d_0b_3x3:128",
        "MaxPool_0a_3x3 Conv2d_0b_1x1:128",
    ),
    "MaxPool_5a_2x2": "MaxPool_5a_2x2/2",
    "Mixed_5b": (
        "Conv2d_0a_1x1:256",
        "Conv2d_0a_1x1:160 Conv2d_0b_3x3:320",
        "Conv2d_0a_1x1:32 Conv2d_0a_3x3:128",
        "MaxPool_0a_3x3 Conv2d_0b_1x1:128",
    ),
    "Mixed_5c": (
        "Conv2d_0a_1x1:384",
        "Conv2d_0a_1x1:192 Conv2d_0b_3x3:384",
        "Conv2d_0a_1x1:48 Conv2d_0b_3x3:128",
        "MaxPool_0a_3x3 Conv2d_0b_1x1:128",
    ),
}


def inception_v1_arg_scope(
    weight_decay: float = 0.00004, use_batch_norm: bool = True, batch_norm_var_collection: str = "moving_vars"
) -> Any:
    """The arguments of the network's layers: L2 regularisation with `weight_decay` and, if `use_batch_norm`,
    batch normalisation with its moving averages in `batch_norm_var_collection`.
    """
    return batch_norm_scope(weight_decay, batch_norm_var_collection, use_batch_norm=use_batch_norm)


def inception_v1_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1"
) -> tuple[Any, dict[str, Any]]:
    """The layers up to `final_endpoint`: (its result, all results by name).

    `inputs`: images [batch, height, width, 3]. Raises ValueError if there is no such layer.
    """
    end_points: dict[str, Any] = {}
    with tf.variable_scope(scope, "InceptionV1", [inputs]), arg_scope(
        [layers.conv2d, layers.fully_connected], weights_initializer=trunc_normal(0.01)
    ):  # fmt: skip
        return run_blocks(inputs, _BLOCKS, final_endpoint, int, end_points), end_points


def inception_v1(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    prediction_fn: Any = layers.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV1",
) -> tuple[Any, dict[str, Any]]:
    """The scores of images, and the layers by name with ``Logits`` and ``Predictions``.

    `inputs`: [batch, 224, 224, 3]; larger images need `spatial_squeeze` to be false, which leaves the scores
    [batch, height, width, num_classes]. `prediction_fn` gives predictions from scores. `is_training` is for
    batch normalisation and dropout, of which `dropout_keep_prob` is what stays.
    """
    with tf.variable_scope(scope, "InceptionV1", [inputs, num_classes], reuse=reuse) as outer, arg_scope(
        [layers.batch_norm, layers.dropout], is_training=is_training
    ):  # fmt: skip
        net, end_points = inception_v1_base(inputs, scope=outer)
        with tf.variable_scope("Logits"):
            net = layers.avg_pool2d(net, [7, 7], stride=1, scope="MaxPool_0a_7x7")
            net = layers.dropout(net, dropout_keep_prob, scope="Dropout_0b")
            logits = layers.conv2d(
                net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="Conv2d_0c_1x1"
            )
            if spatial_squeeze:
                logits = tf.squeeze(logits, [1, 2], name="SpatialSqueeze")
            end_points["Logits"] = logits
            end_points["Predictions"] = prediction_fn(logits, scope="Predictions")
    return logits, end_points


inception_v1.default_image_size = 224  # type: ignore[attr-defined]
