"""Maxima over windows, one dimension after the other, as element-wise maxima of shifted slices.

Windows that overlap share most of their elements. The maximum of a window of sizes a x b takes (a - 1) +
(b - 1) element-wise maxima of slices that are shifted against each other; ATen's pooling compares a * b
elements and writes the places of the maxima as well. With channels last every slice has long rows. 3 x 3
windows over [8, 28, 28, 256] floats take 0.4 ms on two cores where ATen's pooling takes 1.0, and 2 x 2
windows that do not overlap over [64, 24, 24, 20] 0.05 instead of 0.16. Where windows move by more than 1,
slices of large images cost memory traffic that windows do not: docs/design/016.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import torch

from flowstone.framework.machine import machine
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes

__all__: list[str] = []

_LARGEST = 3  # rows and columns of such a window
_Index: TypeAlias = "tuple[slice, ...]"


class _Shift(NamedTuple):
    """Outputs `start` to `start + length` along a dimension, which take the inputs at `seen`."""

    start: int
    length: int
    seen: _Index


def sliding_maxima(window: Any, node: Node) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """The kernel of a MaxPool on the host with this `Window`, or None where this is not the way:

    the channels must be last, the shape known and neither small nor, unless the strides are 1, too large, and
    every window must see the element that it is centred on, or start inside.
    """
    dims = node.static_shape(0)
    if dims is None or not window.last or window.channel_size != 1 or node.dtype(0) is not dtypes.float32:
        return None
    if not _pays(math.prod(dims), window):
        return None
    lengths = dims[1:-1]
    counts, before, _ = window.solve(lengths)
    if 0 in counts:
        return None
    shape, stages = list(dims), []
    found = zip(lengths, window.sizes, window.strides, counts, before)
    for axis, (length, size, stride, count, margin) in enumerate(found, 1):
        if size == 1 and count == length:
            continue
        shifts = _shifts(axis, length, size, stride, count, margin)
        if shifts is None:
            return None
        shape[axis] = count
        stages.append((axis, tuple(shape), *shifts))

    def pool(x: torch.Tensor) -> torch.Tensor:
        for axis, result, whole, shifts in stages:
            x = _maxima_along(x, axis, torch.empty(result), whole, shifts)
        return x

    return pool


def _pays(elements: int, window: Any) -> bool:
    here = machine.current()
    if elements < here.profile.sliding_maxima or set(window.sizes) == {1}:
        return False
    if set(window.strides) == {1}:
        return True
    return not here.exceeds_caches(8 * elements) and max(window.sizes) <= _LARGEST  # with the result, cached


def _shifts(
    axis: int, length: int, size: int, stride: int, count: int, margin: int
) -> tuple[_Shift, list[_Shift]] | None:
    """A shift that serves all outputs, and the others, which serve all but some at the borders."""
    found = []
    for offset in range(-margin, size - margin):
        start, end = max(0, -(offset // stride)), min(count, (length - 1 - offset) // stride + 1)
        if start < end:
            seen = slice(offset + start * stride, offset + (end - 1) * stride + 1, stride)
            found.append(_Shift(start, end - start, (*[slice(None)] * axis, seen)))
    whole = next((shift for shift in found if shift.length == count), None)
    if whole is None or len(found) < 2:
        return None
    found.remove(whole)
    return whole, found


def _maxima_along(
    x: torch.Tensor, axis: int, y: torch.Tensor, whole: _Shift, shifts: list[_Shift]
) -> torch.Tensor:
    """Gives `y` the maxima over a window along one dimension, and returns it."""
    (start, length, seen), *others = shifts
    end = start + length
    base = x[whole.seen]
    torch.maximum(base.narrow(axis, start, length), x[seen], out=y.narrow(axis, start, length))
    for first, last in ((0, start), (end, whole.length)):
        if first < last:
            y.narrow(axis, first, last - first).copy_(base.narrow(axis, first, last - first))
    for start, length, seen in others:
        part = y.narrow(axis, start, length)
        torch.maximum(part, x[seen], out=part)
    return y
