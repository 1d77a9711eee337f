"""Grey-scale dilation in machine code, as functions of tensors (`dilation_code.py`), on a host.

The code for a type is compiled on a thread when it is first asked for; until then, and where there is no
native tier, `dilation` is None. Threads share the rows of results, of the gradient for images the images.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch

from flowstone.framework.machine import machine
from flowstone.framework.machine.network_code import Windows
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, when_asked
from flowstone.native.codegen.emitter import SIZES
from flowstone.native.networks.dilation_code import APART, PLACES, SUMS, WORDS, dilation_code

__all__ = ["Dilation", "dilation"]

_NAMES = {torch.float32: "float32", torch.float64: "float64"}


class Dilation:
    """The functions for a type of numbers."""

    def __init__(self, dtype: str) -> None:
        lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
        self._library = CodeLibrary(lambda: dilation_code(dtype, lanes), WORDS, PLACES)

    def __call__(
        self,
        name: str,
        windows: Windows,
        images: torch.Tensor,
        kernel: torch.Tensor,
        flow: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """What the function `name` makes of images and a filter [*taps, depth], and of the results' flow."""
        batch, height, width, depth = windows.images
        (rows, columns), positions = windows.counts[:2], windows.taps[0] * windows.taps[1]
        has_team = images.numel() >= machine.current().profile.pool_team
        threads = torch.get_num_threads() if has_team else 1
        words = dict(
            zip(
                WORDS,
                (threads, batch, height, width, depth, *windows.taps, rows, columns)
                + (*windows.strides, *windows.dilations, *windows.before),
            )
        )
        ranges, places, starts, channels = _tables(windows)
        lines = kernel.view(positions, 1, depth).expand(positions, columns, depth).contiguous()
        given = {"images": images, "lines": lines, "ranges": ranges, "places": places}
        if flow is None:
            given["out"] = images.new_empty((batch, rows, columns, depth))
        else:
            to_images = name == "to_images"
            numbers, starts = (places, starts) if to_images else (channels, channels)
            line = (threads, -(-columns * depth // APART) * APART)
            given |= {"flow": flow, "numbers": numbers, "starts": starts, "best": images.new_empty(line)}
            given["winners"] = torch.empty(line, dtype=torch.int32)
            sums = (threads, SUMS * positions * depth + APART)
            given["out"] = torch.zeros_like(images) if to_images else torch.zeros(sums, dtype=torch.float64)
        self._library.call(name, words, given)
        if name == "to_filter":
            parts = given["out"][:, :-APART].reshape(threads * SUMS, -1)
            return parts.sum(0).to(images.dtype).view(kernel.shape)
        return given["out"]


@functools.lru_cache(64)
def _tables(windows: Windows) -> Sequence[torch.Tensor]:
    """The numbers `ranges` and `places` of the code; the `starts` in images, and those in a filter."""
    _, _, width, depth = windows.images
    columns, stride, left = windows.counts[1], windows.strides[1], windows.before[1]
    ranges = []
    for tap in range(windows.taps[1]):
        shift = tap * windows.dilations[1] - left
        first = min(columns, -(min(shift, 0) // stride))
        end = max(first, min(columns, (width - 1 - shift) // stride + 1))
        ranges += [first * depth, end * depth]
    channels = torch.arange(depth).repeat(columns)
    pixels = torch.arange(columns).mul_(stride).repeat_interleave(depth)
    starts = (pixels - left).clamp_(0) * depth + channels
    tables = (pixels * depth + channels, starts, channels)
    return torch.tensor(ranges), *(each.int() for each in tables)


@functools.cache
def _asked(dtype: str) -> Callable[[], Dilation | None]:
    return when_asked(lambda: Dilation(dtype))


def dilation(dtype: torch.dtype | None) -> Dilation | None:
    """What dilates images of a type; None if it is not there, or not yet."""
    return _asked(_NAMES[dtype])() if dtype in _NAMES else None
