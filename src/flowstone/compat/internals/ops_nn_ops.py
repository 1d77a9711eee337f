"""`tensorflow.python.ops.nn_ops`: convolutions as objects."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["Convolution", "xw_plus_b_v1"]


class Convolution:
    """A convolution of any rank, `tf.nn.convolution`, whose arguments are given once.

    Raises ValueError as `tf.nn.convolution`, when it is called.
    """

    def __init__(
        self,
        input_shape: Any,
        filter_shape: Any,
        padding: str,
        strides: Any = None,
        dilation_rate: Any = None,
        name: str | None = None,
        data_format: str | None = None,
    ) -> None:
        self.input_shape, self.filter_shape = tf.TensorShape(input_shape), tf.TensorShape(filter_shape)
        self.padding, self.strides, self.dilation_rate = padding, strides, dilation_rate
        self.name, self.data_format = name, data_format

    def __call__(self, inp: Any, filter: Any) -> Any:
        """The convolution of `inp` with `filter`."""
        return tf.nn.convolution(
            inp, filter, self.padding, self.strides, self.dilation_rate, self.name, self.data_format
        )


def xw_plus_b_v1(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """`matmul(x, weights) + biases`, with the addition of TensorFlow 1's first version."""
    with tf.name_scope(name, "xw_plus_b_v1", [x, weights, biases]) as scope:
        x, weights, biases = (tf.convert_to_tensor(each) for each in (x, weights, biases))
        return tf.raw_ops.BiasAddV1(value=tf.matmul(x, weights), bias=biases, name=scope)
