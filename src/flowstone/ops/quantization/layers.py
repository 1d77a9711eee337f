"""Layers of networks over quantised integers: convolution, activations and pooling.

Images are [batch, height, width, channels] with the ends of their range beside them. Pooled and activated
numbers keep their range; convolutions have the range of products, padding stands for zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.machine import machine
from flowstone.framework.machine.network_code import window_pool
from flowstone.framework.names.argument_orders import dilations_before_name, or_in_order
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import SAME, VALID, Padding, pad_spatial, require_rank
from flowstone.ops.quantization.arithmetic import exact_product
from flowstone.ops.quantization.ranges import (
    Levels,
    limits,
    narrowed,
    product_range,
    require_scalars,
    scalar,
    scalars,
    wide,
)

__all__ = ["quantized_avg_pool", "quantized_conv2d", "quantized_max_pool", "quantized_relu_x"]

_PADDING = "padding: string in ['SAME', 'VALID']"
_WINDOW = f"ksize: list(int) ; strides: list(int) ; {_PADDING}"

conv_op = op(
    "QuantizedConv2D",
    "input: Tinput, filter: Tfilter, min_input: float, max_input: float, min_filter: float, "
    "max_filter: float -> output: out_type, min_output: float, max_output: float",
    "out_type: type in [qint8, quint8, qint16, quint16, qint32] = qint32 ; strides: list(int) ; "
    f"{_PADDING} ; dilations: list(int) = [1, 1, 1, 1]",
    Tinput=dtypes.QUANTIZED,
    Tfilter=dtypes.QUANTIZED,
    host=("min_input", "max_input", "min_filter", "max_filter", "min_output", "max_output"),
    cost=work.convolution(work.first_output, work.input_at(1)),
)


def _rule(node: Node) -> Padding:
    return SAME if node.attributes["padding"] == "SAME" else VALID


@conv_op.infer
def _(node: Node) -> Shapes:
    require_scalars(node, 2, 3, 4, 5)
    image, kernel = require_rank(node.dims(0), 4), require_rank(node.dims(1), 4)
    if None not in (image[3], kernel[2]) and image[3] != kernel[2]:
        raise ValueError(f"Dimensions must be equal, but are {image[3]} and {kernel[2]}")
    strides, dilations = node.attributes["strides"], node.attributes["dilations"]
    counts = [_rule(node).count(image[1 + i], kernel[i], strides[1 + i], dilations[1 + i], i) for i in (0, 1)]
    return [(image[0], *counts, kernel[3]), (), ()]


@conv_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    strides, dilations = tuple(node.attributes["strides"]), tuple(node.attributes["dilations"])
    rule = _rule(node)
    if strides[0] != 1 or strides[3] != 1:
        raise invalid(
            "Current implementation does not yet support strides in the batch and depth dimensions."
        )
    if dilations[0] != 1 or dilations[3] != 1:
        raise invalid("dilations of batch and depth must be 1.")

    def run(x: torch.Tensor, kernel: torch.Tensor, *ends: torch.Tensor) -> list[torch.Tensor]:
        if x.dim() != 4 or kernel.dim() != 4 or x.shape[3] != kernel.shape[2]:
            raise invalid(
                f"input and filter must have the same depth: {list(x.shape)} vs {list(kernel.shape)}"
            )
        names = ("min_input", "max_input", "min_filter", "max_filter")
        low, high, least, largest = (scalar(value, name) for value, name in zip(ends, names))
        image, weights = Levels(node.dtype(0), low, high), Levels(node.dtype(1), least, largest)
        total = product_range(image, weights)
        counts, before, after = rule.solve(x.shape[1:3], kernel.shape[:2], strides[1:3], dilations[1:3])
        shape = (x.shape[0], *counts, kernel.shape[3])
        if 0 in shape or not kernel.numel():
            found = torch.zeros(shape, dtype=torch.int32, device=x.device)
            return [found, *scalars(total.low, total.high)]
        planes = pad_spatial((wide(x) - image.zero).permute(0, 3, 1, 2), before, after)
        filters = (wide(kernel) - weights.zero).permute(3, 2, 0, 1)

        def convolve(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return torch.conv2d(a, b, None, strides[1:3], 0, dilations[1:3])

        found = exact_product(convolve, planes, filters, filters[0].numel())
        return [narrowed(found.permute(0, 2, 3, 1), dtypes.qint32), *scalars(total.low, total.high)]

    return run


conv_op.no_gradient()


# ---- activations

_RELU = (
    "min_features: float, max_features: float -> "
    "activations: out_type, min_activations: float, max_activations: float"
)
_RELU_TYPE = "out_type: type in [qint8, quint8, qint16, quint16, qint32] = quint8"
_RELU_HOST = ("min_features", "max_features", "min_activations", "max_activations")

relu_op, relu6_op = (
    op(name, f"features: Tinput, {_RELU}", _RELU_TYPE, Tinput=dtypes.QUANTIZED, host=_RELU_HOST, cost=1.0)
    for name in ("QuantizedRelu", "QuantizedRelu6")
)
relu_x_op = op(
    "QuantizedReluX",
    f"features: Tinput, max_value: float, {_RELU}",
    _RELU_TYPE,
    Tinput=dtypes.QUANTIZED,
    host=("max_value", *_RELU_HOST),
    cost=1.0,
)


def _relu_kernel(node: Node, env: Environment) -> Kernel:
    at_most = 6.0 if node.declaration is relu6_op else None
    result = node.outputs[0].dtype

    def run(x: torch.Tensor, *ends: torch.Tensor) -> list[torch.Tensor]:
        *most, low, high = ends
        levels = Levels(node.dtype(0), scalar(low, "min_features"), scalar(high, "max_features"))
        largest = scalar(most[0], "max_value") if most else at_most
        bounds = [levels.zero, levels.highest if largest is None else levels.integer_of(largest)]
        if node.dtype(0) is result and x.dtype is not torch.uint16:
            found = x.clamp(*[min(max(n, levels.lowest), levels.highest) for n in bounds])
        else:
            found = wide(x).clamp(min=bounds[0])
            found = narrowed(found if largest is None else found.clamp(max=bounds[1]), result)
        return [found, *scalars(levels.low, levels.high)]

    return run


def _infer_same(node: Node) -> Shapes:
    require_scalars(node, *range(1, len(node.inputs)))
    return [node.dims(0), (), ()]


for _each in (relu_op, relu6_op, relu_x_op):
    _each.kernel(CPU, GPU)(_relu_kernel)
    _each.infer(_infer_same)
    _each.no_gradient()


# ---- pooling


def _pool_op(name: str) -> OpDeclaration:
    return op(
        name,
        "input: T, min_input: float, max_input: float -> output: T, min_output: float, max_output: float",
        _WINDOW,
        T=dtypes.QUANTIZED,
        host=("min_input", "max_input", "min_output", "max_output"),
        cost=work.pooling,
    )


max_pool_op, avg_pool_op = _pool_op("QuantizedMaxPool"), _pool_op("QuantizedAvgPool")


def _infer_pool(node: Node) -> Shapes:
    require_scalars(node, 1, 2)
    image, sizes, strides = (
        require_rank(node.dims(0), 4),
        node.attributes["ksize"],
        node.attributes["strides"],
    )
    counts = [_rule(node).count(image[i], sizes[i], strides[i], 1, i - 1) for i in (1, 2)]
    return [(image[0], *counts, image[3]), (), ()]


_WORD = 4  # bytes of a sum, which is to stay in the caches
_EXACT = 2**24  # whole numbers below which float32 has all


def _check_window(sizes: Any, strides: Any) -> None:
    if len(sizes) != 4 or len(strides) != 4:
        raise invalid("Sliding window ksize and stride fields must specify 4 dimensions")
    if sizes[0] != 1 or strides[0] != 1:
        raise errors.UnimplementedError(None, None, "Pooling is not yet supported on the batch dimension.")
    if sizes[3] != 1 or strides[3] != 1:
        raise errors.UnimplementedError(None, None, "Pooling is not yet supported on the depth dimension.")


def _pool_kernel(node: Node, env: Environment) -> Kernel:
    sizes, strides, rule = node.attributes["ksize"], node.attributes["strides"], _rule(node)
    _check_window(sizes, strides)
    lowest, highest = limits(node.dtype(0))
    elements = sizes[1] * sizes[2]
    largest_sum = max(-lowest, highest) * elements
    word = _word(largest_sum)
    is_max = node.declaration is max_pool_op

    def run(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> list[torch.Tensor]:
        if x.dim() != 4:
            raise invalid(f"tensor_in must be 4-dimensional: {list(x.shape)}")
        ends = scalars(scalar(low, "min_input"), scalar(high, "max_input"))
        counts, before, after = rule.solve(x.shape[1:3], sizes[1:3], strides[1:3], (1, 1))
        if 0 in counts or not x.numel():
            return [x.new_zeros(x.shape[0], *counts, x.shape[3]), *ends]
        native = window_pool(x.dtype) if x.device.type == "cpu" and largest_sum < _EXACT else None
        if native is not None and x.is_contiguous():
            windows = (sizes[1:3], strides[1:3], before)
            return [native("largest" if is_max else "mean", x, counts, windows), *ends]
        margins = [0, 0, before[1], after[1], before[0], after[0]]

        def pooled(x: torch.Tensor, padding: int, function: Callable[..., torch.Tensor]) -> torch.Tensor:
            x = torch.constant_pad_nd(x, margins, padding) if any(margins) else x
            for axis in (1, 2):
                x = _along(x, axis, counts[axis - 1], sizes[axis], strides[axis], function)
            return x

        number = None if is_max else pooled(torch.ones_like(x[:1, :, :, :1], dtype=torch.int32), 0, torch.add)

        def of_images(x: torch.Tensor) -> torch.Tensor:
            if number is None:
                return pooled(x if x.dtype is not torch.uint16 else wide(x), lowest, torch.maximum)
            return _mean(pooled(x.to(word), 0, torch.add), number, largest_sum + elements)

        out = x.new_empty(x.shape[0], *counts, x.shape[3])
        some = max(1, machine.current().profile.core_cache // (_WORD * x[0].numel()))
        for images, results in zip(x.split(some), out.split(some)):
            results.copy_(of_images(images))
        return [out, *ends]

    return run


def _along(
    x: torch.Tensor, axis: int, count: int, size: int, stride: int, function: Callable[..., torch.Tensor]
) -> torch.Tensor:
    """What a function of two makes of all windows of an axis."""
    length = stride * (count - 1) + 1
    first, *others = (x.narrow(axis, i, length) for i in range(size))
    steps = (slice(None),) * axis + (slice(None, None, stride),)
    found = first[steps]
    for i, other in enumerate(others):
        found = function(found, other[steps], out=found) if i else function(found, other[steps])
    return found


def _word(largest: int) -> torch.dtype:
    """The narrowest integers, of 16 bits at least, that have one of this size."""
    return next((w for w in (torch.int16, torch.int32) if largest <= torch.iinfo(w).max), torch.int64)


def _mean(total: torch.Tensor, number: torch.Tensor, largest: int) -> torch.Tensor:
    """The truncated quotients of whole numbers; the absolutely `largest` of either add up to no more."""
    if largest < _EXACT:  # the quotient's error leaves it on its side of a whole number
        return total.float().div_(number)
    return torch.div(total, number, rounding_mode="trunc")


for _each in (max_pool_op, avg_pool_op):
    _each.kernel(CPU, GPU)(_pool_kernel)
    _each.infer(_infer_pool)
    _each.no_gradient()


@or_in_order(9, "dilations name", dilations_before_name)
def quantized_conv2d(
    input: Any, filter: Any, min_input: Any, max_input: Any, min_filter: Any, max_filter: Any, strides: Any,
    padding: str, out_type: Any = dtypes.qint32, name: str | None = None,
    dilations: Any = None,
) -> Any:  # fmt: skip
    """(output, its least number, its largest): the convolution of quantised images and filters.

    Args:
        input: quantised images [batch, height, width, in] over [min_input, max_input].
        filter: a quantised filter [height, width, in, out] over [min_filter, max_filter].
        strides, dilations: four integers, 1 of batch and channels.
        padding: "SAME" or "VALID".
        out_type: qint32.
    """
    return conv_op.several(
        input, filter, min_input, max_input, min_filter, max_filter, strides=strides, padding=padding,
        out_type=dtypes.as_dtype(out_type), dilations=list(dilations or (1, 1, 1, 1)), name=name,
    )  # fmt: skip


def quantized_relu_x(
    features: Any, max_value: Any, min_features: Any, max_features: Any, out_type: Any = dtypes.quint8,
    name: str | None = None,
) -> Any:  # fmt: skip
    """(min(max(features, 0), max_value), its range's ends), of quantised integers over a range that stays."""
    return relu_x_op.several(
        features, max_value, min_features, max_features, out_type=dtypes.as_dtype(out_type), name=name
    )


def quantized_max_pool(
    input: Any, min_input: Any, max_input: Any, ksize: Any, strides: Any, padding: str,
    name: str | None = None,
) -> Any:  # fmt: skip
    """(the largest integers of windows, the ends of their range, which stays), as `max_pool`."""
    return max_pool_op.several(
        input, min_input, max_input, ksize=ksize, strides=strides, padding=padding, name=name
    )


def quantized_avg_pool(
    input: Any, min_input: Any, max_input: Any, ksize: Any, strides: Any, padding: str,
    name: str | None = None,
) -> Any:  # fmt: skip
    """(the truncated means of windows, the ends of their range, which stays), as `avg_pool`."""
    return avg_pool_op.several(
        input, min_input, max_input, ksize=ksize, strides=strides, padding=padding, name=name
    )
