"""Convolution layers of `tf.layers` over sequences, images and volumes.

Each class has a function that makes the layer and calls it once. Function arguments are those of the class,
with `inputs` first and `reuse` (of the variables of another call with the same name) last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.layers.activations import activation_named
from flowstone.layers.arguments import (
    ZEROS,
    conv_output_length,
    convert_data_format,
    initializer_named,
    normalize_data_format,
    normalize_padding,
    normalize_tuple,
)
from flowstone.layers.base import InputSpec, Layer
from flowstone.ops.arrays.padding import pad
from flowstone.ops.networks.convolution_layers import conv1d as conv1d_op
from flowstone.ops.networks.convolution_layers import conv2d as conv2d_op
from flowstone.ops.networks.convolution_layers import conv3d as conv3d_op
from flowstone.ops.networks.neural_net import bias_add
from flowstone.ops.networks.spread_windows import SpreadWindows

__all__ = ["Conv1D", "Conv2D", "Conv3D", "Convolution", "conv1d", "conv2d", "conv3d"]

Function = Callable[..., Any]


class Convolution(Layer):
    """The base of convolution layers: activation(inputs ∗ kernel + bias), over `rank` spatial dimensions.

    Args:
        rank: the number of spatial dimensions of inputs [batch, *spatial, channels].
        filters: the number of output channels.
        kernel_size, strides, dilation_rate: one number, or one a spatial dimension.
        padding: "valid" or "same", in any case; "causal" (nothing after a place has a part in it) for
            sequences.
        data_format: "channels_last" or "channels_first" ([batch, channels, *spatial]).
        activation: a function or its name; None for none.
        use_bias: whether there is a bias.
        kernel_initializer, bias_initializer: None for that of the variable scope.
        kernel_regularizer, bias_regularizer: functions of the variable that return a loss.
        activity_regularizer: a function of the output that returns a loss.
        kernel_constraint, bias_constraint: functions that an optimiser applies to the variable's new value.

    The variables are ``kernel`` [*kernel_size, input channels, filters] and ``bias`` [filters]. ValueError
    for inputs of another rank or with an unknown number of channels, and for other arguments.
    """

    def __init__(
        self, rank: int, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str | None = "channels_last", dilation_rate: Any = 1, activation: Any = None,
        use_bias: bool = True, kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
        kernel_regularizer: Function | None = None, bias_regularizer: Function | None = None,
        activity_regularizer: Function | None = None, kernel_constraint: Function | None = None,
        bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.rank, self.filters = rank, filters
        self.kernel_size = normalize_tuple(kernel_size, rank, "kernel_size")
        self.strides = normalize_tuple(strides, rank, "strides")
        self.dilation_rate = normalize_tuple(dilation_rate, rank, "dilation_rate")
        self.padding = normalize_padding(padding)
        if self.padding == "causal" and rank != 1:
            raise ValueError("Causal padding is only supported for `Conv1D` and `SeparableConv1D`.")
        self.data_format = normalize_data_format(data_format)
        self.activation, self._activates = activation_named(activation), activation is not None
        self.use_bias = use_bias
        self.kernel_initializer = initializer_named(kernel_initializer)
        self.bias_initializer = initializer_named(bias_initializer)
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(ndim=rank + 2)
        self.kernel: Any = None
        self.bias: Any = None

    # ---- variables

    def build(self, input_shape: Any) -> None:
        self._make_kernel([*self.kernel_size, self._known_channels(input_shape), int(self.filters)])
        self._make_bias()
        self._make_windows()
        super().build(input_shape)

    def _known_channels(self, input_shape: Any) -> int:
        """The number of input channels, demanded of all further inputs."""
        axis = -1 if self.data_format == "channels_last" else 1
        channels: int | None = as_shape(input_shape)[axis].value
        if channels is None:
            raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        return channels

    def _make_kernel(self, shape: list[int]) -> None:
        self.kernel = self.add_weight(
            "kernel", shape, initializer=self.kernel_initializer, regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )  # fmt: skip

    def _make_windows(self) -> None:
        layout = convert_data_format(self.data_format, self.rank + 2)
        padding = "SAME" if self.padding == "same" else "VALID"
        self._windows = SpreadWindows(
            self.dilation_rate, padding, self.kernel.shape.as_list(), data_format=layout
        )

    def _make_bias(self) -> None:
        if self.use_bias:
            self.bias = self.add_weight(
                "bias", [int(self.filters)], initializer=self.bias_initializer,
                regularizer=self.bias_regularizer, constraint=self.bias_constraint,
            )  # fmt: skip

    # ---- outputs

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
        x = self._causally_padded(convert_to_tensor(inputs))
        return self._finished(self._convolved(x))

    def _causally_padded(self, x: Tensor) -> Tensor:
        if self.padding != "causal":
            return x
        before = [self.dilation_rate[0] * (self.kernel_size[0] - 1), 0]
        last = self.data_format == "channels_last"
        return pad(x, [[0, 0], before, [0, 0]] if last else [[0, 0], [0, 0], before])

    def _convolved(self, x: Tensor) -> Tensor:
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError("strides > 1 not supported in conjunction with dilation_rate > 1")
        if min(self.strides) < 1:
            raise ValueError("all values of strides must be positive")
        layout = convert_data_format(self.data_format, self.rank + 2)
        function: Function = (conv1d_op, conv2d_op, conv3d_op)[self.rank - 1]
        strides = self.strides[0] if self.rank == 1 else self.strides
        return self._windows(
            x, lambda y, _, rule: function(y, self.kernel, strides, rule, data_format=layout)
        )

    def _finished(self, y: Tensor) -> Tensor:
        """`y` with the bias and the activation."""
        if self.use_bias:
            y = self._biased(y)
        return self.activation(y) if self._activates else y

    def _biased(self, y: Tensor) -> Tensor:
        if self.data_format == "channels_last":
            return bias_add(y, self.bias, "NHWC")
        if len(y.dims or ()) == 3:
            return y + F.Reshape(self.bias, [1, int(self.filters), 1])
        return bias_add(y, self.bias, "NCHW")

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The static shape of the output for inputs of `input_shape`."""
        sizes = as_shape(input_shape).as_list()
        last = self.data_format == "channels_last"
        for i in range(self.rank):
            at = i + (1 if last else 2)
            sizes[at] = self._output_length(sizes[at], i)
        sizes[-1 if last else 1] = int(self.filters)
        return TensorShape(sizes)

    def _output_length(self, length: int | None, i: int) -> int | None:
        """The output's size along spatial dimension `i`."""
        return conv_output_length(
            length, self.kernel_size[i], self.padding, self.strides[i], self.dilation_rate[i]
        )


