"""Convolutions and fully connected layers of `tf.contrib.layers` with masked weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flowstone as tf
from flowstone.contrib.framework.arg_scope import add_arg_scope
from flowstone.contrib.layers.convolutions import _apply
from flowstone.contrib.layers.fully_connected_layers import XAVIER, ZEROS
from flowstone.contrib.layers.variables_of_layers import (
    Function,
    add_to_variable_collections,
    finished,
    variable_getter,
)
from flowstone.contrib.model_pruning.pruning import mask_weight

__all__ = ["masked_conv2d", "masked_convolution", "masked_convolution2d", "masked_fully_connected"]


class _Masked:
    """A layer that takes its `kernel`, which stays the variable, times a mask.

    The mask comes before the kernel if `mask_first`, the mask's threshold after both, as in TensorFlow.
    """

    mask_first = False

    def add_weight(self: Any, name: str, shape: Any, *args: Any, **options: Any) -> Any:
        make = super().add_weight  # type: ignore[misc]
        if name != "kernel":
            return make(name, shape, *args, **options)
        mask = self._mask(make, shape) if self.mask_first else None
        kernel = make(name, shape, *args, **options)
        mask = self._mask(make, shape) if mask is None else mask
        threshold = make("threshold", [], initializer=tf.zeros_initializer(), trainable=False)
        self.masked_kernel = mask_weight(kernel, mask, threshold)
        return kernel

    @staticmethod
    def _mask(make: Any, shape: Any) -> Any:
        return make("mask", shape, initializer=tf.ones_initializer(), trainable=False)

    def call(self: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        variable, self.kernel = self.kernel, self.masked_kernel
        try:
            return super().call(inputs, *args, **kwargs)  # type: ignore[misc]
        finally:
            self.kernel = variable


class MaskedConv2D(_Masked, tf.layers.Conv2D):  # type: ignore[misc]
    """`tf.layers.Conv2D` with a mask."""

    mask_first = True


class MaskedFullyConnected(_Masked, tf.layers.Dense):  # type: ignore[misc]
    """`tf.layers.Dense` with a mask."""


@add_arg_scope
def masked_convolution(
    inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
    data_format: str | None = None, rate: Any = 1, activation_fn: Function | None = tf.nn.relu,
    normalizer_fn: Function | None = None, normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = XAVIER, weights_regularizer: Function | None = None,
    biases_initializer: Any = ZEROS, biases_regularizer: Function | None = None, reuse: Any = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    scope: Any = None,
) -> Any:  # fmt: skip
    """`tf.contrib.layers.conv2d` of images [batch, height, width, channels] with masked weights.

    The mask and its threshold are further variables, `mask` and `threshold`. The arguments and errors are
    those of that function; ValueError for inputs of another rank, too.
    """
    given = dict(locals())
    if data_format not in (None, "NHWC", "NCHW"):
        raise ValueError(f"Invalid data_format: {data_format!r}")
    rank = tf.convert_to_tensor(inputs).shape.ndims
    if rank != 4:
        raise ValueError(f"Convolution not supported for input with rank {rank}")
    return _apply(MaskedConv2D, inputs, num_outputs, given, dilation_rate=rate, default_scope="Conv")


masked_convolution2d = masked_convolution
masked_conv2d = masked_convolution


@add_arg_scope
def masked_fully_connected(
    inputs: Any, num_outputs: int, activation_fn: Function | None = tf.nn.relu,
    normalizer_fn: Function | None = None, normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = XAVIER, weights_regularizer: Function | None = None,
    biases_initializer: Any = ZEROS, biases_regularizer: Function | None = None, reuse: Any = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    scope: Any = None,
) -> Any:  # fmt: skip
    """`tf.contrib.layers.fully_connected` with masked weights; the arguments and errors are that function's.

    The mask and its threshold are further variables, `mask` and `threshold`.
    """
    if not isinstance(num_outputs, int):
        raise ValueError(f"num_outputs should be integer, got {num_outputs}.")
    getter = variable_getter({"bias": "biases", "kernel": "weights"})
    with tf.variable_scope(scope, "fully_connected", [inputs], reuse=reuse, custom_getter=getter) as sc:
        inputs = tf.convert_to_tensor(inputs)
        layer = MaskedFullyConnected(
            units=num_outputs,
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=sc.name,
            dtype=inputs.dtype.base_dtype,
            _scope=sc,
            _reuse=reuse,
        )
        outputs = layer(inputs)
        add_to_variable_collections(layer.kernel, variables_collections, "weights")
        if layer.bias is not None:
            add_to_variable_collections(layer.bias, variables_collections, "biases")
        return finished(
            outputs, sc.name, outputs_collections, activation_fn, normalizer_fn, normalizer_params
        )
