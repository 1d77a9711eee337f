"""Separable convolution layers of `tf.layers`: each channel by filters of its own, then channels mixed.

Each class has a function that makes the layer and calls it once.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.layers.arguments import ZEROS, initializer_named
from flowstone.layers.convolutional import Conv1D, Conv2D, Convolution, Function
from flowstone.ops.networks.depthwise_layers import separable_conv2d as separable_conv2d_op
from flowstone.ops.networks.neural_net import bias_add

__all__ = ["SeparableConv1D", "SeparableConv2D", "separable_conv1d", "separable_conv2d"]


class _Separable(Convolution):
    """The base of separable convolutions.

    The arguments are those of `Convolution`, and for both kernels an initialiser, a regulariser and a
    constraint. `depth_multiplier` is the number of filters of each input channel.

    The variables are ``depthwise_kernel`` [*kernel_size, input channels, depth_multiplier],
    ``pointwise_kernel`` [1 …, input channels * depth_multiplier, filters] and ``bias`` [filters].
    """

    _FURTHER_CONFIG = {
        "kernel_initializer": {"class_name": "GlorotUniform", "config": {"seed": None, "dtype": "float32"}},
        "kernel_regularizer": None,
        "kernel_constraint": None,
    }

    def __init__(
        self, rank: int, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str | None = "channels_last", dilation_rate: Any = 1, depth_multiplier: int = 1,
        activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = None,
        pointwise_initializer: Any = None, bias_initializer: Any = ZEROS,
        depthwise_regularizer: Function | None = None, pointwise_regularizer: Function | None = None,
        bias_regularizer: Function | None = None, activity_regularizer: Function | None = None,
        depthwise_constraint: Function | None = None, pointwise_constraint: Function | None = None,
        bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        Convolution.__init__(
            self, rank, filters, kernel_size, strides, padding, data_format, dilation_rate, activation,
            use_bias, None, bias_initializer, None, bias_regularizer, activity_regularizer, None,
            bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer = initializer_named(depthwise_initializer)
        self.pointwise_initializer = initializer_named(pointwise_initializer)
        self.depthwise_regularizer, self.depthwise_constraint = depthwise_regularizer, depthwise_constraint
        self.pointwise_regularizer, self.pointwise_constraint = pointwise_regularizer, pointwise_constraint
        self.depthwise_kernel: Any = None
        self.pointwise_kernel: Any = None

    def build(self, input_shape: Any) -> None:
        channels = self._known_channels(input_shape)
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel", [*self.kernel_size, channels, self.depth_multiplier],
            initializer=self.depthwise_initializer, regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
        )  # fmt: skip
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel", [1] * self.rank + [channels * self.depth_multiplier, int(self.filters)],
            initializer=self.pointwise_initializer, regularizer=self.pointwise_regularizer,
            constraint=self.pointwise_constraint,
        )  # fmt: skip
        self._make_bias()
        self.built = True

    def _convolved(self, x: Tensor) -> Tensor:
        last = self.data_format == "channels_last"
        depthwise, pointwise, rates = self.depthwise_kernel, self.pointwise_kernel, self.dilation_rate
        strides = self.strides
        if self.rank == 1:  # sequences are images of height 1
            x = F.ExpandDims(x, 1 if last else 2, name="ExpandDims")
            depthwise = F.ExpandDims(depthwise, 0, name="ExpandDims")
            pointwise = F.ExpandDims(pointwise, 0, name="ExpandDims")
            strides, rates = strides * 2, (1, *rates)
        padding = "SAME" if self.padding == "same" else "VALID"
        steps = [1, *strides, 1] if last else [1, 1, *strides]
        return separable_conv2d_op(
            x, depthwise, pointwise, steps, padding, rates, data_format="NHWC" if last else "NCHW"
        )

    def _finished(self, y: Tensor) -> Tensor:
        last = self.data_format == "channels_last"
        if self.use_bias:
            y = bias_add(y, self.bias, "NHWC" if last else "NCHW")
        if self.rank == 1:
            y = F.Squeeze(y, squeeze_dims=[1 if last else 2])
        return self.activation(y) if self._activates else y


class SeparableConv1D(_Separable, Conv1D):
    """A separable convolution of sequences [batch, length, channels].

    Channels by `depth_multiplier` filters each, then mixed by products; the other arguments are those of
    `Convolution`.
    """

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str | None = "channels_last", dilation_rate: Any = 1, depth_multiplier: int = 1,
        activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = None,
        pointwise_initializer: Any = None, bias_initializer: Any = ZEROS,
        depthwise_regularizer: Function | None = None, pointwise_regularizer: Function | None = None,
        bias_regularizer: Function | None = None, activity_regularizer: Function | None = None,
        depthwise_constraint: Function | None = None, pointwise_constraint: Function | None = None,
        bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        _Separable.__init__(
            self, 1, filters, kernel_size, strides, padding, data_format, dilation_rate, depth_multiplier,
            activation, use_bias, depthwise_initializer, pointwise_initializer, bias_initializer,
            depthwise_regularizer, pointwise_regularizer, bias_regularizer, activity_regularizer,
            depthwise_constraint, pointwise_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip


class SeparableConv2D(_Separable, Conv2D):
    """A separable convolution of images [batch, height, width, channels].

    Channels by `depth_multiplier` filters each, then mixed by products; the other arguments are those of
    `Convolution`.
    """

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
        data_format: str | None = "channels_last", dilation_rate: Any = (1, 1), depth_multiplier: int = 1,
        activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = None,
        pointwise_initializer: Any = None, bias_initializer: Any = ZEROS,
        depthwise_regularizer: Function | None = None, pointwise_regularizer: Function | None = None,
        bias_regularizer: Function | None = None, activity_regularizer: Function | None = None,
        depthwise_constraint: Function | None = None, pointwise_constraint: Function | None = None,
        bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        _Separable.__init__(
            self, 2, filters, kernel_size, strides, padding, data_format, dilation_rate, depth_multiplier,
            activation, use_bias, depthwise_initializer, pointwise_initializer, bias_initializer,
            depthwise_regularizer, pointwise_regularizer, bias_regularizer, activity_regularizer,
            depthwise_constraint, pointwise_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip


def separable_conv1d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
    data_format: str | None = "channels_last", dilation_rate: Any = 1, depth_multiplier: int = 1,
    activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = None,
    pointwise_initializer: Any = None, bias_initializer: Any = ZEROS,
    depthwise_regularizer: Function | None = None, pointwise_regularizer: Function | None = None,
    bias_regularizer: Function | None = None, activity_regularizer: Function | None = None,
    depthwise_constraint: Function | None = None, pointwise_constraint: Function | None = None,
    bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
    reuse: bool | None = None,
) -> Tensor:  # fmt: skip
    """A separable convolution of sequences; a `SeparableConv1D` layer's only call."""
    layer = SeparableConv1D(
        filters, kernel_size, strides, padding, data_format, dilation_rate, depth_multiplier, activation,
        use_bias, depthwise_initializer, pointwise_initializer, bias_initializer, depthwise_regularizer,
        pointwise_regularizer, bias_regularizer, activity_regularizer, depthwise_constraint,
        pointwise_constraint, bias_constraint, trainable, name, _reuse=reuse, _scope=name,
    )  # fmt: skip
    result: Tensor = layer(inputs)
    return result


