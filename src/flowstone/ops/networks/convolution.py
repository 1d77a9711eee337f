"""Convolutions of images and volumes, dense and by channel, and the operations of their gradients.

Kernels see every layout as channels first: a channels-last tensor is permuted to that view (no copy: ATen's
channels-last format), so the result is channels last in memory as well. Filters are [spatial..., in, out],
and [height, width, in, multiplier] for the depthwise ones. The gradient with respect to the input is a
transposed convolution. Padding that is not symmetric is done explicitly. The public functions over these ops
are in `convolution_layers`.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations import work
from flowstone.framework.declarations.images import Images
from flowstone.framework.declarations.kernel import (
    CPU,
    GPU,
    X0,
    X1,
    X2,
    Call,
    Environment,
    Kernel,
    KernelFactory,
)
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, ShapeFunction, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import merge
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.networks import pointwise_convolutions, single_images, tiny_images
from flowstone.ops.networks.convolution_arrangement import Arrangement, arrange, arrange_gradient
from flowstone.ops.networks.convolution_geometry import Geometry
from flowstone.ops.networks.filter_gradients import check_batches, filter_gradient_kernel, shape_argument
from flowstone.ops.networks.pointwise_convolutions import (
    images_of_row,
    row_of_positions,
    spread,
)
from flowstone.ops.networks.small_convolutions import small_convolution
from flowstone.ops.networks.window_products import by_windows
from flowstone.ops.networks.windows import (
    crop_spatial,
    is_channels_last,
    pad_spatial,
    padding_of,
    require_rank,
    spatial,
)

FLOATS = (*dtypes.FLOATS, dtypes.bfloat16)
_TRANSPOSED = {1: torch.conv_transpose1d, 2: torch.conv_transpose2d, 3: torch.conv_transpose3d}
_FORWARD = {2: torch.conv2d, 3: torch.conv3d}

IMAGE = (
    "strides: list(int) ; use_cudnn_on_gpu: bool = true ; padding: string in ['SAME', 'VALID', 'EXPLICIT'] ; "
    "explicit_paddings: list(int) = [] ; data_format: string in ['NHWC', 'NCHW'] = 'NHWC' ; "
    "dilations: list(int) = [1, 1, 1, 1]"
)
_DEPTHWISE = IMAGE.replace("use_cudnn_on_gpu: bool = true ; ", "")
_VOLUME = (
    "strides: list(int) >= 5 ; padding: string in ['SAME', 'VALID'] ; "
    "data_format: string in ['NDHWC', 'NCDHW'] = 'NDHWC' ; dilations: list(int) = [1, 1, 1, 1, 1]"
)
_COMMON = ("strides", "padding", "data_format", "dilations", "explicit_paddings", "use_cudnn_on_gpu")


def _require_channels(channels: int | None, kernel_channels: int | None, groups_allowed: bool) -> None:
    if channels is None or kernel_channels is None or channels == kernel_channels:
        return
    if not groups_allowed or not kernel_channels or channels % kernel_channels:
        raise ValueError(
            f"Depth of input ({channels}) is not a multiple of input depth of filter ({kernel_channels})"
            if groups_allowed
            else f"Dimensions must be equal, but are {channels} and {kernel_channels}"
        )


def _require_groups(channels: int | None, kernel_channels: int | None, outputs: int | None) -> None:
    if channels and kernel_channels and outputs is not None and outputs % (channels // kernel_channels):
        raise ValueError(
            f"Depth of output ({outputs}) is not a multiple of the number of groups "
            f"({channels // kernel_channels})"
        )


def infer_convolution(rank: int, depthwise: bool) -> ShapeFunction:
    def infer(node: Node) -> Shapes:
        image, kernel = require_rank(node.dims(0), rank), require_rank(node.dims(1), rank)
        layout = node.attributes["data_format"]
        for what in ("strides", "dilations"):
            if min(spatial(node.attributes[what], layout)) < 1:
                raise ValueError(f"{what} must be > 0, but got {list(node.attributes[what])}")
        last = is_channels_last(layout)
        channels = image[-1] if last else image[1]
        _require_channels(channels, kernel[-2], not depthwise and rank == 4)
        padding = padding_of(node.attributes, rank)
        found = zip(
            spatial(image, layout),
            kernel[: rank - 2],
            spatial(node.attributes["strides"], layout),
            spatial(node.attributes["dilations"], layout),
        )
        counts = [padding.count(*one, axis) for axis, one in enumerate(found)]
        outputs = kernel[-1]
        if not depthwise and rank == 4:
            _require_groups(channels, *kernel[-2:])
        if depthwise:
            inputs = kernel[2] if channels is None else channels
            outputs = None if inputs is None or kernel[3] is None else inputs * kernel[3]
        return (image[0], *counts, outputs) if last else (image[0], outputs, *counts)

    return infer


def _check_operands(x: torch.Tensor, kernel: torch.Tensor, rank: int, channels: int, depthwise: bool) -> None:
    if x.dim() != rank or kernel.dim() != rank:
        raise errors.InvalidArgumentError(
            None,
            None,
            f"input and filter must be {rank}-dimensional: {list(x.shape)} and {list(kernel.shape)}",
        )
    inputs = kernel.shape[-2]
    if (channels != inputs) if depthwise or rank > 4 else (not inputs or channels % inputs):
        raise errors.InvalidArgumentError(
            None, None, f"input depth must be evenly divisible by filter depth: {channels} vs {inputs}"
        )


def _filter_view(geometry: Geometry, kernel: torch.Tensor, depthwise: bool) -> torch.Tensor:
    """The filter as ATen has it: [out, in of a group, spatial...]."""
    if depthwise:
        height, width, inputs, multiplier = kernel.shape
        return kernel.reshape(height, width, 1, inputs * multiplier).permute(3, 2, 0, 1)
    return kernel.permute(geometry.filter_first)


def _forward_kernel(depthwise: bool) -> KernelFactory:
    def factory(node: Node, env: Environment) -> Kernel:
        geometry = Geometry(node)
        seen = arrange(geometry, node.static_shape(0), node.static_shape(1), depthwise)
        if seen is not None:
            usual = functools.partial(_forward_call, node, env, seen)
            if len(node.inputs) == 2 and tiny_images.suits(seen, env, node.dtype(0)):
                return tiny_images.forward(seen, usual())
            return small_convolution(node, "results", seen, usual) or usual()
        fixed = geometry.fixed(node.static_shape(0), node.static_shape(1)) or _fixed_by_stride(geometry, node)
        convolve = _FORWARD[geometry.rank - 2]
        strides, dilations, rank = geometry.strides, geometry.dilations, geometry.rank
        to_first, to_last, last = geometry.to_first, geometry.to_last, geometry.last
        products = by_windows(geometry, env, node.dtype(0), depthwise)

        def run(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
            channels = x.shape[-1] if last else x.shape[1]
            _check_operands(x, kernel, rank, channels, depthwise)
            counts, before, after = fixed or geometry.solve(
                geometry.sizes_of(x.shape), kernel.shape[: rank - 2]
            )
            if counts is not None and (0 in counts or not kernel.shape[-1]):
                outputs = kernel.shape[-1] * (channels if depthwise else 1)
                shape = (x.shape[0], *counts, outputs) if last else (x.shape[0], outputs, *counts)
                return x.new_zeros(shape)
            counts = counts or geometry.sizes_of(x.shape)
            if products.suit(x.shape[0], counts, kernel.shape, channels):
                y = products.results(x if last else x.permute(to_last), kernel, counts, before, after)
                return y if last else y.permute(to_first)
            if last:
                x = x.permute(to_first)
            if before != after:
                x, before = pad_spatial(x, before, after), (0,) * len(before)
            groups = channels if depthwise else channels // kernel.shape[-2]
            y = convolve(
                x, _filter_view(geometry, kernel, depthwise), None, strides, before, dilations, groups
            )
            return y.permute(to_last) if last else y

        return run

    return factory


def _forward_call(node: Node, env: Environment, seen: Arrangement) -> Call:
    convolve, weights = _FORWARD[seen.geometry.rank - 2], seen.filter_of(X1)
    is_alone = len(node.inputs) == 2  # a bias is added by the convolution's own call
    if is_alone and pointwise_convolutions.suits_product(node.dtype(0), env, seen):
        product = pointwise_convolutions.product(seen.flat_image_of(X0), X1, seen)
        return seen.given_flat_result(product)
    if pointwise_convolutions.suits(node.dtype(0), env, seen):
        found = seen.image[0], *seen.counts
        row = row_of_positions(seen.flat_image_of(X0), seen.strides, (*found, seen.image[-1]))
        call = Call(convolve, row, weights, None, (1, 1), seen.padding, seen.dilations, seen.groups)
        return seen.given_flat_result(images_of_row(call, (*found, seen.kernel[-1])))
    x = seen.image_of(X0)
    if single_images.suits(seen, env, node.dtype(0), seen.lengths, seen.channels):
        return seen.given_result(single_images.forward(seen, x, weights))
    call = Call(convolve, x, weights, None, seen.strides, seen.padding, seen.dilations, seen.groups)
    return seen.given_result(call)


def _fixed_by_stride(geometry: Geometry, node: Node) -> tuple[None, tuple[int, ...], tuple[int, ...]] | None:
    """Paddings that do not depend on unknown lengths: SAME with stride 1."""
    kernel = node.static_shape(1)
    if kernel is None or geometry.padding.rule != "SAME" or set(geometry.strides) != {1}:
        return None
    sizes = kernel[: geometry.rank - 2]
    total = [(size - 1) * dilation for size, dilation in zip(sizes, geometry.dilations)]
    return None, tuple([n // 2 for n in total]), tuple([n - n // 2 for n in total])


def _full_shape(
    rank: int, sizes: tuple[int, ...], dy: torch.Tensor, kernel: torch.Tensor, last: bool, depthwise: bool
) -> tuple[int, ...]:
    """`sizes` of an input of that rank; TensorFlow admits spatial sizes alone."""
    if len(sizes) == rank:
        return sizes
    channels = kernel.shape[-2]
    return (dy.shape[0], *sizes, channels) if last else (dy.shape[0], channels, *sizes)


def _input_gradient_kernel(depthwise: bool) -> KernelFactory:
    def factory(node: Node, env: Environment) -> Kernel:
        geometry = Geometry(node)
        constant = shape_argument(node, 0)
        seen = arrange_gradient(geometry, constant, node.static_shape(1), node.static_shape(2), depthwise)
        if seen is not None:
            if pointwise_convolutions.suits_product(node.dtype(1), env, seen):
                product = pointwise_convolutions.gradient_by_image(X2, X1, seen)
                return seen.given_flat_gradient(product)
            if pointwise_convolutions.suits(node.dtype(1), env, seen):
                return _pointwise_input_gradient(seen)
            usual = functools.partial(_input_gradient_call, seen, env, node.dtype(1))
            if tiny_images.suits(seen, env, node.dtype(1), is_gradient=True):
                return tiny_images.by_input(seen, usual())
            return small_convolution(node, "images", seen, usual) or usual()
        n, last = geometry.rank - 2, geometry.last
        transposed, strides, dilations = _TRANSPOSED[n], geometry.strides, geometry.dilations
        to_first, to_last = geometry.to_first, geometry.to_last
        products = by_windows(geometry, env, node.dtype(1), depthwise)

        def run(sizes: torch.Tensor, kernel: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
            if kernel.dim() != geometry.rank:
                message = f"filter must be {geometry.rank}-dimensional: {list(kernel.shape)}"
                raise errors.InvalidArgumentError(None, None, message)
            shape = constant or tuple(sizes.tolist())
            shape = _full_shape(geometry.rank, shape, dy, kernel, last, depthwise)
            lengths, window = geometry.sizes_of(shape), kernel.shape[:n]
            counts, before, after = geometry.solve(lengths, window)
            if counts != geometry.sizes_of(dy.shape):
                raise errors.InvalidArgumentError(
                    None,
                    None,
                    f"Size of out_backprop doesn't match computed: actual = {geometry.sizes_of(dy.shape)}, "
                    f"computed = {list(counts)}",
                )
            check_batches(shape[0], dy.shape[0])
            if dy.numel() == 0:
                return dy.new_zeros(shape)
            channels = shape[-1] if last else shape[1]
            if products.suit(shape[0], counts, kernel.shape, channels, geometry.channels_of(dy.shape)):
                dx = products.by_input(kernel, dy if last else dy.permute(to_last), lengths, before)
                return dx if last else dx.permute(to_first)
            margin = tuple([min(pair) for pair in zip(before, after)])
            rest = [
                max(length + b + a - (count - 1) * stride - (size - 1) * dilation - 1, 0)
                for length, b, a, count, stride, size, dilation in zip(
                    lengths, before, after, counts, strides, window, dilations
                )
            ]
            if last:
                dy = dy.permute(to_first)
            groups = channels if depthwise else channels // kernel.shape[-2]
            weights = _filter_view(geometry, kernel, depthwise)
            dx = transposed(dy, weights, None, strides, margin, rest, groups, dilations)
            if before != after:
                dx = crop_spatial(dx, [b - m for b, m in zip(before, margin)], lengths)
            return dx.permute(to_last) if last else dx

        return run

    return factory


def _input_gradient_call(seen: Arrangement, env: Environment, dtype: DType) -> Call:
    rest = tuple(
        max(length + 2 * margin - (count - 1) * stride - (size - 1) * dilation - 1, 0)
        for length, margin, count, stride, size, dilation in zip(
            seen.lengths, seen.padding, seen.counts, seen.strides, seen.kernel, seen.dilations
        )
    )
    if single_images.suits(seen, env, dtype, seen.counts, seen.kernel[-1]):
        call = single_images.by_input(seen, seen.result_of(X2), seen.filter_of(X1), rest)
        return seen.given_image_gradient(call)
    call = Call(
        _TRANSPOSED[seen.geometry.rank - 2], seen.result_of(X2), seen.filter_of(X1), None, seen.strides,
        seen.padding, rest, seen.groups, seen.dilations,
    )  # fmt: skip
    return seen.given_image_gradient(call)


def _pointwise_input_gradient(seen: Arrangement) -> Call:
    image, found, ones = seen.image, (seen.image[0], *seen.counts), (1, 1)
    row = row_of_positions(X2, ones, (*found, seen.kernel[-1]))
    call = Call(torch.conv_transpose2d, row, seen.filter_of(X1), None, ones, (0, 0), (0, 0), 1, ones)
    dx = spread(images_of_row(call, (*found, image[-1])), seen.strides, image)
    return seen.given_flat_gradient(dx)


# ---- declarations


def _shape_from(i: int, rank: int) -> ShapeFunction:
    def infer(node: Node) -> Shapes:
        dims = node.constant_dims(i)
        if dims is not None and len(dims) != rank:
            return (None,) * rank
        return (None,) * rank if dims is None else dims

    return infer


def _attributes_of(op: Operation) -> dict[str, Any]:
    return {key: op.attributes[key] for key in _COMMON if key in op.attributes}


def _infer_input_gradient(rank: int, knows_batch: bool) -> ShapeFunction:
    """The given sizes; spatial sizes alone take batch and channels from the gradient and the filter."""

    def infer(node: Node) -> Shapes:
        dims = node.constant_dims(0)
        if dims is None or len(dims) == rank:
            batch = require_rank(node.dims(2), rank)[:1] if knows_batch else (None,)
            return merge(dims, (*batch, *(None,) * (rank - 1)))
        if len(dims) != rank - 2:
            raise ValueError(f"input_sizes must have {rank} or {rank - 2} values, got {len(dims)}")
        kernel, dy = require_rank(node.dims(1), rank), require_rank(node.dims(2), rank)
        if is_channels_last(node.attributes["data_format"]):
            return (dy[0], *dims, kernel[-2])
        return (dy[0], kernel[-2], *dims)

    return infer


def _declare_gradients(
    forward: OpDeclaration, by_input: OpDeclaration, by_filter: OpDeclaration, depthwise: bool
) -> None:
    """Each of the three is linear in both its inputs; their gradients are the other two."""

    @forward.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        x, kernel = op.inputs
        shared = _attributes_of(op)
        if depthwise or forward.name == "Conv3D":
            dx = by_input(shape_of(x), kernel, dy, **shared)
            return dx, by_filter(x, shape_of(kernel), dy, **shared)
        x_shape, kernel_shape = F.ShapeN([x, kernel])
        return by_input(x_shape, kernel, dy, **shared), by_filter(x, kernel_shape, dy, **shared)

    @by_input.gradient
    def _(op: Operation, ddx: Tensor) -> Gradients:
        _, kernel, dy = op.inputs
        shared = _attributes_of(op)
        return None, by_filter(ddx, shape_of(kernel), dy, **shared), forward(ddx, kernel, **shared)

    @by_filter.gradient
    def _(op: Operation, d_kernel: Tensor) -> Gradients:
        x, _, dy = op.inputs
        shared = _attributes_of(op)
        return by_input(shape_of(x), d_kernel, dy, **shared), None, forward(x, d_kernel, **shared)


def _convolution_family(
    names: tuple[str, str, str], rank: int, attributes: str, types: tuple[DType, ...], depthwise: bool = False
) -> tuple[OpDeclaration, OpDeclaration, OpDeclaration]:
    """Declares a convolution and its two gradient ops, each the other's gradients."""
    forward_name, input_name, filter_name = names
    formula = work.depthwise_convolution if depthwise else work.convolution
    kind = "depthwise" if depthwise else "convolution"
    forward = op(
        forward_name,
        "input: T, filter: T -> output: T",
        attributes,
        T=types,
        cost=formula(work.first_output, work.input_at(1)),
        multiplies=kind,
        images=Images(filter=1),
    )
    by_input = op(
        input_name,
        f"input_sizes: {'Tshape' if rank == 5 else 'int32'}, filter: T, out_backprop: T -> output: T",
        attributes + (" ; Tshape: type in [int32, int64] = int32" if rank == 5 else ""),
        T=types,
        host=["input_sizes"],
        images=Images((2,), shape=0, filter=1),
        cost=formula(work.input_at(2), work.input_at(1)),
        multiplies=f"{kind} gradient",
    )
    by_filter = op(
        filter_name,
        "input: T, filter_sizes: int32, out_backprop: T -> output: T",
        attributes,
        T=types,
        host=["filter_sizes"],
        images=Images((0, 2), ()),
        cost=formula(work.input_at(2), work.first_output),
        multiplies=f"{kind} gradient",
    )
    forward.infer(infer_convolution(rank, depthwise))
    by_input.infer(_infer_input_gradient(rank, knows_batch=rank == 4 and not depthwise))
    by_filter.infer(_shape_from(1, rank))
    forward.kernel(CPU, GPU)(_forward_kernel(depthwise))
    by_input.kernel(CPU, GPU)(_input_gradient_kernel(depthwise))
    by_filter.kernel(CPU, GPU)(filter_gradient_kernel(depthwise))

    _declare_gradients(forward, by_input, by_filter, depthwise)
    return forward, by_input, by_filter


conv2d_op, conv2d_backprop_input_op, conv2d_backprop_filter_op = _convolution_family(
    ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"), 4, IMAGE, FLOATS
)
depthwise_op, depthwise_backprop_input_op, depthwise_backprop_filter_op = _convolution_family(
    ("DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
    4,
    _DEPTHWISE,
    FLOATS,
    depthwise=True,
)
conv3d_op, conv3d_backprop_input_op, conv3d_backprop_filter_op = _convolution_family(
    ("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"), 5, _VOLUME, FLOATS
)

__all__: list[str] = []
