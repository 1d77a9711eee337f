"""Convolutions that treat each channel by itself: depthwise, separable, and with one filter for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.framework.arg_scope import add_arg_scope
from flowstone.contrib.framework.variables import model_variable
from flowstone.contrib.layers.fully_connected_layers import XAVIER, ZEROS
from flowstone.contrib.layers.utils import channel_dimension, get_variable_collections, two_element_tuple
from flowstone.contrib.layers.variables_of_layers import (
    Function,
    add_to_variable_collections,
    finished,
    variable_getter,
)

__all__ = [
    "conv2d_in_plane",
    "convolution2d_in_plane",
    "separable_conv2d",
    "separable_convolution2d",
]

_NAMES = {
    "bias": "biases",
    "depthwise_kernel": "depthwise_weights",
    "pointwise_kernel": "pointwise_weights",
}


@add_arg_scope
def convolution2d_in_plane(
    inputs: Any, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    activation_fn: Function | None = tf.nn.relu, normalizer_fn: Function | None = None,
    normalizer_params: Mapping[str, Any] | None = None, weights_initializer: Any = XAVIER,
    weights_regularizer: Function | None = None, biases_initializer: Any = ZEROS,
    biases_regularizer: Function | None = None, reuse: Any = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Any:  # fmt: skip
    """The same filter over each channel of images [batch, height, width, channels], as for image gradients.

    ``weights`` is [*kernel_size, 1, 1]; the scope is by default "ConvInPlane". For the arguments see
    `convolution`. ValueError for inputs of rank below 4 and an unknown number of channels.
    """
    given = dict(locals())
    with tf.variable_scope(scope, "ConvInPlane", [inputs], reuse=reuse) as sc:
        inputs = tf.convert_to_tensor(inputs)
        dtype = inputs.dtype.base_dtype
        stride_h, stride_w = two_element_tuple(stride)
        channels = channel_dimension(inputs.shape, "NHWC", min_rank=4)
        weights = model_variable(
            "weights",
            shape=[*two_element_tuple(kernel_size), 1, 1],
            dtype=dtype,
            initializer=weights_initializer,
            regularizer=weights_regularizer,
            collections=get_variable_collections(variables_collections, "weights"),
            trainable=trainable,
        )
        filters = tf.tile(weights, [1, 1, channels, 1])
        outputs = tf.nn.depthwise_conv2d(inputs, filters, [1, stride_h, stride_w, 1], padding)
        outputs = _with_biases(outputs, channels, given, "NHWC")
        return finished(
            outputs, sc.name, outputs_collections, activation_fn, normalizer_fn, normalizer_params
        )


@add_arg_scope
def separable_convolution2d(
    inputs: Any, num_outputs: int | None, kernel_size: Any, depth_multiplier: int = 1, stride: Any = 1,
    padding: str = "SAME", data_format: str = "NHWC", rate: Any = 1,
    activation_fn: Function | None = tf.nn.relu, normalizer_fn: Function | None = None,
    normalizer_params: Mapping[str, Any] | None = None, weights_initializer: Any = XAVIER,
    pointwise_initializer: Any = None, weights_regularizer: Function | None = None,
    biases_initializer: Any = ZEROS, biases_regularizer: Function | None = None, reuse: Any = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    scope: Any = None,
) -> Any:  # fmt: skip
    """A convolution of each channel by itself, then one of size 1 that mixes the channels.

    Args:
        inputs: [batch, height, width, channels]; [batch, channels, height, width] for NCHW.
        num_outputs: the number of output channels; None leaves out the second convolution.
        kernel_size, stride, padding, data_format, rate: of the first convolution; see `convolution`.
        depth_multiplier: how many filters each channel has in the first.
        weights_initializer: of ``depthwise_weights``, and of ``pointwise_weights`` where
            `pointwise_initializer` is None.

    The scope is by default "SeparableConv2d". For the other arguments see `fully_connected`. ValueError for
    another layout and an unknown number of channels.
    """
    given = dict(locals())
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    getter = variable_getter(_NAMES)
    with tf.variable_scope(scope, "SeparableConv2d", [inputs], reuse=reuse, custom_getter=getter) as sc:
        inputs = tf.convert_to_tensor(inputs)
        convolve = _depthwise if num_outputs is None else _separable
        outputs = convolve(inputs, sc, given)
        return finished(
            outputs, sc.name, outputs_collections, activation_fn, normalizer_fn, normalizer_params
        )


def _separable(inputs: Any, scope: Any, given: Mapping[str, Any]) -> Any:
    pointwise_initializer = given["pointwise_initializer"]
    if pointwise_initializer is None:
        pointwise_initializer = given["weights_initializer"]
    layer = tf.layers.SeparableConv2D(
        filters=given["num_outputs"],
        kernel_size=given["kernel_size"],
        strides=given["stride"],
        padding=given["padding"],
        data_format="channels_first" if given["data_format"] == "NCHW" else "channels_last",
        dilation_rate=two_element_tuple(given["rate"]),
        depth_multiplier=given["depth_multiplier"],
        use_bias=given["normalizer_fn"] is None and given["biases_initializer"] is not None,
        depthwise_initializer=given["weights_initializer"],
        pointwise_initializer=pointwise_initializer,
        bias_initializer=given["biases_initializer"],
        depthwise_regularizer=given["weights_regularizer"],
        pointwise_regularizer=given["weights_regularizer"],
        bias_regularizer=given["biases_regularizer"],
        trainable=given["trainable"],
        name=scope.name,
        dtype=inputs.dtype.base_dtype,
        _scope=scope,
        _reuse=given["reuse"],
    )
    outputs = layer(inputs)
    collections = given["variables_collections"]
    add_to_variable_collections(layer.depthwise_kernel, collections, "weights")
    add_to_variable_collections(layer.pointwise_kernel, collections, "weights")
    if layer.bias is not None:
        add_to_variable_collections(layer.bias, collections, "biases")
    return outputs


def _depthwise(inputs: Any, scope: Any, given: Mapping[str, Any]) -> Any:
    data_format, collections = given["data_format"], given["variables_collections"]
    dtype = inputs.dtype.base_dtype
    channels = channel_dimension(inputs.shape, data_format, min_rank=4)
    multiplier = given["depth_multiplier"]
    weights = model_variable(
        "depthwise_weights",
        shape=[*two_element_tuple(given["kernel_size"]), channels, multiplier],
        dtype=dtype,
        initializer=given["weights_initializer"],
        regularizer=given["weights_regularizer"],
        trainable=given["trainable"],
        collections=get_variable_collections(collections, "weights"),
    )
    stride = two_element_tuple(given["stride"])
    strides = [1, 1, *stride] if data_format == "NCHW" else [1, *stride, 1]
    outputs = tf.nn.depthwise_conv2d(
        inputs,
        weights,
        strides,
        given["padding"],
        rate=two_element_tuple(given["rate"]),
        data_format=data_format,
    )
    return _with_biases(outputs, channels * multiplier, given, data_format)


def _with_biases(outputs: Any, channels: int, given: Mapping[str, Any], data_format: str) -> Any:
    """The outputs plus a variable, if there are to be biases."""
    if given["normalizer_fn"] is not None or given["biases_initializer"] is None:
        return outputs
    biases = model_variable(
        "biases",
        shape=[channels],
        dtype=outputs.dtype.base_dtype,
        initializer=given["biases_initializer"],
        regularizer=given["biases_regularizer"],
        trainable=given["trainable"],
        collections=get_variable_collections(given["variables_collections"], "biases"),
    )
    return tf.nn.bias_add(outputs, biases, data_format=data_format)


conv2d_in_plane = convolution2d_in_plane
separable_conv2d = separable_convolution2d
