"""Convolutions channel by channel where ATen's are slow: by `native/networks/depthwise_kernels.py`.

Plans only, made by `depthwise.py`. oneDNN's gradient by a filter that is wider than three taps, or whose taps
are apart, sums elements one by one; padding that is not symmetric copies the images; small ones cost more to
prepare than to compute. The machine code leaves out what pads the images, where ATen may multiply it: if a
filter, or its gradient, is not finite, ATen computes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU
from flowstone.framework.declarations.operation import op
from flowstone.framework.types import dtypes
from flowstone.native.networks import depthwise_kernels
from flowstone.native.networks.depthwise_kernels import Channels

__all__: list[str] = []

_TO_FIRST, _TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_GEOMETRY = " ; ".join(f"{name}: list(int)" for name in Channels._fields)


def _channels(node: Any, function: str) -> Channels:
    """What is computed, by this function of machine code."""
    channels = Channels(*(tuple(node.attributes[name]) for name in Channels._fields))
    depthwise_kernels.prepare(channels, function)
    return channels


def _cost(node: Any) -> float:
    return float(2 * math.prod(node.attributes["results"]) * math.prod(node.attributes["taps"]))


def _finite(x: torch.Tensor) -> bool:
    return math.isfinite(x.sum().item())


# ---- as ATen computes them


def _padded(channels: Channels, images: torch.Tensor) -> tuple[torch.Tensor, tuple[int, int]]:
    """The images, channels first, with the zeros that one end has more than the other, and what both have."""
    both, sides = [], []
    for axis, (taps, stride, dilation, before) in enumerate(zip(*channels[2:]), 1):
        reach = (channels.results[axis] - 1) * stride + (taps - 1) * dilation + 1
        after = max(reach - before - channels.images[axis], 0)
        both.append(min(before, after))
        sides.append((before - both[-1], after - both[-1]))
    padded = torch.nn.functional.pad(images.permute(_TO_FIRST), (*sides[1], *sides[0]))
    return padded, (both[0], both[1])


def _plain(channels: Channels, images: torch.Tensor, filters: torch.Tensor) -> torch.Tensor:
    padded, padding = _padded(channels, images)
    weights = filters.permute(2, 3, 0, 1)
    strides, dilations, groups = channels.strides, channels.dilations, channels.images[3]
    return torch.conv2d(padded, weights, None, strides, padding, dilations, groups).permute(_TO_LAST)


def _plain_by_filter(channels: Channels, images: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    padded, padding = _padded(channels, images)
    weights = images.new_empty((channels.images[3], 1, *channels.taps))
    found: torch.Tensor = torch.ops.aten.convolution_backward.default(
        dy.permute(_TO_FIRST), padded, weights, None, channels.strides, padding,
        channels.dilations, False, (0, 0), channels.images[3], (False, True, False),
    )[1]  # fmt: skip
    return found.permute(2, 3, 0, 1)


# ---- the operations


_forward = op(
    "_DepthwiseConv2D",
    "input: T, filter: T -> output: T",
    _GEOMETRY,
    T=[dtypes.float32],
    multiplies="depthwise",
)
_forward.infer(lambda node: tuple(node.attributes["results"]))


@_forward.kernel(CPU)
def _(node: Any, env: Any) -> Callable[..., torch.Tensor]:
    channels = _channels(node, "convolve")

    def run(images: torch.Tensor, filters: torch.Tensor) -> torch.Tensor:
        if not _finite(filters):
            return _plain(channels, images, filters)
        return depthwise_kernels.convolve(images.contiguous(), filters.contiguous(), channels)

    return run


_by_input = op(
    "_DepthwiseConv2DBackpropInput",
    "filter: T, out_backprop: T -> output: T",
    _GEOMETRY,
    T=[dtypes.float32],
    multiplies="depthwise gradient",
)
_by_input.infer(lambda node: tuple(node.attributes["images"]))


@_by_input.kernel(CPU)
def _(node: Any, env: Any) -> Callable[..., torch.Tensor]:
    channels = _channels(node, "by_images")

    def run(filters: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        return depthwise_kernels.by_images(filters.contiguous(), dy.contiguous(), channels)

    return run


_by_filter = op(
    "_DepthwiseConv2DBackpropFilter",
    "input: T, out_backprop: T -> output: T",
    _GEOMETRY,
    T=[dtypes.float32],
    multiplies="depthwise gradient",
)
_by_filter.infer(lambda node: (*node.attributes["taps"], node.attributes["images"][3], 1))


@_by_filter.kernel(CPU)
def _(node: Any, env: Any) -> Callable[..., torch.Tensor]:
    channels = _channels(node, "by_filter")

    def run(images: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        found = depthwise_kernels.by_filter(images.contiguous(), dy.contiguous(), channels)
        return found.unsqueeze(3) if _finite(found) else _plain_by_filter(channels, images, dy)

    return run


for _declaration in (_forward, _by_input, _by_filter):
    _declaration.cost(_cost)
    _declaration.not_differentiable()


# ---- when it pays

SMALL = 1_000_000
"""Products up to which the machine code's call is the cheaper one."""
_CHANNELS = 8  # the fewest that fill vectors well
_TAPS = 3  # in a row of a filter, up to which oneDNN's gradient by it is fast


def pays(channels: Channels, what: str) -> bool:
    """Whether the convolution ("results"), or its gradient with respect to the "images" or by the "filter",
    is expected to be faster in machine code. Measured in docs/design/033.
    """
    if channels.images[3] < _CHANNELS:
        return False
    spaced = max(channels.dilations) > 1
    slow = spaced or channels.taps[1] > _TAPS if what == "filter" else spaced and what == "images"
    return slow or _is_uneven(channels) or math.prod(channels.results) * math.prod(channels.taps) <= SMALL


def _is_uneven(channels: Channels) -> bool:
    """Whether ATen needs copies of the images for more padding behind them than before."""
    for axis, (taps, stride, dilation, before) in enumerate(zip(*channels[2:]), 1):
        reach = (channels.results[axis] - 1) * stride + (taps - 1) * dilation + 1
        if reach - before - channels.images[axis] > before:
            return True
    return False
