"""Sums and products of quantised integers, element by element: in 32 bits where no number is larger."""

from __future__ import annotations

from collections.abc import Callable

import torch

from flowstone.framework.machine import machine_code
from flowstone.framework.types import dtypes
from flowstone.ops.numbers.elementwise import by_pieces
from flowstone.ops.quantization.ranges import Levels, narrowed

__all__ = ["product_of_integers", "sum_of_integers"]

_NARROW = 15  # bits of numbers whose products have 31


def product_of_integers(x: torch.Tensor, y: torch.Tensor, first: Levels, second: Levels) -> torch.Tensor:
    """The products of integers, each less the one that stands for zero, as qint32."""

    is_narrow = _is_within(x, first.zero, _NARROW) and _is_within(y, second.zero, _NARROW)
    if is_narrow and x.shape == y.shape and x.device.type == "cpu":
        native = machine_code.integer_product(x.dtype, y.dtype)
        if native is not None:
            return native(x, y, first.zero, second.zero)

    def compute(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        a, b = _less(x, first.zero), _less(y, second.zero)
        found = a.mul_(b) if a.shape == b.shape and a.dtype is b.dtype else a * b
        return found if found.dtype is torch.int32 else narrowed(found, dtypes.qint32)

    return _together(compute, x, y)


def sum_of_integers(
    x: torch.Tensor, y: torch.Tensor, first: Levels, second: Levels, total: Levels
) -> torch.Tensor:
    """The sums of integers over two ranges as qint32 over a wider one, `total`."""
    parts = _Multiples(first, total), _Multiples(second, total)
    is_narrow = sum(each.largest for each in parts) < 2**31
    word = torch.int32 if is_narrow else torch.int64
    if is_narrow and x.shape == y.shape and x.device.type == "cpu":
        native = machine_code.integer_product(x.dtype, y.dtype)
        if native is not None:
            a, b = parts
            return native.sum(x, y, a.times, b.times, a.start + b.start)

    def compute(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        a, b = (part.of(each, word) for part, each in zip(parts, (x, y)))
        found = a.add_(b) if a.shape == b.shape else a + b
        return found if is_narrow else narrowed(found, dtypes.qint32)

    return _together(compute, x, y)


def _is_within(x: torch.Tensor, zero: int, bits: int) -> bool:
    """Whether no number of the type, less `zero`, has more than so many bits."""
    numbers = torch.iinfo(x.dtype)
    return max(abs(numbers.min - zero), abs(numbers.max - zero)) < 1 << bits


def _less(x: torch.Tensor, zero: int) -> torch.Tensor:
    """Quantised integers less one of them: int32 if products of two such have that, else int64."""
    return x.to(torch.int32 if _is_within(x, zero, _NARROW) else torch.int64).sub_(zero)


class _Multiples:
    """The integers of a new range, by whole multiples of the old ones: `times` them and `start`. The
    absolutely largest number on the way is `largest`."""

    def __init__(self, old: Levels, new: Levels) -> None:
        first = new.nearest(old.low_steps)
        self.times = int(old.step / new.step)
        self.start = first - old.lowest * self.times
        products = [abs(end * self.times) for end in (old.lowest, old.highest)]
        self.largest = max(products) + abs(self.start)

    def of(self, x: torch.Tensor, word: torch.dtype) -> torch.Tensor:
        return x.to(word, copy=True).mul_(self.times).add_(self.start)


def _together(compute: Callable[..., torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """What is computed element by element of both, as qint32."""
    return by_pieces(compute, torch.int32, x, y) if x.shape == y.shape else compute(x, y)
