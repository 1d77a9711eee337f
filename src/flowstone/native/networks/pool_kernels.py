"""Max pooling of images in machine code, as functions of tensors (`pool_code.py`).

Images are [batch, height, width, channels], contiguous float32 on a host. What a plan first asks for is
compiled on a thread (`prepare`); what is called before it is there waits.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch

from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.networks.pool_code import PLACES, WORDS, pool_code

__all__ = ["MOST_PLACES", "Windows", "pool", "prepare", "spread"]

MOST_PLACES = 256
"""Positions of a window, of which a byte names one."""


class Windows(NamedTuple):
    """Dims of images and results; (height, width) of windows, from one to the next, and of the padding before
    the images; whether windows of nothing but NaN have that as their maximum, not the lowest number."""

    images: tuple[int, ...]
    results: tuple[int, ...]
    sizes: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int]
    keeps_nan: bool = False


@functools.cache
def _library() -> CodeLibrary:
    return CodeLibrary(lambda: pool_code(host.lanes()), WORDS, PLACES)


def prepare(windows: Windows, is_gradient: bool) -> None:
    """Has the code of `pool` or `spread` compiled."""
    _library().prepare(_spreading(windows) if is_gradient else "pool")


def _spreading(windows: Windows) -> str:
    """The function for gradients: windows that do not overlap have a faster one."""
    return "put" if windows.sizes == windows.strides else "spread"


def _words(windows: Windows) -> dict[str, int]:
    images, results, sizes, strides, padding, keeps_nan = windows
    has_team = math.prod(images) >= machine.current().profile.pool_team
    threads = torch.get_num_threads() if has_team else 1
    batch, height, width, channels = images
    return {
        "threads": threads, "batch": batch, "height": height, "width": width, "channels": channels,
        "rows": results[1], "columns": results[2], "window_height": sizes[0], "window_width": sizes[1],
        "down": strides[0], "across": strides[1], "above": padding[0], "beside": padding[1],
        "all_rows": -(-(height + padding[0]) // strides[0]),
        "all_columns": -(-(width + padding[1]) // strides[1]), "keeps_nan": int(keeps_nan),
    }  # fmt: skip


def pool(images: torch.Tensor, windows: Windows) -> tuple[torch.Tensor, torch.Tensor]:
    """The maxima, and where in its window each was, row by row, as uint8."""
    maxima = torch.empty(windows.results)
    places = torch.empty(windows.results, dtype=torch.uint8)
    _library().call("pool", _words(windows), {"images": images, "maxima": maxima, "bytes": places})
    return maxima, places


def spread(places: torch.Tensor, gradient: torch.Tensor, windows: Windows) -> torch.Tensor:
    """The gradient by the images, from what `pool` gave and the gradient by the maxima."""
    result = torch.empty(windows.images)
    tensors = {"bytes": places, "gradient": gradient, "results": result}
    _library().call(_spreading(windows), _words(windows), tensors)
    return result
