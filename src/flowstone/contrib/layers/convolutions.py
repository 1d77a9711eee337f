"""Convolutions of one to three dimensions, and those that go the other way, as functions with variables."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.framework.arg_scope import add_arg_scope
from flowstone.contrib.layers.fully_connected_layers import XAVIER, ZEROS
from flowstone.contrib.layers.variables_of_layers import (
    Function,
    add_to_variable_collections,
    finished,
    variable_getter,
)

__all__ = [
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "convolution",
    "convolution1d",
    "convolution2d",
    "convolution2d_transpose",
    "convolution3d",
    "convolution3d_transpose",
]

_FORMATS = (None, "NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW")
_NAMES = {"bias": "biases", "kernel": "weights"}


def _first_or_last(data_format: str | None) -> str:
    return "channels_first" if data_format and data_format.startswith("NC") else "channels_last"


def _apply(kind: Any, inputs: Any, num_outputs: int, given: Mapping[str, Any], **options: Any) -> Any:
    """Calls a layer of convolutions once in a scope; `given` has the arguments that all of them have."""
    scope, default = given["scope"], options.pop("default_scope")
    reuse, normalizer_fn = given["reuse"], given["normalizer_fn"]
    getter = variable_getter(_NAMES)
    with tf.variable_scope(scope, default, [inputs], reuse=reuse, custom_getter=getter) as sc:
        inputs = tf.convert_to_tensor(inputs)
        layer = (kind(inputs) if not isinstance(kind, type) else kind)(
            filters=num_outputs,
            kernel_size=given["kernel_size"],
            strides=given["stride"],
            padding=given["padding"],
            data_format=_first_or_last(given["data_format"]),
            use_bias=normalizer_fn is None and given["biases_initializer"] is not None,
            kernel_initializer=given["weights_initializer"],
            bias_initializer=given["biases_initializer"],
            kernel_regularizer=given["weights_regularizer"],
            bias_regularizer=given["biases_regularizer"],
            trainable=given["trainable"],
            name=sc.name,
            dtype=inputs.dtype.base_dtype,
            _scope=sc,
            _reuse=reuse,
            **options,
        )
        outputs = layer(inputs)
        add_to_variable_collections(layer.kernel, given["variables_collections"], "weights")
        if layer.bias is not None:
            add_to_variable_collections(layer.bias, given["variables_collections"], "biases")
        return finished(
            outputs,
            sc.name,
            given["outputs_collections"],
            given["activation_fn"],
            normalizer_fn,
            given["normalizer_params"],
        )


def _layer_of_rank(inputs: Any, conv_dims: int | None) -> Any:
    rank = inputs.shape.ndims
    if conv_dims is not None and conv_dims + 2 != rank:
        raise ValueError(f"Convolution expects input with rank {conv_dims + 2}, got {rank}")
    kinds = {3: tf.layers.Conv1D, 4: tf.layers.Conv2D, 5: tf.layers.Conv3D}
    if rank not in kinds:
        raise ValueError(f"Convolution not supported for input with rank {rank}")
    return kinds[rank]


@add_arg_scope
def convolution(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    data_format: str | None = None, rate: Any = 1, activation_fn: Function | None = tf.nn.relu,
    normalizer_fn: Function | None = None, normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = XAVIER, weights_regularizer: Function | None = None,
    biases_initializer: Any = ZEROS, biases_regularizer: Function | None = None, reuse: Any = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    scope: Any = None, conv_dims: int | None = None,
) -> Any:  # fmt: skip
    """A convolution of one, two or three dimensions, by the rank of the inputs.

    Args:
        inputs: [batch, …, channels], of rank 3, 4 or 5; with a `data_format` NC… [batch, channels, …].
        num_outputs: the number of filters.
        kernel_size: of the filters: an integer, or one for each dimension.
        stride: the same; all 1 where a `rate` is not.
        padding: "SAME" or "VALID".
        data_format: None is channels last.
        rate: how far apart a filter's values are.
        conv_dims: the number of dimensions, for inputs of that rank less 2 only.

    The variables are ``weights`` [*kernel_size, channels, num_outputs] and ``biases``, in a scope that is by
    default "Conv", made unique. For the other arguments see `fully_connected`.

    Raises:
        ValueError: another layout or rank, an unknown number of channels, or strides together with rates.
    """
    given = dict(locals())
    if data_format not in _FORMATS:
        raise ValueError(f"Invalid data_format: {data_format!r}")
    kind = functools.partial(_layer_of_rank, conv_dims=conv_dims)
    return _apply(kind, inputs, num_outputs, given, dilation_rate=rate, default_scope="Conv")


@add_arg_scope
def convolution1d(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Function | None = tf.nn.relu,
    normalizer_fn: Function | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = XAVIER,
    weights_regularizer: Function | None = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Function | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A convolution over sequences [batch, length, channels]; see `convolution`."""
    return convolution(
        inputs, num_outputs, kernel_size, stride, padding, data_format, rate, activation_fn, normalizer_fn,
        normalizer_params, weights_initializer, weights_regularizer, biases_initializer, biases_regularizer,
        reuse, variables_collections, outputs_collections, trainable, scope, conv_dims=1,
    )  # fmt: skip


