"""Crops of images and their gradients by machine code (`sampling_code.py`), as functions of tensors.

All is on a host and contiguous, or is made so; images of types that the code does not read become float32
first, as each pixel would. The code for a type and a method is compiled on a thread when a plan first asks
(`sampler`); what is called before it is there waits. Threads share what is worth it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.image_code import Sampler
from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.images.sampling_code import PLACES, WORDS, crop_code

__all__ = ["CropSampler", "sampler"]

_READ = frozenset(
    {torch.float32, torch.float64, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
)
_WORK = 8  # of an element of a crop, in additions
Note = ctypes.c_int64 * 1
Places = Mapping[str, torch.Tensor | int]


def sampler(dtype: torch.dtype | None, nearest: bool) -> Sampler | None:
    """What crops images of a type; None if there is no native tier."""
    if not flags.NATIVE or host.reason() or dtype is None:
        return None
    is_read = dtype in _READ or (dtype is torch.float16 and host.has_halves())
    return CropSampler(dtype if is_read else torch.float32, nearest)


@functools.cache
def _library(dtype: torch.dtype, nearest: bool) -> CodeLibrary:
    name, lanes = dtypes.from_torch(dtype).name, host.lanes()
    return CodeLibrary(lambda: crop_code(name, nearest, lanes), WORDS, PLACES)


class CropSampler:
    """The functions for images of one type, which are read as they are, and one method."""

    def __init__(self, dtype: torch.dtype, nearest: bool) -> None:
        self._dtype, self._library = dtype, _library(dtype, nearest)

    def crops(
        self, x: torch.Tensor, boxes: torch.Tensor, images: torch.Tensor, size: tuple[int, int], beyond: float
    ) -> torch.Tensor | None:
        """[boxes, *size, channels] float32; None if a box is not finite, or has no image."""
        out = torch.empty((boxes.shape[0], *size, x.shape[3]))
        fill = ctypes.c_float(beyond)
        places: Places = {"x": self._read(x), "out": out, "beyond": ctypes.addressof(fill)}
        return out if self._call("crops", boxes, images, out, x.shape, places, 1) else None

    def spread(
        self, dy: torch.Tensor, boxes: torch.Tensor, images: torch.Tensor, shape: tuple[int, ...]
    ) -> torch.Tensor | None:
        """The gradient for float32 images of this shape; None as for `crops`."""
        dx = torch.zeros(shape)
        is_called = self._call("spread", boxes, images, dy, shape, {"dy": dy.contiguous(), "dx": dx}, 4)
        return dx if is_called else None

    def box_flows(
        self, dy: torch.Tensor, x: torch.Tensor, boxes: torch.Tensor, images: torch.Tensor
    ) -> torch.Tensor | None:
        """The gradient for the boxes; None as for `crops`."""
        flows = torch.zeros((_threads(dy.numel(), 2), len(boxes), 4), dtype=torch.float64)
        places = {"x": self._read(x), "dy": dy.contiguous(), "flows": flows}
        if not self._call("box_flows", boxes, images, dy, x.shape, places, 2):
            return None
        return (flows[0] if len(flows) == 1 else flows.sum(0)).float()

    def _read(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(self._dtype).contiguous()

    def _call(
        self,
        name: str,
        boxes: torch.Tensor,
        images: torch.Tensor,
        crops: torch.Tensor,
        shape: tuple[int, ...],
        places: Places,
        weight: int,
    ) -> bool:
        """Calls a function for crops of a shape and images of another; whether all boxes were fine."""
        count, rows, columns, channels = crops.shape
        words = {
            "threads": _threads(crops.numel(), weight), "boxes": count, "rows": rows, "columns": columns,
            "batch": shape[0], "height": shape[1], "width": shape[2], "channels": channels,
        }  # fmt: skip
        note = Note()
        boxes, images = boxes.contiguous(), images.contiguous()
        given = {"notes": ctypes.addressof(note), "boxes": boxes, "images": images, **places}
        self._library.call(name, words, given)
        return not note[0]


def _threads(elements: int, weight: int) -> int:
    """How many threads share so many elements of crops, each as costly as so many of a plain crop."""
    has_team = elements * _WORK * weight >= machine.current().profile.native_team
    return torch.get_num_threads() if has_team else 1
