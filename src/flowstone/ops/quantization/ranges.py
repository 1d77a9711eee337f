"""What a quantised number means: an integer of a type and the range of floats that the type's integers
divide.

The lowest integer of the type stands for the least number of the range, the highest for the largest. Zero is
always a step of the range: it is moved so that it is.

>>> import torch
>>> to_floats(torch.tensor([0, 255], dtype=torch.uint8), Levels(dtypes.quint8, -1.0, 2.0))
tensor([-1.,  2.])
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from flowstone.framework.machine.machine_code import requantizer
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.numbers.elementwise import FEW, by_pieces

_BITS = {dtypes.qint8: 8, dtypes.quint8: 8, dtypes.qint16: 16, dtypes.quint16: 16, dtypes.qint32: 32}


def limits(dtype: DType) -> tuple[int, int]:
    """The lowest and the highest integer of a quantised type."""
    bits = _BITS[dtype]
    lowest = 0 if dtype.name.startswith("qu") else -(2 ** (bits - 1))
    return lowest, lowest + 2**bits - 1


class Levels:
    """The integers of a type over a range.

    Attributes:
        dtype: the quantised type; `lowest` and `highest` are its integers' limits.
        low, high: the range.
        step: the distance of neighbouring integers.
    """

    def __init__(self, dtype: DType, low: float, high: float) -> None:
        self.dtype, self.low, self.high = dtype, low, high
        self.lowest, self.highest = limits(dtype)
        self.step = (high - low) / (self.highest - self.lowest)

    def integer_of(self, number: float) -> int:
        """The integer that stands for a number, also beyond the type's limits; 0 if the range is empty."""
        if self.step == 0 or not math.isfinite(self.step):
            return 0
        return round_away(number / self.step) - round_away(self.low / self.step) + self.lowest

    @property
    def low_steps(self) -> float:
        """The multiple of the step that is nearest to the range's lower end, for which `lowest` stands."""
        step = float(np.float32(self.step))
        return 0.0 if step == 0 else round_away(float(np.float32(self.low) / np.float32(step))) * step

    def nearest(self, number: float) -> int:
        """The integer within the type's limits that stands for a float32 number; 0 if the range is empty."""
        if not self.step:
            return 0
        place, first = float(np.float32(number)) / self.step, self.low / self.step
        if not math.isfinite(place) or not math.isfinite(first):
            return int(to_integers(torch.tensor(number, dtype=torch.float32), self))
        rounded = math.trunc(place + math.copysign(_BELOW_HALF[torch.float64], place))
        return min(max(rounded - round_away(first) + self.lowest, self.lowest), self.highest)

    @property
    def zero(self) -> int:
        """The integer that stands for 0."""
        return self.integer_of(0.0)


def round_away(number: float) -> int:
    """The nearest integer, of two the one farther from zero."""
    return math.floor(number + 0.5) if number >= 0 else math.ceil(number - 0.5)


_BELOW_HALF = {torch.float32: 0.5 - 2.0**-25, torch.float64: 0.5 - 2.0**-54}  # what a half rounds up with


def rounded_away(x: torch.Tensor) -> torch.Tensor:
    """The same of a float32 or float64 tensor."""
    half = _BELOW_HALF[x.dtype]
    return torch.mul(x, 2.0**60).clamp_(-half, half).add_(x).trunc_()


def rounded_up(x: torch.Tensor) -> torch.Tensor:
    """Of numbers that are not negative, overwritten, what their nearest integers are the whole parts of."""
    return x.add_(_BELOW_HALF[x.dtype])