@add_arg_scope
def convolution2d(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Function | None = tf.nn.relu,
    normalizer_fn: Function | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = XAVIER,
    weights_regularizer: Function | None = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Function | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A convolution over images [batch, height, width, channels]; see `convolution`."""
    return convolution(
        inputs, num_outputs, kernel_size, stride, padding, data_format, rate, activation_fn, normalizer_fn,
        normalizer_params, weights_initializer, weights_regularizer, biases_initializer, biases_regularizer,
        reuse, variables_collections, outputs_collections, trainable, scope, conv_dims=2,
    )  # fmt: skip


@add_arg_scope
def convolution3d(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Function | None = tf.nn.relu,
    normalizer_fn: Function | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = XAVIER,
    weights_regularizer: Function | None = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Function | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A convolution over volumes [batch, depth, height, width, channels]; see `convolution`."""
    return convolution(
        inputs, num_outputs, kernel_size, stride, padding, data_format, rate, activation_fn, normalizer_fn,
        normalizer_params, weights_initializer, weights_regularizer, biases_initializer, biases_regularizer,
        reuse, variables_collections, outputs_collections, trainable, scope, conv_dims=3,
    )  # fmt: skip


@add_arg_scope
def convolution2d_transpose(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    activation_fn: Function | None = tf.nn.relu,
    normalizer_fn: Function | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = XAVIER,
    weights_regularizer: Function | None = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Function | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """The gradient of a convolution over images: the output is `stride` times as large; see `convolution`.

    ``weights`` is [*kernel_size, num_outputs, channels]; the scope is by default "Conv2d_transpose".
    ValueError for a layout other than NHWC and NCHW.
    """
    given = dict(locals())
    if data_format not in ("NCHW", "NHWC"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    return _apply(tf.layers.Conv2DTranspose, inputs, num_outputs, given, default_scope="Conv2d_transpose")


@add_arg_scope
def convolution3d_transpose(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NDHWC",
    activation_fn: Function | None = tf.nn.relu,
    normalizer_fn: Function | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = XAVIER,
    weights_regularizer: Function | None = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Function | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """The gradient of a convolution over volumes: the output is `stride` times as large; see `convolution`.

    ``weights`` is [*kernel_size, num_outputs, channels]; the scope is by default "Conv3d_transpose".
    ValueError for a layout other than NDHWC and NCDHW.
    """
    given = dict(locals())
    if data_format not in ("NCDHW", "NDHWC"):
        raise ValueError("data_format has to be either NCDHW or NDHWC.")
    return _apply(tf.layers.Conv3DTranspose, inputs, num_outputs, given, default_scope="Conv3d_transpose")


conv1d = convolution1d
conv2d = convolution2d
conv3d = convolution3d
conv2d_transpose = convolution2d_transpose
conv3d_transpose = convolution3d_transpose
