"""Projective transforms, glimpses and drawn boxes by machine code, as functions of tensors on a host.

The code for a type and a way of reading is compiled on a thread when a plan first asks for it; what is called
before it is there waits. Threads share what is worth it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.image_code import BoxDrawing, GlimpseCut, Projection
from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.images import drawing_code, glimpse_code, projection_code

__all__ = ["box_drawing", "glimpse_cut", "projection"]

_READ = frozenset({torch.float32, torch.float64, torch.uint8, torch.int32, torch.int64})
_NARROW = frozenset({torch.float16, torch.bfloat16})
_Numbers = ctypes.c_float * 8
_WORK = 8  # of an element of a transformed image, in additions


def projection(dtype: torch.dtype | None, mode: str, nearest: bool) -> Projection | None:
    """What transforms images of a type in this mode; None if there is none, or no native tier."""
    if not _has_tier() or dtype is None or dtype not in _READ | _NARROW:
        return None
    is_read = dtype in _READ or (dtype is torch.float16 and host.has_halves())
    read = dtype if is_read else torch.float32
    return functools.partial(_projected, _projection_library(read, mode, nearest), read)


def glimpse_cut() -> GlimpseCut | None:
    """What cuts windows out of float32 images; None if there is no native tier."""
    return functools.partial(_cut, _glimpse_library()) if _has_tier() else None


def box_drawing(dtype: torch.dtype | None) -> BoxDrawing | None:
    """What draws boxes into images of a type; None if there is none, or no native tier."""
    kind = {torch.float32: "float", torch.float16: "i16"}.get(dtype) if dtype else None
    return functools.partial(_drawn, kind) if kind and _has_tier() else None


def _has_tier() -> bool:
    return bool(flags.NATIVE) and not host.reason()


@functools.cache
def _projection_library(dtype: torch.dtype, mode: str, nearest: bool) -> CodeLibrary:
    name, lanes = dtypes.from_torch(dtype).name, host.lanes()
    module = projection_code
    return CodeLibrary(
        lambda: module.projection_code(name, mode, nearest, lanes), module.WORDS, module.PLACES
    )


@functools.cache
def _glimpse_library() -> CodeLibrary:
    module = glimpse_code
    return CodeLibrary(lambda: module.glimpse_code(host.lanes()), module.WORDS, module.PLACES)


@functools.cache
def _drawing_library(kind: str, channels: int) -> CodeLibrary:
    module = drawing_code
    return CodeLibrary(lambda: module.drawing_code(kind, channels, host.lanes()), module.WORDS, module.PLACES)


def _threads(work: int) -> int:
    return torch.get_num_threads() if work >= machine.current().profile.native_team else 1


def _sizes(x: torch.Tensor) -> dict[str, int]:
    batch, height, width, channels = x.shape
    return {"batch": batch, "height": height, "width": width, "channels": channels}


def _projected(
    library: CodeLibrary,
    read: torch.dtype,
    x: torch.Tensor,
    transforms: torch.Tensor,
    size: tuple[int, int],
    fill: torch.Tensor,
) -> torch.Tensor:
    words = _sizes(x)
    out = torch.empty((words["batch"], *size, words["channels"]), dtype=read)
    words |= {"rows": size[0], "columns": size[1], "step": 8 if len(transforms) > 1 else 0}
    words["threads"] = _threads(out.numel() * _WORK)
    row = fill.to(x.dtype).to(read).expand(words["channels"]).contiguous()
    places: dict[str, torch.Tensor | int] = {
        "transforms": transforms.contiguous(), "x": x.to(read).contiguous(), "fill": row, "out": out
    }  # fmt: skip
    library.call("project", words, places)
    return out.to(x.dtype)


@functools.lru_cache(maxsize=256)
def _given(numbers: tuple[float, ...]) -> ctypes.Array[ctypes.c_float]:
    return _Numbers(*numbers)  # which the code only reads


def _cut(
    library: CodeLibrary, x: torch.Tensor, offsets: torch.Tensor, numbers: Sequence[float], out: torch.Tensor
) -> bool:
    note = ctypes.c_int64()
    given = _given(tuple(numbers))
    words = _sizes(x) | {"rows": out.shape[1], "columns": out.shape[2], "threads": _threads(out.numel())}
    places: dict[str, torch.Tensor | int] = {
        "notes": ctypes.addressof(note), "numbers": ctypes.addressof(given),
        "offsets": offsets.contiguous(), "x": x.contiguous(), "out": out,
    }  # fmt: skip
    library.call("glimpse", words, places)
    return not note.value


def _drawn(kind: str, images: torch.Tensor, boxes: torch.Tensor, colours: torch.Tensor) -> torch.Tensor:
    out = images.clone(memory_format=torch.contiguous_format)
    words = _sizes(out) | {"boxes": boxes.shape[1], "colours": len(colours)}
    lines = 2 * (words["height"] + words["width"]) * words["channels"]
    words["threads"] = _threads(boxes.shape[0] * boxes.shape[1] * lines)
    colours = colours[:, : words["channels"]].to(out.dtype).contiguous()
    places = {"boxes": boxes.contiguous(), "colours": colours, "out": out}
    _drawing_library(kind, words["channels"]).call("draw", words, places)
    return out
