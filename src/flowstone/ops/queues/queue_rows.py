"""Rows in memory that a shuffling queue keeps one component of its elements in (`queue_storage.py`).

`rows_like` chooses by the component's type, device and size. All kinds have three methods: `grow` to a number
of rows, `place` the rows `start` to `stop` of a component at slots, `gather` the rows at slots, which become
free. Slots are those of an `Order`, from a place on.

With machine code (`native/arrays/row_moves.py`) rows are not copied as they come: a component is a *block*
that is kept as long as one of its rows is in the queue, and a slot has a row's address. Once less than half
of what is kept is in the queue, the rows of blocks of which half has gone are copied, and these blocks let
go. Rows of a few bytes are copied into an array of their own.

Nothing here gives the interpreter's lock away, but for copies of much memory: else a producer and a consumer,
who want that lock and the queue's at the same time, hand both over several times a batch, which takes longer
than the copies. torch's calls give it away, and NumPy's where it copies numbers; therefore small rows without
machine code are items of a NumPy type without a meaning.

>>> rows = rows_like(torch.zeros(2, 3), (3,))
>>> rows.grow(4)
>>> order = Order(np.array([3, 0]))
>>> rows.place(order, 0, torch.tensor([[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]), 1, 3)
>>> rows.gather(order, 1, 1)
tensor([[7., 8., 9.]])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from flowstone.framework.machine.machine_code import RowMoves

_WORD = 8  # bytes of a slot
_SMALL = 1 << 14  # bytes of a row
_TINY = 64  # bytes of a row that costs no more than its address and its block's number


class Order:
    """Slots, int64, in an order: the `array`, and where it is."""

    __slots__ = ("address", "array")

    def __init__(self, array: Any) -> None:
        self.array, self.address = array, array.ctypes.data


class TensorRows:
    """On a device, or of a type that NumPy lacks."""

    def __init__(self, component: Any, shape: tuple[int, ...]) -> None:
        self._rows = component.new_empty((0, *shape))

    def grow(self, size: int) -> None:
        """Makes room for `size` rows in all."""
        grown = self._rows.new_empty((size, *self._rows.shape[1:]))
        grown[: len(self._rows)] = self._rows
        self._rows = grown

    def place(self, order: Order, first: int, component: Any, start: int, stop: int) -> None:
        """Copies the rows of a batch to the slots from place `first` on."""
        slots = order.array[first : first + stop - start]
        self._rows[torch.as_tensor(slots, device=self._rows.device)] = component[start:stop]

    def gather(self, order: Order, first: int, count: int) -> Any:
        """A copy of the rows at slots."""
        slots = order.array[first : first + count]
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

    def place(self, order: Order, first: int, component: Any, start: int, stop: int) -> None:
        """Copies the rows of a batch to the slots from place `first` on."""
        slots = order.array[first : first + stop - start]
        self._rows[slots] = component[start:stop]

    def gather(self, order: Order, first: int, count: int) -> Any:
        """A copy of the rows at slots, whose text is freed."""
        slots = order.array[first : first + count]
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

    def place(self, order: Order, first: int, component: Any, start: int, stop: int) -> None:
        """Copies the rows of a batch to the slots from place `first` on."""
        slots = order.array[first : first + stop - start]
        values = np.ascontiguousarray(component[start:stop].numpy())
        self._rows[slots] = values.reshape(-1).view(self._item)

    def gather(self, order: Order, first: int, count: int) -> Any:
        """A copy of the rows at slots."""
        slots = order.array[first : first + count]
        return torch.from_numpy(self._rows[slots].view(self._dtype).reshape(-1, *self._shape))


def _maker(dtype: torch.dtype) -> Callable[[tuple[int, ...]], Any]:
    """What makes tensors, by NumPy where it has the type: torch gives the lock away."""
    if dtype is torch.bfloat16:
        return partial(torch.empty, dtype=dtype)
    kind = torch.empty(0, dtype=dtype).numpy().dtype
    return lambda shape: torch.from_numpy(np.empty(shape, kind))


class TinyRows:
    """Rows of a few bytes, moved by machine code."""

    def __init__(self, component: Any, shape: tuple[int, ...], moves: RowMoves) -> None:
        self._moves, self._rows = moves, component.new_empty((0, *shape))
        self._size = self._rows.element_size() * math.prod(shape)
        self._make = _maker(component.dtype)
        self._shape, self._at = shape, 0

    def grow(self, size: int) -> None:
        """Makes room for `size` rows in all."""
        grown = self._make((size, *self._shape))
        grown[: len(self._rows)] = self._rows
        self._rows, self._at = grown, grown.data_ptr()

    def place(self, order: Order, first: int, component: Any, start: int, stop: int) -> None:
        """Copies the rows of a batch to the slots from place `first` on."""
        values = component.contiguous()
        place, source = order.address + _WORD * first, values.data_ptr() + start * self._size
        self._moves.place(self._at, place, stop - start, self._size, source)

    def gather(self, order: Order, first: int, count: int) -> Any:
        """A copy of the rows at slots."""
        out = self._make((count, *self._shape))
        self._moves.pick(self._at, order.address + _WORD * first, count, self._size, out.data_ptr())
        return out


class KeptRows:
    """Rows that stay where they came, in blocks; machine code finds and copies those that are taken.

    `_addresses` and `_owners` (numbers of blocks) are by slot; `_blocks`, `_left` (how many of its rows are
    in the queue) and `_lengths` by block, of which those in `_free` are none. A component that comes again,
    or in parts, is one block. `_kept`: rows of all blocks; `_held`: those that are in the queue.
    """

    def __init__(self, component: Any, shape: tuple[int, ...], moves: RowMoves) -> None:
        self._moves, self._shape = moves, shape
        self._size = component.element_size() * math.prod(shape)
        self._make = _maker(component.dtype)
        self._addresses, self._owners = np.zeros(0, np.int64), np.full(0, -1)
        self._left, self._ended = np.zeros(0, np.int64), np.zeros(1, np.int64)
        self._blocks: list[Any] = []
        self._lengths: list[int] = []
        self._free: list[int] = []
        self._numbers: dict[int, int] = {}  # of blocks, by the identity of the component
        self._kept = self._held = 0
        self._note_places()

    def _note_places(self) -> None:
        arrays = self._addresses, self._owners, self._left, self._ended
        self._at = tuple([array.ctypes.data for array in arrays])

    def grow(self, size: int) -> None:
        """Makes room for `size` rows in all."""
        more = size - len(self._owners)
        self._addresses = np.concatenate([self._addresses, np.zeros(more, np.int64)])
        self._owners = np.concatenate([self._owners, np.full(more, -1)])
        self._note_places()

    def place(self, order: Order, first: int, component: Any, start: int, stop: int) -> None:
        """Has the slots from place `first` on be those rows of a batch, which is kept as it is."""
        number = self._numbers.get(id(component))
        if number is None:
            much = 2 * self._size * len(component)
            if not component.is_contiguous() or component.untyped_storage().nbytes() > much:
                component = component[start:stop].clone(memory_format=torch.contiguous_format)
                start, stop = 0, stop - start
            number = self._new_block(component)
        count, address = stop - start, self._blocks[number].data_ptr() + start * self._size
        self._left[number] += count
        self._held += count
        addresses, owners = self._at[:2]
        self._moves.note(addresses, owners, order.address + _WORD * first, count, address, self._size, number)

    def _new_block(self, rows: Any) -> int:
        if not self._free:
            first = len(self._left)
            more = max(16, first)
            self._free = list(range(first, first + more))
            self._left = np.concatenate([self._left, np.zeros(more, np.int64)])
            self._ended = np.zeros(1 + len(self._left), np.int64)
            self._blocks += [None] * more
            self._lengths += [0] * more
            self._note_places()
        number = self._free.pop()
        self._blocks[number], self._lengths[number] = rows, len(rows)
        self._numbers[id(rows)] = number
        self._kept += len(rows)
        return number

    def gather(self, order: Order, first: int, count: int) -> Any:
        """A copy of the rows at slots, whose blocks may go."""
        place = order.address + _WORD * first
        out = self._collect(place, count)
        self._release(place, count)
        if self._kept > 2 * self._held:
            self._copy_rest()
        return out

    def _collect(self, place: int, count: int) -> Any:
        out = self._make((count, *self._shape))
        self._moves.collect(self._at[0], place, count, self._size, out.data_ptr())
        return out

    def _release(self, place: int, count: int) -> None:
        _, owners, left, ended = self._at
        self._moves.release(owners, left, place, count, ended)
        self._held -= count
        if not self._ended[0]:
            return
        for number in self._ended[1 : 1 + self._ended[0]].tolist():
            del self._numbers[id(self._blocks[number])]
            self._kept -= self._lengths[number]
            self._blocks[number], self._lengths[number] = None, 0
            self._free.append(number)

    def _copy_rest(self) -> None:
        """Makes one block of what is left of those of which half or more has gone."""
        lengths = np.array([*self._lengths, 0])  # the last for slots without an owner
        has_gone = np.append(2 * self._left, 0) <= lengths
        has_gone &= lengths > 0
        rest = Order(np.flatnonzero(has_gone[self._owners]))
        count = len(rest.array)
        rows = self._collect(rest.address, count)
        self._release(rest.address, count)
        self.place(rest, 0, rows, 0, count)


def rows_like(component: Any, shape: tuple[int, ...], moves: RowMoves | None = None) -> Any:
    """Rows of `shape` for a component as this one, as yet without room; `moves`: the machine code."""
    if not isinstance(component, torch.Tensor):
        return ArrayRows(object, shape)
    is_host = component.device.type == "cpu"
    if is_host and moves is not None:
        is_tiny = component.element_size() * math.prod(shape) <= _TINY
        return (TinyRows if is_tiny else KeptRows)(component, shape, moves)
    if not is_host or component.dtype is torch.bfloat16:
        return TensorRows(component, shape)
    dtype = component.new_empty(0).numpy().dtype
    is_small = 0 < dtype.itemsize * math.prod(shape) <= _SMALL
    return ItemRows(dtype, shape) if is_small else ArrayRows(dtype, shape)