def separable_conv2d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
    data_format: str | None = "channels_last", dilation_rate: Any = (1, 1), depth_multiplier: int = 1,
    activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = None,
    pointwise_initializer: Any = None, bias_initializer: Any = ZEROS,
    depthwise_regularizer: Function | None = None, pointwise_regularizer: Function | None = None,
    bias_regularizer: Function | None = None, activity_regularizer: Function | None = None,
    depthwise_constraint: Function | None = None, pointwise_constraint: Function | None = None,
    bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
    reuse: bool | None = None,
) -> Tensor:  # fmt: skip
    """A separable convolution of images; a `SeparableConv2D` layer's only call."""
    layer = SeparableConv2D(
        filters, kernel_size, strides, padding, data_format, dilation_rate, depth_multiplier, activation,
        use_bias, depthwise_initializer, pointwise_initializer, bias_initializer, depthwise_regularizer,
        pointwise_regularizer, bias_regularizer, activity_regularizer, depthwise_constraint,
        pointwise_constraint, bias_constraint, trainable, name, _reuse=reuse, _scope=name,
    )  # fmt: skip
    result: Tensor = layer(inputs)
    return result


SeparableConvolution1D, SeparableConvolution2D = SeparableConv1D, SeparableConv2D
separable_convolution1d, separable_convolution2d = separable_conv1d, separable_conv2d
