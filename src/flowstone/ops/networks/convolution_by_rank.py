"""Convolutions in the forms of later TensorFlows: transposed by rank, general, and gradients that take the
other tensor where others take its shape.

Public names here belong to ``tf.nn``; `conv` and the gradients to ``tf``.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.networks.convolution import conv2d_op, conv3d_op
from flowstone.ops.networks.convolution_layers import (
    conv2d_backprop_filter,
    conv2d_backprop_input,
    conv2d_transpose,
    conv3d_transpose,
)
from flowstone.ops.networks.windows import is_channels_last

__all__ = [
    "conv",
    "conv1d_transpose",
    "conv2d_backprop_filter_v2",
    "conv2d_backprop_input_v2",
    "conv_transpose",
]


def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose (gradient with respect to the input) of `conv1d`: sequences [batch, length, in] (NWC) or

    [batch, in, length] (NCW), filters [size, out, in]. `output_shape`: three sizes, or the length alone;
    `strides`, `dilations`: one number, one in a list, or one a dimension.
    """
    if data_format not in ("NWC", "NCW"):
        raise ValueError(f"`data_format` must be 'NWC' or 'NCW'. Received: data_format={data_format}")
    first = data_format == "NCW"
    axis, layout = (2, "NCHW") if first else (1, "NHWC")
    steps, rates = _of_width(strides, first), _of_width(dilations, first)
    with get_default_graph().name_scope(name or "conv1d_transpose"):
        shape = convert_to_tensor(output_shape, name="output_shape")
        sizes = F.ConcatV2([shape[:axis], [1], shape[axis:]], 0)
        image = F.ExpandDims(convert_to_tensor(input, name="value"), axis)
        kernel = F.ExpandDims(convert_to_tensor(filters, name="filter"), 0)
        result = conv2d_transpose(image, kernel, sizes, steps, padding, layout, dilations=rates)
        return F.Squeeze(result, squeeze_dims=[axis])


def _of_width(values: Any, channels_first: bool) -> list[int]:
    """Strides or dilations of sequences as those of images of one row."""
    sizes = [1] if values is None else [values] if isinstance(values, int) else [int(v) for v in values]
    if len(sizes) == 3:
        sizes = [sizes[2 if channels_first else 1]]
    if len(sizes) != 1:
        raise ValueError(f"strides and dilations must have 1 or 3 values. Received: {sizes}")
    return [1, 1, 1, *sizes] if channels_first else [1, 1, *sizes, 1]


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of a convolution over one to three spatial dimensions, which the size of `output_shape`
    tells.

    ValueError if that has other than 3 to 5 sizes.
    """
    with get_default_graph().name_scope(name or "conv_transpose") as scope:
        sizes = convert_to_tensor(output_shape, name="output_shape")
        rank = None if sizes.dims is None else sizes.dims[0]
        if rank not in (3, 4, 5):
            raise ValueError(f"`output_shape` must have 3, 4 or 5 sizes. Received: {output_shape}")
        if rank == 3:
            layout = data_format or "NWC"
            return conv1d_transpose(input, filters, sizes, strides, padding, layout, dilations, scope)
        if rank == 4:
            layout = data_format or "NHWC"
            return conv2d_transpose(
                input, filters, sizes, strides, padding, layout, scope, dilations=dilations
            )
        layout = data_format or "NDHWC"
        return conv3d_transpose(input, filters, sizes, strides, padding, layout, scope, dilations=dilations)


def conv(
    input: Any,
    filter: Any,
    strides: Any,
    padding: str,
    explicit_paddings: Any = (),
    data_format: str = "CHANNELS_LAST",
    dilations: Any = (),
    batch_dims: int = 1,
    groups: int = 1,
    name: str | None = None,
) -> Tensor:
    """The convolution of images or volumes, by the rank of `filter` (4 or 5), behind `batch_dims` dimensions.

    `strides`, `dilations` (none: all 1): one a dimension, with one for the batch. `data_format`:
    "CHANNELS_LAST" or "CHANNELS_FIRST". The filter has the channels of one of the `groups`. ValueError for
    other ranks, layouts, or channels that the groups do not divide.
    """
    x, kernel = convert_to_tensor(input, name="input"), convert_to_tensor(filter, name="filter")
    rank = kernel.shape.ndims
    layouts = {"CHANNELS_LAST": ("NHWC", "NDHWC"), "CHANNELS_FIRST": ("NCHW", "NCDHW")}
    if rank not in (4, 5) or data_format not in layouts or batch_dims < 1:
        raise ValueError(
            "conv takes filters of rank 4 or 5, CHANNELS_LAST or CHANNELS_FIRST, and batch_dims from 1. "
            f"Received: rank {rank}, {data_format}, {batch_dims}"
        )
    layout = layouts[data_format][rank - 4]
    _check_groups(x, kernel, layout, groups)
    attributes: dict[str, Any] = {"strides": list(strides), "dilations": list(dilations) or [1] * rank}
    if rank == 4:
        attributes["explicit_paddings"] = list(explicit_paddings)
    declaration = conv2d_op if rank == 4 else conv3d_op
    if batch_dims == 1:
        return declaration(x, kernel, padding=padding, data_format=layout, name=name or "Conv", **attributes)
    with get_default_graph().name_scope(name or "Conv"):
        sizes = F.Shape(x)
        flat = F.Reshape(x, F.ConcatV2([[-1], sizes[batch_dims:]], 0))
        result = declaration(flat, kernel, padding=padding, data_format=layout, **attributes)
        return F.Reshape(result, F.ConcatV2([sizes[:batch_dims], F.Shape(result)[1:]], 0))


def _check_groups(x: Tensor, kernel: Tensor, layout: str, groups: int) -> None:
    if x.dims is None or kernel.dims is None:
        return
    channels, own = x.dims[-1 if is_channels_last(layout) else 1 - len(layout)], kernel.dims[-2]
    if channels is not None and own is not None and own * groups != channels:
        raise ValueError(f"{channels} channels are not {groups} groups of the {own} that the filter has")


def conv2d_backprop_filter_v2(
    input: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: str,
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: Any = (),
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv2d` by its `filter`, of which only the shape matters."""
    return conv2d_backprop_filter(
        input, F.Shape(filter), out_backprop, list(strides), padding_of(padding, explicit_paddings),
        use_cudnn_on_gpu, data_format, name, list(dilations),
    )  # fmt: skip


def conv2d_backprop_input_v2(
    input: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: str,
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: Any = (),
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv2d` by its `input`, of which only the shape matters."""
    return conv2d_backprop_input(
        F.Shape(input), filter, out_backprop, list(strides), padding_of(padding, explicit_paddings),
        use_cudnn_on_gpu, data_format, name, list(dilations),
    )  # fmt: skip


def padding_of(padding: str, explicit: Any) -> Any:
    """The rule, or where that is EXPLICIT the pairs that the list has one after the other."""
    if padding != "EXPLICIT":
        return padding
    amounts = list(explicit)
    return [amounts[i : i + 2] for i in range(0, len(amounts), 2)]
