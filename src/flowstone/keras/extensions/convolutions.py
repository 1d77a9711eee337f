"""Convolutions and dropout of `tf.keras.layers` as TensorFlow 1.15's nodes.

With a seed of the graph alone, what a random operation draws depends on the number of nodes before it, and
programs find operations by their names (``conv2d/Conv2D``).
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import flowstone as tf
from flowstone.keras.published import own
from flowstone.ops.networks.spread_windows import SpreadWindows

__all__ = ["extend"]

_FUNCTIONS: dict[int, Callable[..., Any]] = {1: tf.nn.conv1d, 2: tf.nn.conv2d, 3: tf.nn.conv3d}
_LAYOUTS = {
    "channels_last": {1: "NWC", 2: "NHWC", 3: "NDHWC"},
    "channels_first": {1: "NCW", 2: "NCHW", 3: "NCDHW"},
}


def _changed_build(published: Callable[..., None]) -> Callable[..., None]:
    def build(self: Any, input_shape: Any) -> None:
        """Makes the kernel [*size, channels, filters] and the bias [filters]."""
        published(self, input_shape)
        self._windows = SpreadWindows(
            self.dilation_rate,
            "SAME" if self.padding == "same" else "VALID",
            self.kernel.shape.as_list(),
            data_format=_LAYOUTS[self.data_format][self.rank],
        )

    return build


def _call(self: Any, inputs: Any) -> Any:
    """The convolution of [batch, …, channels], with the bias and the activation."""
    rank, layout = self.rank, _LAYOUTS[self.data_format][self.rank]
    if self.padding == "causal":
        before = self.dilation_rate[0] * (self.kernel_size[0] - 1)  # of channels_last, as the package demands
        inputs = tf.pad(inputs, [(0, 0), (before, 0), (0, 0)])
    strides = self.strides[0] if rank == 1 else self.strides
    outputs = self._windows(
        tf.convert_to_tensor(inputs),
        lambda x, _, rule: _FUNCTIONS[rank](x, self.kernel, strides, rule, data_format=layout),
    )
    if self.use_bias:
        outputs = _biased(self, outputs)
    return outputs if self.activation is None else self.activation(outputs)


def _biased(self: Any, outputs: Any) -> Any:
    if self.data_format == "channels_first" and self.rank == 1:
        return outputs + tf.reshape(self.bias, [1, self.filters, 1])
    return tf.nn.bias_add(outputs, self.bias, "NHWC" if self.data_format == "channels_last" else "NCHW")


def _transposed(published: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, inputs: Any) -> Any:
        """The gradient of a convolution of [batch, …, channels], with the bias and the activation."""
        dilations = getattr(self, "dilation_rate", 1)
        if self.data_format != "channels_last" or {*_as_tuple(dilations)} != {1}:
            return published(self, inputs)
        sizes, rank = tf.shape(inputs), len(self.kernel_size)
        batch, *lengths = [sizes[axis] for axis in range(rank + 1)]
        paddings = self.output_padding or [None] * rank
        made = own("utils.conv_utils").deconv_length
        outer = [
            made(length, stride, size, self.padding, padding)
            for length, stride, size, padding in zip(lengths, self.strides, self.kernel_size, paddings)
        ]
        shape = tf.stack([batch, *outer, self.filters])
        if rank == 2:
            shape[0]  # read by nobody, as TensorFlow's
        transpose = tf.nn.conv2d_transpose if rank == 2 else tf.nn.conv3d_transpose
        strides, padding = (1, *self.strides, 1), self.padding.upper()
        outputs = transpose(inputs, self.kernel, shape, strides, padding)
        if self.use_bias:
            outputs = tf.nn.bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    return call


def _as_tuple(sizes: Any) -> tuple[Any, ...]:
    return sizes if isinstance(sizes, tuple) else (sizes,)


def _separable(published: Callable[..., Any]) -> Callable[..., Any]:
    def call(self: Any, inputs: Any) -> Any:
        """Each channel's own convolution of [batch, time, channels], then one over the channels."""
        if self.data_format != "channels_last" or self.padding == "causal":
            return published(self, inputs)
        outputs = tf.nn.separable_conv2d(
            tf.expand_dims(inputs, 1),
            tf.expand_dims(self.depthwise_kernel, 0),
            tf.expand_dims(self.pointwise_kernel, 0),
            (1, *self.strides * 2, 1),
            self.padding.upper(),
            rate=(1, *self.dilation_rate),
        )
        if self.use_bias:
            outputs = tf.nn.bias_add(outputs, self.bias)
        outputs = tf.squeeze(outputs, [1])
        return outputs if self.activation is None else self.activation(outputs)

    return call


def _dropped(self: Any, inputs: Any, training: Any = None) -> Any:
    """`inputs`, in training with the share `rate` of elements zero and the others larger in turn."""

    def dropped_inputs() -> Any:
        return tf.nn.dropout(
            inputs, noise_shape=self._get_noise_shape(inputs), seed=self.seed, rate=self.rate
        )

    backend = own("backend")
    return backend.in_train_phase(dropped_inputs, lambda: tf.identity(inputs), training=training)


def extend(module: ModuleType) -> None:
    """Changes the classes that `module` defines."""
    members = vars(module)
    if "_Conv" in members:
        members["_Conv"].build, members["_Conv"].call = _changed_build(members["_Conv"].build), _call
        for name in ("Conv2DTranspose", "Conv3DTranspose"):
            members[name].call = _transposed(members[name].call)
        members["SeparableConv1D"].call = _separable(members["SeparableConv1D"].call)
    if module.__name__.endswith(".core"):
        members["Dropout"]._published_call = members["Dropout"].call
        members["Dropout"].call = _dropped
