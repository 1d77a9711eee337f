"""The public functions over convolutions: images, volumes and sequences, transposed, atrous, depthwise and
separable.

Atrous (dilated) forms move space to batch and back, as TensorFlow's (`spread_windows`); what has an argument
``dilations`` of its own is one op. Public names here belong to ``tf.nn``.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.names.argument_orders import dilations_before_name, or_in_order
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.arrays.space_moves import batch_to_space, space_to_batch
from flowstone.ops.networks.convolution import (
    conv2d_backprop_filter_op,
    conv2d_backprop_input_op,
    conv2d_op,
    conv3d_backprop_filter_op,
    conv3d_backprop_input_op,
    conv3d_op,
)
from flowstone.ops.networks.spread_windows import SpreadWindows
from flowstone.ops.networks.windows import is_channels_last

__all__ = [
    "atrous_conv2d",
    "atrous_conv2d_transpose",
    "conv1d",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "conv3d",
    "conv3d_backprop_filter_v2",
    "conv3d_transpose",
    "convolution",
]


def expanded(values: Any, n: int, data_format: str) -> list[int]:
    """Strides or dilations, one number, one a spatial dimension or all, as one a dimension."""
    if values is None:
        values = 1
    sizes = [values] if isinstance(values, int) else [_whole(v) for v in values]
    if len(sizes) == n + 2:
        return sizes
    if len(sizes) == 1:
        sizes = sizes * n
    if len(sizes) != n:
        raise ValueError(f"strides or dilations must have 1, {n} or {n + 2} values. Received: {sizes}")
    return [1, *sizes, 1] if is_channels_last(data_format) else [1, 1, *sizes]


def _whole(value: Any) -> int:
    if isinstance(value, (str, bytes, Tensor)):
        raise TypeError(f"Expected int for strides, dilations or ksize, not {value!r}.")
    return int(value)


def padding_attributes(padding: Any) -> dict[str, Any]:
    """A padding argument as attributes: a rule, or a (before, after) pair a dimension."""
    if isinstance(padding, (list, tuple)):
        return {"padding": "EXPLICIT", "explicit_paddings": [int(n) for pair in padding for n in pair]}
    return {"padding": padding}


@or_in_order(6, "dilations name filters", dilations_before_name)
def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    name: str | None = None,
    dilations: Any = None,
    filters: Any = None,
) -> Tensor:
    """The convolution of images [batch, height, width, in] and a filter [rows, columns, in, out].

    `strides`, `dilations`: one number, two, or four; `padding`: "SAME", "VALID" or a pair of amounts a
    dimension. ValueError if shapes contradict; InvalidArgumentError where only the step can tell.
    """
    data_format = data_format or "NHWC"
    return conv2d_op(
        input,
        filter if filters is None else filters,
        strides=expanded(strides, 2, data_format),
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=expanded(dilations, 2, data_format),
        name=name,
        **padding_attributes(padding),
    )


@or_in_order(7, "dilations name filters", dilations_before_name)
def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    name: str | None = None,
    dilations: Any = None,
    filters: Any = None,
) -> Tensor:
    """The gradient of `conv2d` by its input, whose shape is `input_sizes` (int32)."""
    return conv2d_backprop_input_op(
        input_sizes,
        filter if filters is None else filters,
        out_backprop,
        strides=expanded(strides, 2, data_format),
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=expanded(dilations, 2, data_format),
        name=name,
        **padding_attributes(padding),
    )


@or_in_order(7, "dilations name", dilations_before_name)
def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    name: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """The gradient of `conv2d` by its filter, whose shape is `filter_sizes` (int32)."""
    return conv2d_backprop_filter_op(
        input,
        filter_sizes,
        out_backprop,
        strides=expanded(strides, 2, data_format),
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=expanded(dilations, 2, data_format),
        name=name,
        **padding_attributes(padding),
    )


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose (gradient with respect to the input) of `conv2d`:

    images [batch, height, width, in], filter [.., out, in].
    """
    value = input if value is None else value
    kernel = filter if filters is None else filters
    with get_default_graph().name_scope(name or "conv2d_transpose") as scope:
        strides = expanded(strides, 2, data_format)
        return conv2d_backprop_input(
            output_shape, kernel, value, strides, padding, True, data_format, scope, dilations
        )


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The convolution of sequences [batch, length, in] (NWC;

    "NCW" has channels first) and a filter [size, in, out]. ValueError for another format, and for strides
    and dilations of another length than 1 and 3.
    """
    if data_format not in (None, *_SEQUENCES):
        raise ValueError('data_format must be "NWC" or "NCW".')
    value = input if value is None else value
    stride = stride[-1] if isinstance(stride, (list, tuple)) and len(stride) == 1 else stride
    first = data_format in ("NCW", "NCHW")
    with get_default_graph().name_scope(name or "conv1d") as scope:
        layout, axis = ("NCHW", 2) if first else ("NHWC", 1)
        rates = [1, *_one(dilations)]
        image = F.ExpandDims(value, axis, name="ExpandDims")
        kernel = F.ExpandDims(filters, 0, name="ExpandDims")
        result = conv2d(image, kernel, [1, *_one(stride)], padding, True, layout, scope, rates)
        return F.Squeeze(result, squeeze_dims=[axis])


# What sequences' formats are called, with those of images that do for them.
_SEQUENCES = ("NWC", "NCW", "NHWC", "NCHW")


def _one(values: Any) -> list[int]:
    if values is None:
        return [1]
    if isinstance(values, Integral):
        return [int(values)]
    if len(values) not in (1, 3):
        raise ValueError(f"stride should be of length 1, 1 or 3 but was {len(values)}")
    return [int(v) for v in values if v != 1][:1] or [1]


@or_in_order(5, "dilations name filters", dilations_before_name)
def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NDHWC",
    name: str | None = None,
    dilations: Any = None,
    filters: Any = None,
) -> Tensor:
    """The convolution of volumes [batch, depth, height, width, in] and a filter [.., .., .., in, out]."""
    return conv3d_op(
        input,
        filter if filters is None else filters,
        strides=expanded(strides, 3, data_format),
        padding=padding,
        data_format=data_format,
        dilations=expanded(dilations, 3, data_format),
        name=name,
    )


def conv3d_transpose(
    value: Any,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NDHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose (gradient with respect to the input) of `conv3d`; the filter is [.., .., .., out, in]."""
    with get_default_graph().name_scope(name or "conv3d_transpose") as scope:
        return conv3d_backprop_input_op(
            convert_to_tensor(output_shape, name="input_sizes"),
            filter if filters is None else filters,
            input if value is None else value,
            strides=expanded(strides, 3, data_format),
            padding=padding,
            data_format=data_format,
            dilations=expanded(dilations, 3, data_format),
            name=scope,
        )


