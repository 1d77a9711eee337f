"""Transposed convolution layers of `tf.layers`: what undoes the shape of a convolution of images or volumes.

Each class has a function that makes the layer and calls it once.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.tensors.tensor import Tensor
from flowstone.layers.arguments import ZEROS, convert_data_format, deconv_output_length
from flowstone.layers.convolutional import Conv2D, Conv3D, Convolution, Function
from flowstone.ops.arrays.packing import stack
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.networks.convolution_layers import conv2d_transpose as conv2d_transpose_op
from flowstone.ops.networks.convolution_layers import conv3d_transpose as conv3d_transpose_op

__all__ = ["Conv2DTranspose", "Conv3DTranspose", "conv2d_transpose", "conv3d_transpose"]


class _Transposed(Convolution):
    """The base of transposed convolutions, whose ``kernel`` is [*kernel_size, filters, input channels]."""

    def build(self, input_shape: Any) -> None:
        self._make_kernel([*self.kernel_size, int(self.filters), self._known_channels(input_shape)])
        self._make_bias()
        self.built = True

    def _convolved(self, x: Tensor) -> Tensor:
        last = self.data_format == "channels_last"
        found = shape_of(x)
        batch = found[0]
        lengths = [found[i + (1 if last else 2)] for i in range(self.rank)]
        sizes = [self._output_length(length, i) for i, length in enumerate(lengths)]
        channels = int(self.filters)
        to = stack([batch, *sizes, channels] if last else [batch, channels, *sizes])
        function: Function = conv2d_transpose_op if self.rank == 2 else conv3d_transpose_op
        layout = convert_data_format(self.data_format, self.rank + 2)
        if self.rank == 2:
            to[0]  # of which TensorFlow makes a dimension
        y: Tensor = function(x, self.kernel, to, self.strides, self.padding.upper(), layout)
        y.set_shape(self.compute_output_shape(x.shape))
        return y

    def _output_length(self, length: Any, i: int) -> Any:
        return deconv_output_length(length, self.kernel_size[i], self.padding, self.strides[i])


class Conv2DTranspose(_Transposed, Conv2D):
    """A transposed convolution of images [batch, height, width, channels].

    The arguments are those of `Convolution`, without `dilation_rate`.
    """

    _FURTHER_CONFIG = {"dilation_rate": (1, 1), "output_padding": None}

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
        data_format: str | None = "channels_last", activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
        kernel_regularizer: Function | None = None, bias_regularizer: Function | None = None,
        activity_regularizer: Function | None = None, kernel_constraint: Function | None = None,
        bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        Convolution.__init__(
            self, 2, filters, kernel_size, strides, padding, data_format, 1, activation, use_bias,
            kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
            kernel_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip


class Conv3DTranspose(_Transposed, Conv3D):
    """A transposed convolution of volumes [batch, depth, height, width, channels].

    The arguments are those of `Convolution`, without `dilation_rate`.
    """

    _FURTHER_CONFIG = {"output_padding": None}

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = (1, 1, 1), padding: str = "valid",
        data_format: str | None = "channels_last", activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
        kernel_regularizer: Function | None = None, bias_regularizer: Function | None = None,
        activity_regularizer: Function | None = None, kernel_constraint: Function | None = None,
        bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        Convolution.__init__(
            self, 3, filters, kernel_size, strides, padding, data_format, 1, activation, use_bias,
            kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer,
            kernel_constraint, bias_constraint, trainable, name, **kwargs,
        )  # fmt: skip


def conv2d_transpose(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
    data_format: str | None = "channels_last", activation: Any = None, use_bias: bool = True,
    kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
    kernel_regularizer: Function | None = None, bias_regularizer: Function | None = None,
    activity_regularizer: Function | None = None, kernel_constraint: Function | None = None,
    bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
    reuse: bool | None = None,
) -> Tensor:  # fmt: skip
    """A transposed convolution of images; a `Conv2DTranspose` layer's only call."""
    layer = Conv2DTranspose(
        filters, kernel_size, strides, padding, data_format, activation, use_bias, kernel_initializer,
        bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer, kernel_constraint,
        bias_constraint, trainable, name, _reuse=reuse, _scope=name,
    )  # fmt: skip
    result: Tensor = layer(inputs)
    return result


def conv3d_transpose(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1, 1), padding: str = "valid",
    data_format: str | None = "channels_last", activation: Any = None, use_bias: bool = True,
    kernel_initializer: Any = None, bias_initializer: Any = ZEROS,
    kernel_regularizer: Function | None = None, bias_regularizer: Function | None = None,
    activity_regularizer: Function | None = None, kernel_constraint: Function | None = None,
    bias_constraint: Function | None = None, trainable: bool = True, name: str | None = None,
    reuse: bool | None = None,
) -> Tensor:  # fmt: skip
    """A transposed convolution of volumes; a `Conv3DTranspose` layer's only call."""
    layer = Conv3DTranspose(
        filters, kernel_size, strides, padding, data_format, activation, use_bias, kernel_initializer,
        bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer, kernel_constraint,
        bias_constraint, trainable, name, _reuse=reuse, _scope=name,
    )  # fmt: skip
    result: Tensor = layer(inputs)
    return result


Convolution2DTranspose = Deconvolution2D = Deconv2D = Conv2DTranspose
Convolution3DTranspose = Deconvolution3D = Deconv3D = Conv3DTranspose
convolution2d_transpose = deconvolution2d = deconv2d = conv2d_transpose
convolution3d_transpose = deconvolution3d = deconv3d = conv3d_transpose
