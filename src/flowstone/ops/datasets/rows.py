"""`Rows`: elements that can be had by number, since they are slices of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch


class Rows(NamedTuple):
    """What can be had by number: the slices of `components`, numbered again from 0 after each `length`, up to
    `total` of them (None: without end)."""

    components: tuple[Any, ...]
    length: int
    total: int | None

    def element(self, number: int) -> tuple[Any, ...]:
        """One slice."""
        place = number % self.length
        return tuple([slice_of(x, place) for x in self.components])

    def batch(self, numbers: Sequence[int]) -> list[Any]:
        """Slices in batches."""
        length = self.length
        places = [number % length for number in numbers] if self.total != length else numbers
        at = torch.tensor(places)
        return [x.index_select(0, at) if isinstance(x, torch.Tensor) else x[places] for x in self.components]


def slice_of(value: Any, index: int) -> Any:
    """A value's slice; of a vector of strings or handles, an array without dimensions or the handle."""
    row = value[index]
    if isinstance(value, np.ndarray) and not isinstance(row, np.ndarray):
        return _text(row) if isinstance(row, bytes) else row
    return row


def _text(row: bytes) -> Any:
    box = np.empty((), object)
    box[()] = row
    return box
