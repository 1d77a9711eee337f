"""Passes between numbers and the steps of quantisation by machine code (`step_code.py`), on a host.

The code is compiled on a thread when a plan first asks for it; what is called before it is there waits.
Threads share what is worth it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.arrays.step_code import PLACES, WORDS, float_code, integer_code, requantization_code
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary

__all__ = ["Requantizer", "StepPasses", "requantizer", "step_passes"]

Levels = tuple[int, int]  # the first and the last step
_INTEGERS = {
    torch.uint8: ("i8", False), torch.int8: ("i8", True), torch.uint16: ("i16", False),
    torch.int16: ("i16", True), torch.int32: ("i32", True),
}  # fmt: skip
_FLOATS = (
    "round", "round_range", "round_rows", "masked", "passed_range", "passed_rows", "scaled_even",
    "scaled_up",
)  # fmt: skip
_LONG = 512  # elements of a row, from which its end takes no time
_WORK = 4  # of an element, in additions


class StepPasses:
    """The passes; those of integers for one type."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._library = _library(dtype)

    def round(self, x: torch.Tensor, numbers: Sequence[float]) -> torch.Tensor:
        """float32 numbers rounded to steps."""
        return self._call("round", x, torch.empty(x.shape), (ctypes.c_float * 5)(*numbers))

    def round_ranges(
        self, x: torch.Tensor, ends: Sequence[torch.Tensor], levels: Levels
    ) -> torch.Tensor | None:
        """The same of one range, or of ranges of channels."""
        out = torch.empty(x.shape)
        return (
            out if self._by_ranges("round", ends, levels, _columns(x, ends), {"x": x, "out": out}) else None
        )

    def passed_ranges(
        self, dy: torch.Tensor, x: torch.Tensor, ends: Sequence[torch.Tensor], levels: Levels
    ) -> list[torch.Tensor] | None:
        """`dy` where `x` is in its range, else 0, and the sums of `dy` below and above, float32."""
        out, columns = torch.empty(x.shape), _columns(x, ends)
        sums = torch.zeros((_threads(x.numel()), 2, columns), dtype=torch.float64)
        places = {"x": x, "dy": dy, "out": out, "sums": sums}
        if not self._by_ranges("passed", ends, levels, columns, places):
            return None
        if not ends[0].dim():
            return [out, *sums.sum((0, 2)).float().unbind()]
        return [out, *sums.view(-1, 2, columns // x.shape[-1], x.shape[-1]).sum((0, 2)).float().unbind()]

    def _by_ranges(
        self,
        name: str,
        ends: Sequence[torch.Tensor],
        levels: Levels,
        columns: int,
        places: dict[str, torch.Tensor],
    ) -> bool:
        """Calls a function of ranges; whether all ranges are some."""
        x, given, numbers = places["x"], (ctypes.c_float * 3)(*levels), torch.empty(5, columns)
        words = {
            "threads": _threads(x.numel()), "count": x.numel(), "columns": columns,
            "channels": ends[0].numel(),
        }  # fmt: skip
        low, high = (each.contiguous() for each in ends)
        taken: dict[str, torch.Tensor | int] = {key: each.contiguous() for key, each in places.items()}
        taken |= {"low": low, "high": high, "numbers": numbers, "levels": ctypes.addressof(given)}
        self._library.call(f"{name}_{'rows' if low.dim() else 'range'}", words, taken)
        return not given[2]

    def scaled(self, x: torch.Tensor, numbers: Sequence[float], is_even: bool) -> torch.Tensor:
        """float32 numbers in a range, rounded after and before they are scaled."""
        name = "scaled_even" if is_even else "scaled_up"
        return self._call(name, x, torch.empty(x.shape), (ctypes.c_float * 4)(*numbers))

    def masked(self, dy: torch.Tensor, x: torch.Tensor, first: float, last: float) -> torch.Tensor:
        """`dy` where `x` is in the range, else 0."""
        numbers = (ctypes.c_float * 2)(first, last)
        return self._call("masked", x, torch.empty(x.shape), numbers, dy=dy.contiguous())

    def quantize(self, x: torch.Tensor, numbers: Sequence[float], dtype: torch.dtype) -> torch.Tensor:
        """float32 numbers as integers of the type."""
        return self._call("quantize", x, torch.empty(x.shape, dtype=dtype), (ctypes.c_float * 8)(*numbers))

    def dequantize(self, x: torch.Tensor, numbers: Sequence[float], exactly: bool) -> torch.Tensor:
        """Integers of the type as float32 numbers, by way of float64 if `exactly`."""
        out = torch.empty(x.shape)
        if exactly:
            return self._call("dequantize_exactly", x, out, (ctypes.c_double * 3)(*numbers))
        return self._call("dequantize", x, out, (ctypes.c_float * 3)(*numbers))

    def dequantize_multiples(self, x: torch.Tensor, zero: int, step: float) -> torch.Tensor | None:
        """The multiples of a step that integers are, counted from `zero`, rounded once; None where float32
        has not all that is needed."""
        first = float(np.float32(step))
        if x.dtype is torch.int32 or abs(zero) > 2**23 or not 1e-25 < first < 1e25:
            return None
        numbers = (ctypes.c_float * 3)(-zero, first, step - first)
        return self._call("dequantize_multiples", x, torch.empty(x.shape), numbers)

    def _call(
        self, name: str, x: torch.Tensor, out: torch.Tensor, numbers: ctypes.Array[Any], **more: torch.Tensor
    ) -> torch.Tensor:
        return _called(self._library, name, x, out, numbers, **more)


class Requantizer:
    """The pass from integers of one type to another's."""

    def __init__(self, old: torch.dtype, new: torch.dtype) -> None:
        self._library, self._new = _requantization(old, new), new

    def __call__(self, x: torch.Tensor, numbers: Sequence[float]) -> torch.Tensor:
        """Integers of another range that stand for the same numbers."""
        out = torch.empty(x.shape, dtype=self._new)
        return _called(self._library, "requantize", x, out, (ctypes.c_double * 7)(*numbers))


def _columns(x: torch.Tensor, ends: Sequence[torch.Tensor]) -> int:
    """The length of rows that have several of each channel, which is the last axis; 1 of one range."""
    if not ends[0].dim():
        return 1
    channels = x.shape[-1]
    return min(x.numel(), channels * -(-_LONG // channels))


def _called(
    library: CodeLibrary,
    name: str,
    x: torch.Tensor,
    out: torch.Tensor,
    numbers: ctypes.Array[Any],
    **more: torch.Tensor,
) -> torch.Tensor:
    words = {"threads": _threads(x.numel()), "count": x.numel()}
    places: dict[str, torch.Tensor | int] = {"x": x.contiguous(), "out": out, **more}
    places["numbers"] = ctypes.addressof(numbers)
    library.call(name, words, places)
    return out


def _threads(count: int) -> int:
    return torch.get_num_threads() if count * _WORK >= machine.current().profile.native_team else 1


@functools.cache
def _library(dtype: torch.dtype) -> CodeLibrary:
    if dtype is torch.float32:
        return CodeLibrary(lambda: float_code(host.lanes()), WORDS, {name: PLACES[name] for name in _FLOATS})
    kind, is_signed = _INTEGERS[dtype]
    others = (*_FLOATS, "requantize")
    places = {name: taken for name, taken in PLACES.items() if name not in others}
    lanes = 2 * host.lanes()  # short integers fill more of a vector
    return CodeLibrary(lambda: integer_code(kind, is_signed, lanes), WORDS, places)


@functools.cache
def _requantization(old: torch.dtype, new: torch.dtype) -> CodeLibrary:
    return CodeLibrary(
        lambda: requantization_code(_INTEGERS[old], _INTEGERS[new][0], host.lanes()),
        WORDS,
        {"requantize": PLACES["requantize"]},
    )


def step_passes(dtype: torch.dtype | None) -> StepPasses | None:
    """What rounds float32 numbers, or the passes between them and integers of a type; None if there are
    none, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype is None:
        return None
    return StepPasses(dtype) if dtype is torch.float32 or dtype in _INTEGERS else None


def requantizer(old: torch.dtype | None, new: torch.dtype | None) -> Requantizer | None:
    """The pass between integers of these types; None if there is none, or no native tier."""
    if not flags.NATIVE or host.reason() or old not in _INTEGERS or new not in _INTEGERS:
        return None
    return Requantizer(old, new)