class Conv1D(Convolution):
    """A convolution of sequences [batch, length, channels]; the arguments are those of `Convolution`."""

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str | None = "channels_last", dilation_rate: Any = 1, activation: Any = None,
        use_bias: bool = True, kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
        kernel_regularizer: Function | None = None, bias_regularizer: Function | None = None,
        activity_regularizer: Function | None = None, kernel_constraint: Function | None = None,
        bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            1, filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
            kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
            kernel_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip


class Conv2D(Convolution):
    """A convolution of images [batch, height, width, channels]; the arguments are those of `Convolution`."""

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
        data_format: str | None = "channels_last", dilation_rate: Any = (1, 1), activation: Any = None,
        use_bias: bool = True, kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
        kernel_regularizer: Function | None = None, bias_regularizer: Function | None = None,
        activity_regularizer: Function | None = None, kernel_constraint: Function | None = None,
        bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            2, filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
            kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
            kernel_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip


class Conv3D(Convolution):
    """A convolution of volumes [batch, depth, height, width, channels]; the arguments are those of
    `Convolution`."""

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = (1, 1, 1), padding: str = "valid",
        data_format: str | None = "channels_last", dilation_rate: Any = (1, 1, 1), activation: Any = None,
        use_bias: bool = True, kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
        kernel_regularizer: Function | None = None, bias_regularizer: Function | None = None,
        activity_regularizer: Function | None = None, kernel_constraint: Function | None = None,
        bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            3, filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
            kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
            kernel_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip


def conv1d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
    data_format: str | None = "channels_last", dilation_rate: Any = 1, activation: Any = None,
    use_bias: bool = True, kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
    kernel_regularizer: Function | None = None, bias_regularizer: Function | None = None,
    activity_regularizer: Function | None = None, kernel_constraint: Function | None = None,
    bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
    reuse: bool | None = None,
) -> Tensor:  # fmt: skip
    """A convolution of sequences [batch, length, channels]; a `Conv1D` layer's only call."""
    layer = Conv1D(
        filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
        kernel_constraint, bias_constraint, trainable, name, _reuse=reuse, _scope=name,
    )  # fmt: skip
    result: Tensor = layer(inputs)
    return result


def conv2d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
    data_format: str | None = "channels_last", dilation_rate: Any = (1, 1), activation: Any = None,
    use_bias: bool = True, kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
    kernel_regularizer: Function | None = None, bias_regularizer: Function | None = None,
    activity_regularizer: Function | None = None, kernel_constraint: Function | None = None,
    bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
    reuse: bool | None = None,
) -> Tensor:  # fmt: skip
    """A convolution of images [batch, height, width, channels]; a `Conv2D` layer's only call."""
    layer = Conv2D(
        filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
        kernel_constraint, bias_constraint, trainable, name, _reuse=reuse, _scope=name,
    )  # fmt: skip
    result: Tensor = layer(inputs)
    return result


def conv3d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1, 1), padding: str = "valid",
    data_format: str | None = "channels_last", dilation_rate: Any = (1, 1, 1), activation: Any = None,
    use_bias: bool = True, kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
    kernel_regularizer: Function | None = None, bias_regularizer: Function | None = None,
    activity_regularizer: Function | None = None, kernel_constraint: Function | None = None,
    bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
    reuse: bool | None = None,
) -> Tensor:  # fmt: skip
    """A convolution of volumes [batch, depth, height, width, channels]; a `Conv3D` layer's only call."""
    layer = Conv3D(
        filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
        kernel_constraint, bias_constraint, trainable, name, _reuse=reuse, _scope=name,
    )  # fmt: skip
    result: Tensor = layer(inputs)
    return result


Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
convolution1d, convolution2d, convolution3d = conv1d, conv2d, conv3d
