"""The windows of a pooling node: which there are, how ATen is told of them, and what shape they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import Environment, Kernel, KernelFactory
from flowstone.framework.machine import machine
from flowstone.framework.machine.network_code import window_pool
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import (
    channels_first,
    channels_last,
    is_channels_last,
    padding_of,
    require_rank,
    spatial,
)

__all__: list[str] = []


class Window:
    """The windows of a pooling node:

    spatial `sizes` and `strides`, `padding`, `rank`, `last` (channels last).
    """

    def __init__(self, attributes: Any, ksize: tuple[int, ...], strides: tuple[int, ...]) -> None:
        if len(strides) != len(ksize):
            raise invalid(f"Sliding window stride field must specify {len(ksize)} dimensions")
        if min(strides) < 1:
            raise invalid(f"Stride must be > 0, but got {min(strides)}")
        layout = attributes.get("data_format", "NHWC")
        self.rank, self.last = len(ksize), is_channels_last(layout)
        self.n = self.rank - 2
        self.sizes, self.strides = spatial(ksize, layout), spatial(strides, layout)
        self.padding = padding_of(attributes, self.rank)
        self.to_first, self.to_last = channels_first(self.rank), channels_last(self.rank)
        channel = self.rank - 1 if self.last else 1
        self.channel_size, self.channel_stride = ksize[channel], strides[channel]
        if ksize[0] != 1 or strides[0] != 1:
            raise errors.UnimplementedError(
                None, None, "Pooling is not yet supported on the batch dimension."
            )
        if self.channel_size != 1 and (set(self.sizes) != {1} or self.channel_size != self.channel_stride):
            raise errors.UnimplementedError(
                None,
                None,
                "MaxPooling supports exactly one of pooling across depth or pooling across width/height; "
                "depthwise windows must not overlap.",
            )

    def solve(self, lengths: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """(counts, before, after) over these spatial lengths."""
        return self.padding.solve(lengths, self.sizes, self.strides, (1,) * self.n)

    def first(self, x: torch.Tensor) -> torch.Tensor:
        """A tensor in the node's layout as a channels-first view. InvalidArgumentError for another rank."""
        if x.dim() != self.rank:
            raise invalid(f"tensor_in must be {self.rank}-dimensional, not {x.dim()}")
        return x.permute(self.to_first) if self.last else x

    def restored(self, y: torch.Tensor) -> torch.Tensor:
        """A channels-first tensor in the node's layout."""
        return y.permute(self.to_last) if self.last else y

    def arrange(
        self, lengths: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...], bool, tuple[tuple[int, ...], tuple[int, ...]] | None]:
        """(counts, padding, ceil_mode, explicit): how ATen is told of these windows.

        `explicit` is None, or (before, after) that must be padded by hand first.
        """
        counts, before, after = self.solve(lengths)
        found = zip(lengths, self.sizes, self.strides, before, after, counts)
        if before == after:
            if all(2 * p <= size for p, size in zip(before, self.sizes)):
                return counts, before, False, None
        elif all(_ceil_fits(*one) for one in found):
            return counts, before, True, None
        return counts, (0,) * self.n, False, (before, after)


def pooled_by_code(
    window: Window, name: str, x: torch.Tensor, from_infinity: bool = False
) -> torch.Tensor | None:
    """The "largest" or the "mean" of windows by machine code; None where ATen is to do it."""
    if not window.last or window.channel_size != 1 or x.dim() != window.rank or x.device.type != "cpu":
        return None
    if x.numel() < machine.current().profile.native_framed or not x.is_contiguous():
        return None
    counts, before, _ = window.solve(tuple(x.shape[1:-1]))
    pool = window_pool(x.dtype) if 0 not in counts else None
    return (
        None if pool is None else pool(name, x, counts, (window.sizes, window.strides, before), from_infinity)
    )


def _ceil_fits(length: int, size: int, stride: int, before: int, after: int, count: int) -> bool:
    """Whether ATen's ceil mode, padded symmetrically by `before`,

    gives `count` windows that all start inside.
    """
    if 2 * before > size or after < before:
        return False
    found = -(-(length + 2 * before - size) // stride) + 1
    if (found - 1) * stride >= length + before:
        found -= 1
    return found == count


def attribute_window(node: Node) -> Window:
    return Window(node.attributes, node.attributes["ksize"], node.attributes["strides"])


def input_window(first: int) -> Callable[..., Any]:
    """The window of a node whose ksize and strides are the inputs `first` and ``first + 1``;

    None if not constant.
    """

    def find(node: Node) -> Window | None:
        ksize, strides = node.constant(first), node.constant(first + 1)
        if ksize is None or strides is None:
            return None
        return _given_window(node, ksize, strides)

    return find


def _given_window(node: Node, ksize: Any, strides: Any) -> Window:
    """The window of an image node that these inputs say."""
    if len(ksize) != 4:
        raise invalid("Sliding window ksize field must specify 4 dimensions")
    return Window(node.attributes, tuple(ksize.tolist()), tuple(strides.tolist()))


def pooling_kernel(
    find: Callable[[Node], Window | None], make: Callable[[Window, Node], Callable[..., Any]]
) -> KernelFactory:
    """A kernel factory: `make(window, node)` gives ``f(*tensors)``; windows may come with the step."""

    def factory(node: Node, env: Environment) -> Kernel:
        window = find(node)
        if window is not None:
            function = make(window, node)
            tensors = sum(
                1 for argument in node.declaration.inputs if argument.name not in ("ksize", "strides")
            )
            if tensors == len(node.inputs):
                return function
            return lambda *inputs: function(*inputs[:tensors])

        def run(*inputs: torch.Tensor) -> Any:
            *tensors, ksize, strides = inputs
            return make(_given_window(node, ksize, strides), node)(*tensors)

        return run

    return factory


def infer_pooled(find: Callable[[Node], Window | None], rank: int) -> Callable[[Node], Dims]:
    def infer(node: Node) -> Dims:
        dims = require_rank(node.dims(0), rank)
        try:
            window = find(node)
        except errors.UnimplementedError:  # a step's to raise
            return (None,) * rank
        except errors.InvalidArgumentError as error:
            raise ValueError(error.message) from None
        if window is None:
            return None
        layout = node.attributes.get("data_format", "NHWC")
        found = zip(spatial(dims, layout), window.sizes, window.strides, (1,) * window.n)
        counts = [window.padding.count(*one, axis) for axis, one in enumerate(found)]
        channels = dims[-1] if window.last else dims[1]
        if channels is not None and window.channel_size != 1:
            channels //= window.channel_size
        return (dims[0], *counts, channels) if window.last else (dims[0], channels, *counts)

    return infer


def spatial_lengths(window: Window, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(shape[1:-1]) if window.last else tuple(shape[2:])
