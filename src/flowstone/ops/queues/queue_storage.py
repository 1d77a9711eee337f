"""What a queue holds: its elements, without any waiting.

An element is a tuple of components. Elements go in and come out as *chunks* ``(components, start, stop)``:
the rows ``start`` to ``stop`` of tensors that hold many elements each, or, where `start` is `SINGLE`, tensors
that are one element. A batch thus goes through a first-in-first-out queue as one piece, and comes out as a
view.

`BlockStorage` keeps the chunks in their order, `SlotStorage` gives rows slots, a growing number, and draws
these at random, `ListStorage` does that for elements of unknown shapes, `HeapStorage` orders by the first
component. None is safe for concurrent use: the queue's lock is.

>>> storage = BlockStorage()
>>> storage.put((torch.tensor([1, 2, 3]),), 0, 3)
>>> storage.put((torch.tensor(4),), SINGLE, 0)
>>> storage.take(2), storage.size
([((tensor([1, 2, 3]),), 0, 2)], 2)
>>> join(storage.take(2))
(tensor([3, 4]),)
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from flowstone.framework.machine.machine_code import RowMoves, row_moves
from flowstone.ops.queues.queue_rows import Order, rows_like
from flowstone.ops.randomness.op_seeds import fresh_seed
from flowstone.ops.randomness.random_words import RandomWords

SINGLE = -1
Chunk: TypeAlias = "tuple[tuple[Any, ...], int, int]"


def length(chunk: Chunk) -> int:
    """How many elements a chunk has."""
    return 1 if chunk[1] < 0 else chunk[2] - chunk[1]


def element(chunk: Chunk) -> tuple[Any, ...]:
    """The components of the first element of a chunk."""
    components, start, _ = chunk
    return components if start < 0 else tuple([row(component, start) for component in components])


def row(component: Any, i: int) -> Any:
    """Row `i` of a tensor, a view; of an object array, an array of rank one less."""
    return component[i] if isinstance(component, torch.Tensor) else component[i, ...]


def join(chunks: Sequence[Chunk]) -> tuple[Any, ...]:
    """The elements of the chunks, of equal shapes, as rows of one tensor a component."""
    if len(chunks) == 1:
        components, start, stop = chunks[0]
        if start < 0:
            return tuple([component[None] for component in components])
        return tuple([c if len(c) == stop - start else c[start:stop] for c in components])
    return tuple([_join_component(chunks, i) for i in range(len(chunks[0][0]))])


def _join_component(chunks: Sequence[Chunk], i: int) -> Any:
    if all(chunk[1] < 0 for chunk in chunks):
        return _stacked([chunk[0][i] for chunk in chunks])
    parts = [c[i][start:stop] if start >= 0 else c[i][None] for c, start, stop in chunks]
    return torch.cat(parts) if isinstance(parts[0], torch.Tensor) else np.concatenate(parts)


def _stacked(items: Any) -> Any:
    return torch.stack(items) if isinstance(items[0], torch.Tensor) else np.stack(items)


def join_padded(chunks: Sequence[Chunk], ranks: Sequence[int]) -> tuple[Any, ...]:
    """As `join`, for elements whose sizes differ: each is filled up with zeros ('' in text) to the largest.

    `ranks`: the rank of each component of an element.
    """
    return tuple([_join_padded_component(chunks, i) for i in range(len(ranks))])


def _join_padded_component(chunks: Sequence[Chunk], i: int) -> Any:
    blocks = [c[i][start:stop] if start >= 0 else c[i][None] for c, start, stop in chunks]
    sizes = {tuple(block.shape[1:]) for block in blocks}
    is_tensor = isinstance(blocks[0], torch.Tensor)
    if len(sizes) == 1:
        if len(blocks) == 1:
            return blocks[0]
        return torch.cat(blocks) if is_tensor else np.concatenate(blocks)
    shape = (sum(len(block) for block in blocks), *[max(axis) for axis in zip(*sizes)])
    padded = blocks[0].new_zeros(shape) if is_tensor else np.full(shape, b"", dtype=object)
    at = 0
    for block in blocks:
        place = (slice(at, at + len(block)), *[slice(0, n) for n in block.shape[1:]])
        padded[place] = block
        at += len(block)
    return padded


class BlockStorage:
    """First in, first out; keeps the chunks it is given. `size`: elements."""

    draws_ahead = False

    def __init__(self) -> None:
        self.size = 0
        self._chunks: deque[Chunk] = deque()

    def put(self, components: tuple[Any, ...], start: int, stop: int) -> None:
        """Adds the elements of a chunk; a batch that comes in parts is one piece again."""
        chunks = self._chunks
        if start < 0:
            self.size += 1
        else:
            self.size += stop - start
            if start and chunks and chunks[-1][2] == start and chunks[-1][0] is components:
                start = chunks.pop()[1]
        chunks.append((components, start, stop))

    def take(self, count: int) -> list[Chunk]:
        """Removes the oldest `count` elements."""
        chunks, taken = self._chunks, []
        self.size -= count
        while count:
            components, start, stop = chunks[0]
            if start < 0:
                taken.append(chunks.popleft())
                count -= 1
            elif stop - start <= count:
                taken.append(chunks.popleft())
                count -= stop - start
            else:
                taken.append((components, start, start + count))
                chunks[0] = (components, start + count, stop)
                count = 0
        return taken

    def put_back(self, chunks: Sequence[Chunk]) -> None:
        """Undoes `take`: the chunks are the oldest again."""
        self._chunks.extendleft(reversed(chunks))
        self.size += sum(map(length, chunks))


class ListStorage:
    """Random order, elements one by one, by `words`; the last one takes the place of each."""

    draws_ahead = False

    def __init__(self, words: RandomWords) -> None:
        self._elements: list[Chunk] = []
        self._words = words

    @property
    def size(self) -> int:
        """How many elements it holds."""
        return len(self._elements)

    def put(self, components: tuple[Any, ...], start: int, stop: int) -> None:
        """Adds the elements of a chunk."""
        if start < 0:
            self._elements.append((components, start, stop))
        else:
            self._elements += [(components, i, i + 1) for i in range(start, stop)]

    def take(self, count: int) -> list[Chunk]:
        """Removes `count` elements, each drawn at random."""
        elements, taken = self._elements, []
        for _ in range(count):
            i = self._words.next() % len(elements)
            elements[i], elements[-1] = elements[-1], elements[i]
            taken.append(elements.pop())
        return taken

    def put_back(self, chunks: Sequence[Chunk]) -> None:
        """Adds what `take` gave."""
        self._elements += chunks


_SINGLES = 256  # that become rows together, at most
_DRAWS, _DOUBLE = 1024, 8  # random numbers made at once, and the bytes of one
_EVERY = Order(np.arange(_SINGLES))


class SlotStorage:
    """Random order; every element is a row at a slot, the same for each component, so a batch is one gather.

    With `words`, elements are drawn as `ListStorage` draws them. Without, the order is drawn as elements
    come: what is held is at all times in an order as probable as any other, so a batch is the last of it, and
    who waits for one does not wait for the drawing.
    `shapes` are the components' shapes; the tensors grow with what is held, up to `capacity` rows. Single
    elements become rows many at a time. Machine code, once it is there, takes the rows over
    (`queue_rows.py`).
    """

    def __init__(
        self, shapes: Sequence[tuple[int, ...]], capacity: int, words: RandomWords | None = None
    ) -> None:
        self._shapes, self._capacity, self._words = shapes, capacity, words
        self.draws_ahead = words is None
        self._generator = np.random.default_rng(fresh_seed())
        self._draws, self._draws_address, self._drawn = np.zeros(0), 0, 0  # below 1; how many are used
        self._moves: RowMoves | None = None
        self._rows: list[Any] = []
        self._order = Order(np.arange(0))  # the first `_filled` slots hold an element, the others are free
        self._filled = 0
        self._singles: list[tuple[Any, ...]] = []  # that are no rows yet
        self.size = 0

    def put(self, components: tuple[Any, ...], start: int, stop: int) -> None:
        """Adds the elements of a chunk."""
        if start >= 0:
            self.size += stop - start
            self._fill(components, start, stop)
            return
        self.size += 1
        self._singles.append(components)
        if len(self._singles) >= _SINGLES:
            self._fill_singles()

    def _fill_singles(self) -> None:
        singles, self._singles = self._singles, []
        self._fill(tuple([self._joined(items) for items in zip(*singles)]), 0, len(singles))

    def _joined(self, items: Sequence[Any]) -> Any:
        first = items[0]
        if self._moves is None or not isinstance(first, torch.Tensor) or first.ndim or not first.is_cpu:
            return _stacked(items)
        joined, addresses = first.new_empty(len(items)), np.array([item.data_ptr() for item in items])
        places = addresses.ctypes.data, _EVERY.address
        self._moves.collect(*places, len(items), first.element_size(), joined.data_ptr())
        return joined

    def _fill(self, components: tuple[Any, ...], start: int, stop: int) -> None:
        if self._moves is None:
            self._look_for_machine_code(components)
        first = self._filled
        self._filled += stop - start
        if self._filled > len(self._order.array):
            self._grow(components)
        for rows, component in zip(self._rows, components):
            rows.place(self._order, first, component, start, stop)
        if self._words is None:
            self._mix(first)

    def _look_for_machine_code(self, components: tuple[Any, ...]) -> None:
        """Has it move the rows, those that are held already, too."""
        self._moves = row_moves()
        if self._moves is None or not self._rows:
            return
        order, held, rows = self._order, self._filled, self._rows
        self._rows = [rows_like(*item, self._moves) for item in zip(components, self._shapes)]
        for new, old in zip(self._rows, rows):
            new.grow(len(order.array))
            if held:
                new.place(order, 0, old.gather(order, 0, held), 0, held)

    def _grow(self, components: tuple[Any, ...]) -> None:
        held = len(self._order.array)
        size = max(min(max(2 * held, self._filled, 32), self._capacity), self._filled)
        if not self._rows:
            self._rows = [rows_like(*item, self._moves) for item in zip(components, self._shapes)]
        for rows in self._rows:
            rows.grow(size)
        self._order = Order(np.concatenate([self._order.array, np.arange(held, size)]))

    def _mix(self, first: int) -> None:
        """Exchanges each slot from place `first` on with one drawn from those up to it (Fisher and Yates)."""
        filled = self._filled
        start = self._draw(filled - first)
        if self._moves is not None:
            self._moves.mix(self._order.address, first, filled, self._draws_address + _DOUBLE * start)
            return
        draws = self._draws[start : start + filled - first]
        places = (draws * np.arange(first + 1, filled + 1)).astype(np.int64)
        items = memoryview(self._order.array)
        for i, place in enumerate(places.tolist(), first):
            items[i], items[place] = items[place], items[i]

    def _draw(self, count: int) -> int:
        """Where among the draws the next ones are. Many are made at once: the generator gives the
        interpreter's lock away.
        """
        start = self._drawn
        if start + count > len(self._draws):
            more = self._generator.random(max(_DRAWS, count))
            self._draws = np.concatenate([self._draws[start:], more])
            self._draws_address, start = self._draws.ctypes.data, 0
        self._drawn = start + count
        return start

    def take(self, count: int) -> list[Chunk]:
        """Removes `count` elements drawn at random: one chunk."""
        if self._singles:
            self._fill_singles()
        if self._words is not None:
            self._bring_to_the_end(count, self._words)
        self.size = self._filled = left = self.size - count
        return [(tuple([rows.gather(self._order, left, count) for rows in self._rows]), 0, count)]

    def _bring_to_the_end(self, count: int, words: RandomWords) -> None:
        """Draws `count` slots, which are the last ones then, in the order in which they were drawn."""
        items, filled = memoryview(self._order.array), self._filled
        for last in range(filled - 1, filled - 1 - count, -1):
            place = words.next() % (last + 1)
            items[place], items[last] = items[last], items[place]
        drawn = self._order.array[filled - count : filled]
        drawn[:] = drawn[::-1].copy()

    def put_back(self, chunks: Sequence[Chunk]) -> None:
        """Adds what `take` gave."""
        for chunk in chunks:
            self.put(*chunk)


class HeapStorage:
    """Smallest first component (a scalar) first; among equals, first in, first out."""

    draws_ahead = False

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Chunk]] = []
        self._count = itertools.count()
        self._first = 0  # what was put back comes before all that came since

    @property
    def size(self) -> int:
        """How many elements it holds."""
        return len(self._heap)

    def put(self, components: tuple[Any, ...], start: int, stop: int) -> None:
        """Adds the elements of a chunk."""
        priorities = components[0].tolist()
        if start < 0:
            heapq.heappush(self._heap, (priorities, next(self._count), (components, start, stop)))
            return
        for i in range(start, stop):
            heapq.heappush(self._heap, (priorities[i], next(self._count), (components, i, i + 1)))

    def take(self, count: int) -> list[Chunk]:
        """Removes the `count` smallest elements, in order."""
        return [heapq.heappop(self._heap)[2] for _ in range(count)]

    def put_back(self, chunks: Sequence[Chunk]) -> None:
        """Adds what `take` gave, before their equals."""
        self._first -= len(chunks)
        for place, chunk in enumerate(chunks):
            heapq.heappush(self._heap, (int(element(chunk)[0]), self._first + place, chunk))
