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
        tf.constant(self.dilation_rate, tf.int32, name="dilation_rate")  # read by nobody, as TensorFlow's

    return build


def _call(self: Any, inputs: Any) -> Any:
    """The convolution of [batch, …, channels], with the bias and the activation."""
    rank, layout = self.rank, _LAYOUTS[self.data_format][self.rank]
    if self.padding == "causal":
        before = self.dilation_rate[0] * (self.kernel_size[0] - 1)  # of channels_last, as the package demands
        inputs = tf.pad(inputs, [(0, 0), (before, 0), (0, 0)])
    outputs = _FUNCTIONS[rank](
        inputs,
        self.kernel,
        self.strides[0] if rank == 1 else self.strides,
        "SAME" if self.padding == "same" else "VALID",
        data_format=layout,
        dilations=self.dilation_rate[0] if rank == 1 else self.dilation_rate,
    )
    if self.use_bias:
        outputs = _biased(self, outputs)
    return outputs if self.activation is None else self.activation(outputs)


def _biased(self: Any, outputs: Any) -> Any:
    if self.data_format == "channels_first" and self.rank == 1:
        return outputs + tf.reshape(self.bias, [1, self.filters, 1])
    return tf.nn.bias_add(outputs, self.bias, "NHWC" if self.data_format == "channels_last" else "NCHW")


def _dropped(self: Any, inputs: Any, training: Any = None) -> Any:
    """`inputs`, in training with the share `rate` of elements zero and the others larger in turn."""
    if self.rate >= 1.0:
        return self._published_call(inputs, training)

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
    if module.__name__.endswith(".core"):
        members["Dropout"]._published_call = members["Dropout"].call
        members["Dropout"].call = _dropped
