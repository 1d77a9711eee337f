"""Convolutions channel by channel in machine code, as functions of tensors (`depthwise_code.py`).

Images are [batch, height, width, channels], filters [height, width, channels], contiguous float32 on a host.
What a plan first asks for is compiled on a thread (`prepare`); what is called before it is there waits.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch

from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.networks.depthwise_code import PLACES, WORDS, depthwise_code

__all__ = ["Channels", "by_filter", "by_images", "convolve", "prepare"]


class Channels(NamedTuple):
    """Dims of images and results; (vertical, horizontal) taps, from one window to the next, from one tap to
    the next, and the padding before the images. Windows or taps are 1 apart, or both."""

    images: tuple[int, ...]
    results: tuple[int, ...]
    taps: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    before: tuple[int, int]


@functools.cache
def _library() -> CodeLibrary:
    return CodeLibrary(lambda: depthwise_code(host.lanes()), WORDS, PLACES)


def prepare(channels: Channels, name: str) -> None:
    """Has this function compiled for such a convolution."""
    products = math.prod(channels.results) * math.prod(channels.taps)
    _library().prepare(name, waits=products >= machine.current().profile.depthwise_much)


def _words(channels: Channels) -> dict[str, int]:
    images, results, taps, strides, dilations, before = channels
    large = math.prod(results) * math.prod(taps) >= machine.current().profile.depthwise_team
    lanes = host.lanes()
    return {
        "threads": torch.get_num_threads() if large else 1, "batch": images[0], "height": images[1],
        "width": images[2], "channels": images[3], "rows": results[1], "columns": results[2],
        "window_height": taps[0], "window_width": taps[1], "down": strides[0], "across": strides[1],
        "down_taps": dilations[0], "across_taps": dilations[1], "above": before[0], "beside": before[1],
        "wide_channels": -(-images[3] // lanes) * lanes,
    }  # fmt: skip


def convolve(images: torch.Tensor, filters: torch.Tensor, channels: Channels) -> torch.Tensor:
    """The results."""
    results = torch.empty(channels.results)
    places = {"images": images, "filter": filters, "results": results}
    _library().call("convolve", _words(channels), places)
    return results


def by_images(filters: torch.Tensor, gradient: torch.Tensor, channels: Channels) -> torch.Tensor:
    """The gradient by the images."""
    results = torch.empty(channels.images)
    places = {"gradient": gradient, "filter": filters, "results": results}
    _library().call("by_images", _words(channels), places)
    return results


def by_filter(images: torch.Tensor, gradient: torch.Tensor, channels: Channels) -> torch.Tensor:
    """The gradient by the filter [height, width, channels]."""
    words = _words(channels)
    dims = (words["threads"], math.prod(channels.taps), words["wide_channels"])
    sums = torch.zeros(dims)
    places = {"images": images, "gradient": gradient, "parts": torch.empty(dims), "sums": sums}
    _library().call("by_filter", words, places)
    total = sums[0] if dims[0] == 1 else sums.sum(0)
    return total[:, : channels.images[3]].reshape(*channels.taps, -1)
