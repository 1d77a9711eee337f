"""Colours of images by machine code (`colour_code.py`), as functions of tensors on a host.

The code is compiled on a thread when a plan first asks for it; what is called before it is there waits.
Threads share what is worth it.
"""

from __future__ import annotations

import ctypes
import functools

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.images.colour_code import PLACES, WORDS, colour_code

__all__ = ["ColourChange", "colour_change"]

_WORK = 30  # of a pixel, in additions


class ColourChange:
    """A function of contiguous float32 images of three channels, and of a number."""

    def __init__(self, name: str) -> None:
        self._name, self._library = name, _library()

    def __call__(self, images: torch.Tensor, number: float = 0.0) -> torch.Tensor:
        """New images."""
        out = torch.empty_like(images, memory_format=torch.contiguous_format)
        pixels = images.numel() // 3
        has_team = pixels * _WORK >= machine.current().profile.native_team
        words = {"threads": torch.get_num_threads() if has_team else 1, "pixels": pixels}
        given = ctypes.c_float(number)
        places: dict[str, torch.Tensor | int] = {
            "number": ctypes.addressof(given), "images": images.contiguous(), "out": out
        }  # fmt: skip
        self._library.call(self._name, words, places)
        return out


@functools.cache
def _library() -> CodeLibrary:
    return CodeLibrary(lambda: colour_code(host.lanes()), WORDS, PLACES)


def colour_change(name: str, dtype: torch.dtype | None) -> ColourChange | None:
    """The function of one of `PLACES`; None for other types than float32, or without the native tier."""
    if not flags.NATIVE or host.reason() or dtype is not torch.float32:
        return None
    return ColourChange(name)
