"""Staging areas as runtime objects: tuples of tensors put aside, first in first out or by key.

Both kinds hold at most `capacity` tuples and `memory_limit` bytes (0: any number); who puts more waits, who
takes what is not there waits, and each change lets go on whoever can (`waiting.py`); those who wait for the
same are served in order. In a map a tuple may
come component by component; until it has all of them it is *incomplete*, and consumers of its key wait. It
may be taken component by component too.

>>> from types import SimpleNamespace
>>> step = SimpleNamespace(on_cancel=lambda callback: lambda: None)
>>> area = StagingMap("m", is_ordered=True)
>>> area.take(step, lambda outputs, error: print(*outputs), None, [0, 1])
>>> area.put(step, lambda outputs, error: None, 7, [1], [torch.tensor(2.0)], 2)
>>> area.put(step, lambda outputs, error: None, 7, [0], [torch.tensor(1.0)], 2)
tensor(7) tensor(1.) tensor(2.)
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from flowstone.framework import errors
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.control.waiting import WAITS, WaitingList
from flowstone.ops.queues.queue_attempts import Done

Check: TypeAlias = Callable[[tuple[Any, ...]], None]


def _accept(values: tuple[Any, ...]) -> None:
    """Refuses nothing."""


class _Store:
    """What both kinds have in common: limits, the bytes held, and who waits."""

    def __init__(self, name: str, capacity: int = 0, memory_limit: int = 0) -> None:
        self.name, self.capacity, self.memory_limit = name, capacity, memory_limit
        self.waiting = WaitingList("Staging")
        self.bytes = 0

    def release(self) -> None:
        """Ends all waiting, as its container is dropped."""
        self.waiting.release()

    def _check_size(self, size: int) -> None:
        if 0 < self.memory_limit < size:
            raise errors.ResourceExhaustedError(
                None,
                None,
                f"Attempted to insert tensors with combined size of '{size}' bytes into Staging Area with a "
                f"memory limit of '{self.memory_limit}'.",
            )

    def _has_memory_for(self, size: int) -> bool:
        return not self.memory_limit or self.bytes + size <= self.memory_limit


class StagingBuffer(_Store):
    """A staging area that gives tuples in the order in which they were put."""

    def __init__(self, name: str, capacity: int = 0, memory_limit: int = 0) -> None:
        super().__init__(name, capacity, memory_limit)
        self._tuples: deque[tuple[Any, ...]] = deque()

    def __len__(self) -> int:
        return len(self._tuples)

    def put(self, step: Any, done: Done, values: tuple[Any, ...]) -> None:
        """Adds a tuple; `done` is told once there was room for it. Keeps the tensors.

        ResourceExhaustedError for a tuple that is larger than the memory limit.
        """
        size = _size(values)
        self._check_size(size)

        def attempt() -> Any:
            if (self.capacity and len(self._tuples) >= self.capacity) or not self._has_memory_for(size):
                return WAITS
            self._tuples.append(values)
            self.bytes += size
            return ()

        self.waiting.start(step, done, attempt, "put")

    def take(self, step: Any, done: Done, check: Check = _accept) -> None:
        """Removes the first tuple; `done` is told it. A tuple that `check` refuses stays."""

        def attempt() -> Any:
            if not self._tuples:
                return WAITS
            check(self._tuples[0])
            values = self._tuples.popleft()
            self.bytes -= _size(values)
            return values

        self.waiting.start(step, done, attempt, "take")

    def peek(self, step: Any, done: Done, index: int, check: Check = _accept) -> None:
        """A copy of the tuple at place `index` (0: first), once there is one: whoever takes it may overwrite
        it."""

        def attempt() -> Any:
            if not 0 <= index < len(self._tuples):
                return WAITS
            check(self._tuples[index])
            return copied(self._tuples[index])

        self.waiting.start(step, done, attempt, ("peek", index))

    def clear(self) -> None:
        """Drops all tuples."""

        def drop() -> None:
            self._tuples.clear()
            self.bytes = 0

        self.waiting.change(drop)


class StagingMap(_Store):
    """A staging area that gives tuples by their keys, or, without a key, that of the smallest (or oldest)."""

    def __init__(self, name: str, capacity: int = 0, memory_limit: int = 0, is_ordered: bool = False) -> None:
        super().__init__(name, capacity, memory_limit)
        self.is_ordered = is_ordered
        self._complete: dict[int, list[Any]] = {}
        self._incomplete: dict[int, list[Any]] = {}

    def __len__(self) -> int:
        return len(self._complete)

    @property
    def incomplete_size(self) -> int:
        """How many tuples lack components."""
        return len(self._incomplete)

    # ---- putting

    def put(
        self, step: Any, done: Done, key: int, indices: Sequence[int], values: Sequence[Any], count: int
    ) -> None:
        """Adds components `indices` of the tuple `key`, which has `count`; `done` is told when there was
        room. Keeps the tensors.

        A whole tuple under a key that is there changes nothing. InvalidArgumentError for components that it
        has already and for indices out of order or range, ResourceExhaustedError for more than the memory
        limit.
        """
        _check_indices(indices, count)
        if len(indices) != len(values):
            raise invalid(f"{len(indices)} indices for {len(values)} tensors")
        size = _size(values)
        self._check_size(size)
        is_whole = len(indices) == count

        def attempt() -> Any:
            full = self.capacity and len(self._complete) >= self.capacity
            if (full and is_whole) or not self._has_memory_for(size):
                return WAITS
            if not is_whole:
                self._add(key, indices, values, count)
            elif key not in self._complete:
                self._complete[key] = list(values)
            else:
                return ()
            self.bytes += size
            return ()

        self.waiting.start(step, done, attempt, "put" if is_whole else "part")

    def _add(self, key: int, indices: Sequence[int], values: Sequence[Any], count: int) -> None:
        held = self._incomplete.get(key) or [None] * count
        for index in indices:
            if held[index] is not None:
                raise invalid(
                    f"The tensor for index '{index}' for key '{key}' was already initialized '{count}'."
                )
        for index, value in zip(indices, values):
            held[index] = value
        self._incomplete[key] = held
        if all(value is not None for value in held):
            self._complete[key] = self._incomplete.pop(key)

    # ---- taking

    def take(
        self, step: Any, done: Done, key: int | None, indices: Sequence[int], check: Check = _accept
    ) -> None:
        """Removes components `indices` of the tuple `key`, once it is complete; `done` is told them, after
        the key where None was given: then it is the smallest one, or the oldest.

        InvalidArgumentError for components that were taken before and for indices out of order or range.
        What `check` refuses stays.
        """

        def attempt() -> Any:
            chosen = self._next_key() if key is None else key
            if chosen is None or chosen not in self._complete:
                return WAITS
            values = self._chosen(chosen, indices)
            check(values)
            held = self._complete[chosen]
            for index in indices:
                held[index] = None
            if all(value is None for value in held):
                del self._complete[chosen]
            self.bytes -= _size(values)
            return (torch.tensor(chosen), *values) if key is None else values

        self.waiting.start(step, done, attempt, ("take", key))

    def peek(self, step: Any, done: Done, key: int, indices: Sequence[int], check: Check = _accept) -> None:
        """As `take` of this key; the components stay."""

        def attempt() -> Any:
            if key not in self._complete:
                return WAITS
            values = self._chosen(key, indices)
            check(values)
            return values

        self.waiting.start(step, done, attempt, ("peek", key))

    def _next_key(self) -> int | None:
        if not self._complete:
            return None
        return min(self._complete) if self.is_ordered else next(iter(self._complete))

    def _chosen(self, key: int, indices: Sequence[int]) -> tuple[Any, ...]:
        held = self._complete[key]
        _check_indices(indices, len(held))
        for index in indices:
            if held[index] is None:
                raise invalid(f"Tensor at index '{index}' for key '{key}' has already been removed.")
        return tuple([held[index] for index in indices])

    def clear(self) -> None:
        """Drops all tuples, incomplete ones too."""

        def drop() -> None:
            self._complete.clear()
            self._incomplete.clear()
            self.bytes = 0

        self.waiting.change(drop)


def _check_indices(indices: Sequence[int], count: int) -> None:
    if any(later <= earlier for earlier, later in itertools.pairwise(indices)):
        raise invalid("Indices are not strictly ordered")
    for index in indices:
        if not 0 <= index < count:
            raise invalid(f"Index '{index}' is outside of the {count} components")


def copied(values: Sequence[Any]) -> tuple[Any, ...]:
    """Tensors and string arrays that nobody else holds."""
    return tuple([x.clone() if isinstance(x, torch.Tensor) else x.copy() for x in values])


def _size(values: Sequence[Any]) -> int:
    """Bytes; a string counts 24 beside its own."""
    total = 0
    for value in values:
        if isinstance(value, torch.Tensor):
            total += value.nbytes
        else:
            total += sum(24 + len(text) for text in value.ravel())
    return total
