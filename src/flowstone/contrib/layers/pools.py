"""Maxima and means of windows, and dropout."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.framework.arg_scope import add_arg_scope
from flowstone.contrib.layers.utils import collect_named_outputs
from flowstone.contrib.layers.variables_of_layers import model_variable_getter

__all__ = ["avg_pool2d", "avg_pool3d", "dropout", "max_pool2d", "max_pool3d", "pool"]


def _pooled(kind: Any, default: str, inputs: Any, size: Any, stride: Any, padding: str, data_format: str,
            collections: Any, scope: str | None) -> Any:  # fmt: skip
    layouts = ("NCDHW", "NDHWC") if default.endswith("3D") else ("NCHW", "NHWC")
    if data_format not in layouts:
        raise ValueError(f"data_format has to be either {layouts[0]} or {layouts[1]}.")
    with tf.name_scope(scope, default, [inputs]) as sc:
        layer = kind(
            pool_size=size,
            strides=stride,
            padding=padding,
            data_format="channels_first" if data_format.startswith("NC") else "channels_last",
            _scope=sc,
        )
        return collect_named_outputs(collections, sc.rstrip("/"), layer(tf.convert_to_tensor(inputs)))


@add_arg_scope
def avg_pool2d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """The mean of each window of images.

    Args:
        inputs: [batch, height, width, channels]; [batch, channels, height, width] for NCHW.
        kernel_size, stride: an integer or two.
        padding: "VALID" or "SAME".
        data_format: "NHWC" or "NCHW".
        outputs_collections: collections for the output, under the scope's name.
        scope: the name scope; default "AvgPool2D".

    Raises:
        ValueError: another layout, padding or rank.
    """
    return _pooled(
        tf.layers.AveragePooling2D, "AvgPool2D", inputs, kernel_size, stride, padding, data_format,
        outputs_collections, scope,
    )  # fmt: skip


@add_arg_scope
def avg_pool3d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NDHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """The mean of each window of volumes, NDHWC or NCDHW, in the scope "AvgPool3D"; see `avg_pool2d`."""
    return _pooled(
        tf.layers.AveragePooling3D, "AvgPool3D", inputs, kernel_size, stride, padding, data_format,
        outputs_collections, scope,
    )  # fmt: skip


@add_arg_scope
def max_pool2d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """The maximum of each window of images, in the scope "MaxPool2D"; see `avg_pool2d`."""
    return _pooled(
        tf.layers.MaxPooling2D, "MaxPool2D", inputs, kernel_size, stride, padding, data_format,
        outputs_collections, scope,
    )  # fmt: skip


@add_arg_scope
def max_pool3d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NDHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """The maximum of each window of volumes, NDHWC or NCDHW, in the scope "MaxPool3D"; see `avg_pool2d`."""
    return _pooled(
        tf.layers.MaxPooling3D, "MaxPool3D", inputs, kernel_size, stride, padding, data_format,
        outputs_collections, scope,
    )  # fmt: skip


@add_arg_scope
def pool(
    inputs: Any,
    kernel_size: Any,
    pooling_type: str,
    padding: str = "VALID",
    data_format: str | None = None,
    dilation_rate: Any = 1,
    stride: Any = 1,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """The maximum ("MAX") or mean ("AVG") of each window, for one to three dimensions; see `tf.nn.pool`.

    ValueError for inputs of unknown rank.
    """
    with tf.name_scope(scope, f"{pooling_type.lower()}_pool", [inputs]) as sc:
        inputs = tf.convert_to_tensor(inputs)
        if inputs.shape.ndims is None:
            raise ValueError("Rank of inputs must be known")
        n = inputs.shape.ndims - 2
        if n < 1:
            raise ValueError("Rank of inputs must be >= 3.")
        outputs = tf.nn.pool(
            inputs,
            window_shape=_each(n, kernel_size),
            pooling_type=pooling_type,
            padding=padding,
            data_format=data_format,
            dilations=_each(n, dilation_rate),
            strides=_each(n, stride),
            name=sc,
        )
        return collect_named_outputs(outputs_collections, sc.rstrip("/"), outputs)


def _each(n: int, value: Any) -> list[int]:
    return [value] * n if isinstance(value, int) else list(value)


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: int | None = None,
) -> Any:
    """Sets elements to zero by chance and scales the others by 1 / keep_prob, in training only.

    Args:
        inputs: a tensor.
        keep_prob: the probability that an element is kept; a number or a scalar.
        noise_shape: the shape of the choices, which are broadcast; default: that of the inputs.
        is_training: a bool or a scalar bool; if false, the inputs are the output.
        outputs_collections: collections for the output, under the scope's name.
        scope: the variable scope; default "Dropout".
        seed: of the choices.
    """
    with tf.variable_scope(scope, "Dropout", [inputs], custom_getter=model_variable_getter) as sc:
        layer = tf.layers.Dropout(
            rate=1 - keep_prob, noise_shape=noise_shape, seed=seed, name=sc.name, _scope=sc
        )
        outputs = layer(tf.convert_to_tensor(inputs), training=is_training)
        return collect_named_outputs(outputs_collections, sc.name, outputs)
