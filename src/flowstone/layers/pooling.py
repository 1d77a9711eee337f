"""Pooling layers of `tf.layers`: the largest or mean element of sliding windows over one to three dimensions.

Each class has a function that makes the layer and calls it once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import TensorShape, as_shape
from flowstone.layers.arguments import (
    conv_output_length,
    convert_data_format,
    normalize_data_format,
    normalize_padding,
    normalize_tuple,
)
from flowstone.layers.base import InputSpec, Layer
from flowstone.ops.networks.pooling_layers import avg_pool, avg_pool3d, max_pool, max_pool3d

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "AvgPool2D",
    "MaxPool2D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "avg_pool2d",
    "max_pool2d",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
]


class _Pooling(Layer):
    """Pooling over `_rank` spatial dimensions of inputs [batch, *spatial, channels].

    Args:
        pool_size: the window's size, one number or one a dimension.
        strides: the distance of the windows, likewise.
        padding: "valid" or "same", in any case.
        data_format: "channels_last" or "channels_first" ([batch, channels, *spatial]).

    ValueError for inputs of another rank, and for other arguments.
    """

    _rank: int
    _pool: Callable[..., Tensor]

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        if strides is None:
            raise ValueError("Argument `strides` must not be None.")
        self.pool_size = normalize_tuple(pool_size, self._rank, "pool_size")
        self.strides = normalize_tuple(strides, self._rank, "strides")
        self.padding = normalize_padding(padding)
        self.data_format = normalize_data_format(data_format)
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Tensor:
        x = convert_to_tensor(inputs)
        layout = convert_data_format(self.data_format, max(self._rank, 2) + 2)
        if self._rank > 1:
            return self._pooled(x, self.pool_size, self.strides, layout)
        axis = 2 if self.data_format == "channels_last" else 3  # sequences are images of width 1
        image = F.ExpandDims(x, axis, name="ExpandDims")
        return F.Squeeze(
            self._pooled(image, (*self.pool_size, 1), (*self.strides, 1), layout), squeeze_dims=[axis]
        )

    def _pooled(self, x: Tensor, size: tuple[int, ...], strides: tuple[int, ...], layout: str) -> Tensor:
        window, steps = (
            [1, *sizes, 1] if self.data_format == "channels_last" else [1, 1, *sizes]
            for sizes in (size, strides)
        )
        return type(self)._pool(x, window, steps, self.padding.upper(), layout)

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """The static shape of the output for inputs of `input_shape`."""
        sizes = as_shape(input_shape).as_list()
        first = 1 if self.data_format == "channels_last" else 2
        for i, (size, stride) in enumerate(zip(self.pool_size, self.strides), first):
            sizes[i] = conv_output_length(sizes[i], size, self.padding, stride)
        return TensorShape(sizes)


class MaxPooling1D(_Pooling):
    """The largest element of each window of sequences [batch, length, channels]."""

    _rank, _pool = 1, max_pool


class MaxPooling2D(_Pooling):
    """The largest element of each window of images [batch, height, width, channels]."""

    _rank, _pool = 2, max_pool


class MaxPooling3D(_Pooling):
    """The largest element of each window of volumes [batch, depth, height, width, channels]."""

    _rank, _pool = 3, max_pool3d


class AveragePooling1D(_Pooling):
    """The mean of the elements of each window of sequences [batch, length, channels]."""

    _rank, _pool = 1, avg_pool


class AveragePooling2D(_Pooling):
    """The mean of the elements of each window of images [batch, height, width, channels]."""

    _rank, _pool = 2, avg_pool


class AveragePooling3D(_Pooling):
    """The mean of the elements of each window of volumes [batch, depth, height, width, channels]."""

    _rank, _pool = 3, avg_pool3d


def max_pooling1d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The largest element of each window of sequences [batch, length, channels]."""
    result: Tensor = MaxPooling1D(pool_size, strides, padding, data_format, name)(inputs)
    return result


def max_pooling2d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The largest element of each window of images [batch, height, width, channels]."""
    result: Tensor = MaxPooling2D(pool_size, strides, padding, data_format, name)(inputs)
    return result


def max_pooling3d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The largest element of each window of volumes [batch, depth, height, width, channels]."""
    result: Tensor = MaxPooling3D(pool_size, strides, padding, data_format, name)(inputs)
    return result


def average_pooling1d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The mean of the elements of each window of sequences [batch, length, channels]."""
    result: Tensor = AveragePooling1D(pool_size, strides, padding, data_format, name)(inputs)
    return result


def average_pooling2d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The mean of the elements of each window of images [batch, height, width, channels]."""
    result: Tensor = AveragePooling2D(pool_size, strides, padding, data_format, name)(inputs)
    return result


def average_pooling3d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The mean of the elements of each window of volumes [batch, depth, height, width, channels]."""
    result: Tensor = AveragePooling3D(pool_size, strides, padding, data_format, name)(inputs)
    return result


MaxPool2D, max_pool2d = MaxPooling2D, max_pooling2d
AvgPool2D, avg_pool2d = AveragePooling2D, average_pooling2d
