"""Convolutions channel by channel, and separable ones: the public functions of ``tf.nn``."""

from __future__ import annotations

from typing import Any

from flowstone.framework.names.argument_orders import dilations_before_name, or_in_order
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.networks.convolution import (
    depthwise_backprop_filter_op,
    depthwise_backprop_input_op,
    depthwise_op,
)
from flowstone.ops.networks.convolution_layers import (
    conv2d,
    expanded,
    padding_attributes,
    require_one_above_1,
    spatial_rates,
)
from flowstone.ops.networks.spread_windows import SpreadWindows

__all__ = [
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "depthwise_conv2d_native",
    "depthwise_conv2d_native_backprop_filter",
    "depthwise_conv2d_native_backprop_input",
    "separable_conv2d",
]


@or_in_order(5, "dilations name", dilations_before_name)
def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Each channel's own convolution: images [batch, height, width, in], filter [rows, columns, in,
    multiplier].

    The result has in * multiplier channels, those of one input channel together.
    """
    return depthwise_op(
        input, filter, strides=list(strides), data_format=data_format,
        dilations=expanded(dilations, 2, data_format), name=name, **padding_attributes(padding),
    )  # fmt: skip


@or_in_order(6, "dilations name", dilations_before_name)
def depthwise_conv2d_native_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d_native` by its input, whose shape is `input_sizes` (int32)."""
    return depthwise_backprop_input_op(
        input_sizes, filter, out_backprop, strides=list(strides), data_format=data_format,
        dilations=expanded(dilations, 2, data_format), name=name, **padding_attributes(padding),
    )  # fmt: skip


@or_in_order(6, "dilations name", dilations_before_name)
def depthwise_conv2d_native_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d_native` by its filter, whose shape is `filter_sizes` (int32)."""
    return depthwise_backprop_filter_op(
        input, filter_sizes, out_backprop, strides=list(strides), data_format=data_format,
        dilations=expanded(dilations, 2, data_format), name=name, **padding_attributes(padding),
    )  # fmt: skip


depthwise_conv2d_backprop_input = depthwise_conv2d_native_backprop_input
depthwise_conv2d_backprop_filter = depthwise_conv2d_native_backprop_filter


def _images(input: Any) -> Tensor:
    images = convert_to_tensor(input, name="tensor_in")
    if images.dims is not None and len(images.dims) < 3:
        raise ValueError("input tensor must have rank 3 at least")
    return images


def _depthwise(
    input: Tensor, filter: Tensor, strides: list[int], padding: str, rates: Any, layout: str, name: str
) -> Tensor:
    sizes = shape_of(filter)
    if padding == "SAME" and not filter.shape.is_fully_defined():
        return depthwise_conv2d_native(input, filter, strides, padding, layout, name, rates)
    windows = SpreadWindows(spatial_rates(rates, 2, layout), padding, sizes, data_format=layout)
    return windows(input, lambda x, _, rule: depthwise_conv2d_native(x, filter, strides, rule, layout, name))


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """`depthwise_conv2d_native` with the dilations `rate` (rows, columns);

    strides must then be 1 (ValueError).
    """
    rates = rate if dilations is None else dilations
    require_one_above_1(list(strides), rates)
    with get_default_graph().name_scope(name or "depthwise") as scope:
        input = _images(input)
        filter = convert_to_tensor(filter, name="filter_in")
        return _depthwise(input, filter, strides, padding, rates, data_format or "NHWC", scope)


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """A depthwise convolution, then one by `pointwise_filter` [1, 1, in * multiplier, out] that mixes
    channels.

    ValueError if the pointwise filter has another form.
    """
    rates, layout = rate if dilations is None else dilations, data_format or "NHWC"
    with get_default_graph().name_scope(name or "separable_conv2d") as scope:
        input = _images(input)
        depthwise_filter = convert_to_tensor(depthwise_filter, name="depthwise_filter")
        pointwise = convert_to_tensor(pointwise_filter, name="pointwise_filter")
        if not pointwise.shape.is_compatible_with([1, 1, None, None]):
            raise ValueError(f"`pointwise_filter` must be [1, 1, in, out]. Received: {pointwise.shape}")
        depthwise = _depthwise(input, depthwise_filter, strides, padding, rates, layout, "depthwise")
        return conv2d(depthwise, pointwise, [1, 1, 1, 1], "VALID", data_format=layout, name=scope)