@or_in_order(6, "dilations name", dilations_before_name)
def conv3d_backprop_filter_v2(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    name: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """The gradient of `conv3d` by its filter, whose shape is `filter_sizes` (int32)."""
    return conv3d_backprop_filter_op(
        input,
        filter_sizes,
        out_backprop,
        strides=list(strides),
        padding=padding,
        data_format=data_format,
        dilations=expanded(dilations, 3, data_format),
        name=name,
    )


_LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def convolution(
    input: Any,
    filter: Any,
    padding: Any,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The convolution over one to three spatial dimensions, by the rank of `input` (that of the filter, if
    unknown).

    ValueError for other ranks, or strides and dilations both above 1.
    """
    name = name or "convolution"
    with get_default_graph().name_scope(name) as scope:
        input = convert_to_tensor(input, name="input")
        kernel = convert_to_tensor(filter if filters is None else filters, name="filter")
        rank = input.shape.ndims or kernel.shape.ndims
        if rank not in (3, 4, 5):
            raise ValueError(f"`input` must be of rank 3, 4 or 5. Received: input of rank {rank}")
        n = rank - 2
        layout = _LAYOUTS[n][0 if data_format is None or is_channels_last(data_format) else 1]
        rates = spatial_rates(dilation_rate if dilations is None else dilations, n, layout)
        require_one_above_1(strides, rates)
        if max(rates) == 1 or (padding == "SAME" and not kernel.shape.is_fully_defined()):
            return _convolved(input, kernel, n, strides, padding, layout, rates, scope)
        windows = SpreadWindows(rates, padding, kernel.shape.as_list(), data_format=layout)
        return windows(input, lambda x, n, rule: _convolved(x, kernel, n, strides, rule, layout, None, scope))


def spatial_rates(rates: Any, n: int, layout: str) -> list[int]:
    """Dilations, one number, one a spatial dimension or all, as one a spatial dimension."""
    whole = expanded(rates, n, layout)
    return whole[1:-1] if is_channels_last(layout) else whole[2:]


def _convolved(
    x: Tensor, kernel: Tensor, n: int, strides: Any, padding: Any, layout: str, rates: Any, name: str
) -> Tensor:
    if n == 1:
        return conv1d(x, kernel, _one(strides)[0], padding, None, layout, name, dilations=rates)
    function = conv2d if n == 2 else conv3d
    return function(x, kernel, strides, padding, data_format=layout, dilations=rates, name=name)


def require_one_above_1(strides: Any, rates: Any) -> None:
    above = [any(_whole(v) > 1 for v in ([x] if isinstance(x, int) else x or [1])) for x in (strides, rates)]
    if all(above):
        raise ValueError(
            f"`strides > 1` not supported in conjunction with `dilation_rate > 1`. Received: "
            f"strides={strides} and dilation_rate={rates}"
        )


def atrous_conv2d(value: Any, filters: Any, rate: int, padding: Any, name: str | None = None) -> Tensor:
    """`conv2d` with stride 1 whose filter has its elements `rate` apart;

    NHWC images. ValueError for a rate below 1.
    """
    if rate < 1:
        raise ValueError(f"`rate` cannot be less than one. Received: rate={rate}")
    return convolution(value, filters, padding, dilation_rate=[rate, rate], name=name)


def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: Any, name: str | None = None
) -> Tensor:
    """The transpose of `atrous_conv2d`; the filter is [rows, columns, out, in]."""
    if rate < 1:
        raise ValueError(f"`rate` cannot be less than one. Received: rate={rate}")
    with get_default_graph().name_scope(name or "atrous_conv2d_transpose"):
        value = convert_to_tensor(value, name="value")
        filters = convert_to_tensor(filters, name="filters")
        sizes = filters.static_shape
        is_known = sizes is not None and len(sizes) == 4 and None not in sizes[:2]
        if rate == 1 or not is_known or padding not in ("SAME", "VALID"):
            return conv2d_transpose(value, filters, output_shape, 1, padding, dilations=rate)
        convert_to_tensor(output_shape, name="output_shape")
        totals = [(size - 1) * rate if padding == "SAME" else 0 for size in sizes[:2]]
        margins = [(total // 2, total - total // 2) for total in totals]
        lengths = [output_shape[i] + before + after for i, (before, after) in zip((1, 2), margins)]
        rests = [(rate - length % rate) % rate for length in lengths]
        moved = space_to_batch(value, [[0, rest] for rest in rests], rate)
        moved_sizes = [
            rate * rate * output_shape[0],
            *[(length + rest) // rate for length, rest in zip(lengths, rests)],
            output_shape[3],
        ]
        made = conv2d_backprop_input(moved_sizes, filters, moved, [1, 1, 1, 1], "VALID")
        crops = [[before, after + rest] for (before, after), rest in zip(margins, rests)]
        return batch_to_space(made, crops, rate)