def bounded(x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """`x`, no less than `low` and no more than `high`: on a host numbers, which are not broadcast."""
    if low.dim() or high.dim() or low.device.type != "cpu":
        return x.clamp(low, high)
    return x.clamp(low.item(), high.item())


_LONG = 1024  # elements of a row over which ATen broadcasts as fast as it computes


def in_long_rows(x: torch.Tensor, *ends: torch.Tensor) -> list[torch.Tensor]:
    """`x` and what has one element a channel (the last axis), with several of each channel in a row."""
    if not ends[0].dim() or not x.numel():
        return [x, *ends]
    channels, times = x.shape[-1], 1
    rows = x.numel() // channels
    while rows % 2 == 0 and channels * times < _LONG:
        rows, times = rows // 2, times * 2
    return [x.reshape(rows, -1), *[each.repeat(times) for each in ends]]


def passed_inside(dy: torch.Tensor, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """`dy` times 1 where `x` is in [low, high], which broadcast to it, else times 0."""
    if x.device.type != "cpu" or x.numel() < FEW:
        return dy * (x >= low).logical_and_(x <= high)
    if low.dim() or high.dim():
        within = torch.maximum(x, low)
        torch.minimum(within, high, out=within)
    else:
        within = bounded(x, low, high)
    return within.eq_(x).mul_(dy)


def to_floats(x: torch.Tensor, levels: Levels) -> torch.Tensor:
    """The float32 numbers that integers stand for."""
    low = levels.low_steps

    def convert(x: torch.Tensor) -> torch.Tensor:
        return x.double().sub_(levels.lowest).mul_(levels.step).add_(low).float()

    return by_pieces(convert, torch.float32, x)


def to_integers(x: torch.Tensor, levels: Levels) -> torch.Tensor:
    """The integers, of the type, that stand for numbers; those outside the range become its ends."""
    assert levels.dtype.torch is not None
    if levels.step == 0:
        return torch.zeros(x.shape, dtype=levels.dtype.torch, device=x.device)
    offset = round_away(levels.low / levels.step) - levels.lowest

    def convert(x: torch.Tensor) -> torch.Tensor:
        return narrowed(rounded_away(x.double().div_(levels.step)).sub_(offset), levels.dtype)

    return by_pieces(convert, levels.dtype.torch, x)


def narrowed(x: torch.Tensor, dtype: DType) -> torch.Tensor:
    """Whole numbers as integers of a type; those beyond its limits become the limits, NaN any integer."""
    assert dtype.torch is not None
    lowest, highest = limits(dtype)
    if not x.dtype.is_floating_point:
        return x.clamp(lowest, highest).to(dtype.torch)
    if highest > 2**24:  # float32 has not all limits
        return x.double().nan_to_num(lowest, highest, lowest).clamp(lowest, highest).to(dtype.torch)
    return (
        x.clamp(lowest, highest).to(dtype.torch if lowest or highest < 256 else torch.int32).to(dtype.torch)
    )


def wide(x: torch.Tensor) -> torch.Tensor:
    """Quantised integers as integers that are added and compared exactly."""
    return x.to(torch.int64 if x.dtype is torch.int32 else torch.int32)


def scalar(x: Any, name: str) -> float:
    """The number in a range's end; InvalidArgumentError if it is not one."""
    if x.numel() != 1 or x.dim() > 1:
        raise invalid(f"`{name}` must be a scalar, but its shape is {list(x.shape)}")
    return float(x)


def scalars(*values: torch.Tensor | float) -> list[torch.Tensor]:
    """Numbers as float32 tensors of rank 0."""
    return [torch.tensor(float(value), dtype=torch.float32) for value in values]


def require_scalars(node: Node, *positions: int) -> None:
    """ValueError if an input at these positions is known to be no scalar."""
    for i in positions:
        dims = node.dims(i)
        if dims is not None and len(dims):
            raise ValueError(f"Shape must be rank 0 but is rank {len(dims)}")


def requantized(x: torch.Tensor, old: Levels, new: Levels) -> torch.Tensor:
    """The integers of the new range that stand for the numbers of `x`."""
    assert new.dtype.torch is not None
    native = requantizer(x.dtype, new.dtype.torch) if x.device.type == "cpu" else None
    if native is not None and new.step and math.isfinite(new.low / new.step):
        offset = round_away(new.low / new.step) - new.lowest
        numbers = [old.lowest, old.step, old.low_steps, new.step, offset, new.lowest, new.highest]
        if all(map(math.isfinite, numbers)):
            return native(x, numbers)
    return by_pieces(lambda part: to_integers(to_floats(part, old), new), new.dtype.torch, x)


def added_range(first: Levels, second: Levels, bits: int) -> Levels:
    """A range around zero, 2^bits as wide as that of the numbers that are added in 32 bits."""
    largest = max(abs(first.low), abs(first.high), abs(second.low), abs(second.high))
    return Levels(dtypes.qint32, -largest * 2**bits, largest * 2**bits)


def product_range(first: Levels, second: Levels, dtype: DType = dtypes.qint32) -> Levels:
    """The range whose step is the product of both steps, so that products of integers are integers."""
    step = first.step * second.step
    lowest, highest = limits(dtype)
    return Levels(dtype, step * lowest, step * highest)
