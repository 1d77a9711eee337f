"""Rows in memory that a shuffling queue keeps one component of its elements in (`queue_storage.py`).

`rows_like` chooses by the component's type, device and size. All kinds have three methods: `grow` to a number
of rows, `place` the rows `start` to `stop` of a component at slots, `gather` the rows at slots.

Small rows are items of a NumPy type without a meaning, which NumPy copies without giving the interpreter's
lock away. It does for numbers, and then a producer and a consumer, who want that lock and the queue's at the
same time, hand both over several times a batch, which takes longer than the copies.

>>> rows = rows_like(torch.zeros(2, 3), (3,))
>>> rows.grow(4)
>>> rows.place(np.array([3, 0]), torch.tensor([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]), 1, 3)
>>> rows.gather(np.array([0, 3]))
tensor([[7., 8., 9.],
        [4., 5., 6.]])
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

_SMALL = 1 << 14  # bytes of a row


class TensorRows:
    """On a device, or of a type that NumPy lacks."""

    def __init__(self, component: Any, shape: tuple[int, ...]) -> None:
        self._rows = component.new_empty((0, *shape))

    def grow(self, size: int) -> None:
        """Makes room for `size` rows in all."""
        grown = self._rows.new_empty((size, *self._rows.shape[1:]))
        grown[: len(self._rows)] = self._rows
        self._rows = grown

    def place(self, slots: Any, component: Any, start: int, stop: int) -> None:
        """Copies the rows of a batch to `slots`."""
        self._rows[torch.as_tensor(slots, device=self._rows.device)] = component[start:stop]

    def gather(self, slots: Any) -> Any:
        """A copy of the rows at `slots`."""
        return self._rows[torch.as_tensor(slots, device=self._rows.device)]


class ArrayRows:
    """Text, or large rows of numbers."""

    def __init__(self, dtype: Any, shape: tuple[int, ...]) -> None:
        self._rows: Any = np.empty((0, *shape), dtype)

    def grow(self, size: int) -> None:
        """Makes room for `size` rows in all."""
        grown = np.empty((size, *self._rows.shape[1:]), self._rows.dtype)
        grown[: len(self._rows)] = self._rows
        self._rows = grown

    def place(self, slots: Any, component: Any, start: int, stop: int) -> None:
        """Copies the rows of a batch to `slots`."""
        self._rows[slots] = component[start:stop]

    def gather(self, slots: Any) -> Any:
        """A copy of the rows at `slots`, whose text is freed."""
        gathered = self._rows[slots]
        if gathered.dtype != object:
            return torch.from_numpy(gathered)
        self._rows[slots] = None
        return gathered


class ItemRows(ArrayRows):
    """Small rows of numbers, each one item to NumPy."""

    def __init__(self, dtype: Any, shape: tuple[int, ...]) -> None:
        super().__init__(f"V{dtype.itemsize * math.prod(shape)}", ())
        self._item, self._dtype, self._shape = self._rows.dtype, dtype, shape

    def place(self, slots: Any, component: Any, start: int, stop: int) -> None:
        """Copies the rows of a batch to `slots`."""
        values = np.ascontiguousarray(component[start:stop].numpy())
        self._rows[slots] = values.reshape(-1).view(self._item)

    def gather(self, slots: Any) -> Any:
        """A copy of the rows at `slots`."""
        return torch.from_numpy(self._rows[slots].view(self._dtype).reshape(-1, *self._shape))


def rows_like(component: Any, shape: tuple[int, ...]) -> Any:
    """Rows of `shape` for a component as this one, as yet without room."""
    if not isinstance(component, torch.Tensor):
        return ArrayRows(object, shape)
    if component.device.type != "cpu" or component.dtype is torch.bfloat16:
        return TensorRows(component, shape)
    dtype = component.new_empty(0).numpy().dtype
    is_small = 0 < dtype.itemsize * math.prod(shape) <= _SMALL
    return ItemRows(dtype, shape) if is_small else ArrayRows(dtype, shape)
