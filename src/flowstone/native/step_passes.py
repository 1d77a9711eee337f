"""Passes between numbers and the steps of quantisation by machine code (`step_code.py`), on a host.

The code is compiled on a thread when a plan first asks for it; what is called before it is there waits.
Threads share what is worth it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import torch

from flowstone.framework import flags, machine
from flowstone.native import host
from flowstone.native.code_library import CodeLibrary
from flowstone.native.step_code import PLACES, WORDS, float_code, integer_code

__all__ = ["StepPasses", "step_passes"]

_INTEGERS = {
    torch.uint8: ("i8", False), torch.int8: ("i8", True), torch.uint16: ("i16", False),
    torch.int16: ("i16", True), torch.int32: ("i32", True),
}  # fmt: skip
_WORK = 4  # of an element, in additions


class StepPasses:
    """The passes; those of integers for one type."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._library = _library(dtype)

    def round(self, x: torch.Tensor, numbers: Sequence[float]) -> torch.Tensor:
        """float32 numbers rounded to steps."""
        return self._call("round", x, torch.empty(x.shape), (ctypes.c_float * 5)(*numbers))

    def masked(self, dy: torch.Tensor, x: torch.Tensor, first: float, last: float) -> torch.Tensor:
        """`dy` where `x` is in the range, else 0."""
        numbers = (ctypes.c_float * 2)(first, last)
        return self._call("masked", x, torch.empty(x.shape), numbers, dy=dy.contiguous())

    def passed(
        self, dy: torch.Tensor, x: torch.Tensor, first: float, last: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The same, and the sums of `dy` below and above, float32 [2]."""
        sums = torch.zeros((_threads(x.numel()), 2), dtype=torch.float64)
        numbers = (ctypes.c_float * 2)(first, last)
        out = self._call("passed", x, torch.empty(x.shape), numbers, dy=dy.contiguous(), sums=sums)
        return out, sums.sum(0).float()

    def quantize(self, x: torch.Tensor, numbers: Sequence[float], dtype: torch.dtype) -> torch.Tensor:
        """float32 numbers as integers of the type."""
        return self._call("quantize", x, torch.empty(x.shape, dtype=dtype), (ctypes.c_float * 8)(*numbers))

    def dequantize(self, x: torch.Tensor, numbers: Sequence[float], exactly: bool) -> torch.Tensor:
        """Integers of the type as float32 numbers, by way of float64 if `exactly`."""
        out = torch.empty(x.shape)
        if exactly:
            return self._call("dequantize_exactly", x, out, (ctypes.c_double * 3)(*numbers))
        return self._call("dequantize", x, out, (ctypes.c_float * 3)(*numbers))

    def _call(
        self, name: str, x: torch.Tensor, out: torch.Tensor, numbers: ctypes.Array[Any], **more: torch.Tensor
    ) -> torch.Tensor:
        words = {"threads": _threads(x.numel()), "count": x.numel()}
        places: dict[str, torch.Tensor | int] = {"x": x.contiguous(), "out": out, **more}
        places["numbers"] = ctypes.addressof(numbers)
        self._library.call(name, words, places)
        return out


def _threads(count: int) -> int:
    return torch.get_num_threads() if count * _WORK >= machine.current().profile.native_team else 1


@functools.cache
def _library(dtype: torch.dtype) -> CodeLibrary:
    names = ("round", "masked", "passed")
    if dtype is torch.float32:
        return CodeLibrary(lambda: float_code(host.lanes()), WORDS, {name: PLACES[name] for name in names})
    kind, is_signed = _INTEGERS[dtype]
    places = {name: taken for name, taken in PLACES.items() if name not in names}
    return CodeLibrary(lambda: integer_code(kind, is_signed, host.lanes()), WORDS, places)


def step_passes(dtype: torch.dtype | None) -> StepPasses | None:
    """What rounds float32 numbers, or the passes between them and integers of a type; None if there are
    none, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype is None:
        return None
    return StepPasses(dtype) if dtype is torch.float32 or dtype in _INTEGERS else None
