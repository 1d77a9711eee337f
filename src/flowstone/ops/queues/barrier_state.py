"""Barriers as runtime objects: elements put together component by component, by key.

An element is *incomplete* until each of its components has been inserted under its key; then it is *ready*
and moves to a queue that gives the elements in the order in which their keys first came. Takers wait in that
queue's line (`queue_state.py`), so cancellation and deadlines reach them there.

==============  ===========================================================================================
state           meaning
==============  ===========================================================================================
open            all go on
closed          new keys are refused with CancelledError; incomplete elements may still be completed, and
                the last of them closes the queue
cancelled       incomplete elements are dropped and every insertion is refused
==============  ===========================================================================================

>>> from types import SimpleNamespace
>>> step = SimpleNamespace(on_cancel=lambda callback: lambda: None)
>>> barrier = BarrierState("b", (dtypes.int32, dtypes.int32), ((), ()))
>>> barrier.insert_many(step, 0, [b"x", b"y"], torch.tensor([1, 2]))
>>> barrier.insert_many(step, 1, [b"y"], torch.tensor([4]))
>>> barrier.ready_size, barrier.incomplete_size
(1, 1)
>>> barrier.take_many(step, lambda outputs, error: print(*outputs[1:]), 1, False)
[b'y'] tensor([2]) tensor([4])
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, format_dims, is_compatible
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.queues.queue_attempts import Done
from flowstone.ops.queues.queue_state import Queue
from flowstone.ops.queues.queue_storage import HeapStorage

_FIRST_INDEX = -(2**63)


class _Element:
    """An incomplete element: the number of the insertion that brought its key, and its components so far."""

    __slots__ = ("components", "index", "missing")

    def __init__(self, index: int, count: int) -> None:
        self.index, self.components, self.missing = index, [None] * count, count


class BarrierState:
    """A barrier of elements with components of `types` and `shapes` (one each)."""

    def __init__(
        self,
        name: str,
        types: tuple[DType, ...],
        shapes: tuple[Dims, ...],
        device: torch.device | None = None,
    ) -> None:
        self.name, self.dtypes, self.shapes = name, types, shapes
        self._incomplete: dict[bytes, _Element] = {}
        self._index = _FIRST_INDEX
        self._lock = threading.RLock()  # a consumer that is served may be told under it
        self._closed = self._cancelled = False
        self._ready = Queue(
            "PriorityQueue",
            f"{name}_queue",
            (dtypes.int64, dtypes.string, *types),
            ((), (), *shapes),
            -1,
            HeapStorage(),
            device=device,
        )

    def __repr__(self) -> str:
        return f"<Barrier {self.name}: {self.ready_size} ready, {self.incomplete_size} incomplete>"

    @property
    def tensor(self) -> np.ndarray[Any, Any]:
        """What a fetch of its reference shows: container and name."""
        return np.array([b"localhost", self.name.encode()], dtype=object)

    @property
    def ready_size(self) -> int:
        """How many elements may be taken."""
        return self._ready.size

    @property
    def incomplete_size(self) -> int:
        """How many elements lack components."""
        return len(self._incomplete)

    # ---- insertion

    def insert_many(self, step: Any, component: int, keys: list[bytes], values: Any) -> None:
        """Gives the elements `keys` their component of this number: `values`, one row each.

        InvalidArgumentError for values that do not fit, and for keys that have it already; CancelledError
        for keys that a closed barrier does not know. Either leaves the barrier as it was.
        """
        self._check(component, keys, values)
        with self._lock:
            self._refuse(component, keys)
            values = _copied(values)
            is_new = False
            for row, key in enumerate(keys):
                element = self._incomplete.get(key)
                if element is None:
                    element = self._incomplete[key] = _Element(self._index, len(self.dtypes))
                    is_new = True
                element.components[component] = values[row]
                element.missing -= 1
                if not element.missing:
                    del self._incomplete[key]
                    self._make_ready(step, key, element)
            self._index += is_new
            if self._closed and not self._incomplete:
                self._close_queue(step)

    def _check(self, component: int, keys: list[bytes], values: Any) -> None:
        if not 0 <= component < len(self.dtypes):
            raise invalid(
                f"The component ID is out of range {component} > num_components (= {len(self.dtypes)})"
            )
        shape = tuple(values.shape)
        if not shape or shape[0] != len(keys):
            raise invalid(
                f"{len(keys)} keys and values of shape {format_dims(shape)} for component {component}"
            )
        if not is_compatible(shape[1:], self.shapes[component]):
            raise invalid(
                f"Shape mismatch in tuple component {component}. "
                f"Expected {format_dims(self.shapes[component])}, got {format_dims(shape[1:])}"
            )

    def _refuse(self, component: int, keys: list[bytes]) -> None:
        new = [key for key in keys if key not in self._incomplete]
        if self._cancelled:
            raise errors.CancelledError(
                None,
                None,
                f"Barrier {self.name} is closed.  Pending enqueues cancelled: 1.  Number of new insertions: "
                f"{len(new)}.  Number of incomplete keys: {len(self._incomplete)}.",
            )
        if self._closed and new:
            raise errors.CancelledError(
                None,
                None,
                f"Barrier {self.name} is closed, but attempted to insert a brand new key: {_text(new[0])}.  "
                f"Pending enqueues cancelled: 0.  Insertion index: {keys.index(new[0])}.  "
                f"Number of incomplete keys: {len(self._incomplete)}.",
            )
        seen: set[bytes] = set()
        for key in keys:
            element = self._incomplete.get(key)
            if key in seen or (element is not None and element.components[component] is not None):
                raise invalid(
                    f"Key {_text(key)} already has a value for component {component} in barrier {self.name}"
                )
            seen.add(key)

    def _make_ready(self, step: Any, key: bytes, element: _Element) -> None:
        name = np.empty((), dtype=object)
        name[()] = key
        failed: list[BaseException] = []
        self._ready.enqueue(
            step,
            lambda outputs, error: failed.append(error) if error is not None else None,
            (torch.tensor(element.index), name, *[_as_array(x) for x in element.components]),
        )
        if failed:
            raise failed[0]

    # ---- taking

    def take_many(self, step: Any, done: Done, wanted: int, allow_small_batch: bool) -> None:
        """Takes `wanted` elements once so many are ready; `done` is told (indices, keys, *components).

        `allow_small_batch`: a closed barrier gives the ready ones that it has. OutOfRangeError (through
        `done`) where a closed barrier can never have enough.
        """
        with self._lock:
            ready = self._ready.size
            if self._closed and allow_small_batch:
                wanted = min(wanted, ready)
            possible = ready + len(self._incomplete)
            if self._closed and (possible < wanted or (allow_small_batch and not wanted)):
                refusal = errors.OutOfRangeError(
                    None,
                    None,
                    f"Barrier '{self.name}' is closed and has insufficient elements "
                    f"(requested {wanted}, total size {ready})",
                )
            else:
                refusal = None
                self._ready.dequeue_many(step, done, wanted, allow_small_batch)
        if refusal is not None:
            done(None, refusal)

    # ---- closing

    def close(self, step: Any, cancel_pending_enqueues: bool) -> None:
        """Refuses new keys; with `cancel_pending_enqueues` also drops incomplete elements.

        CancelledError for closing what is already closed so.
        """
        with self._lock:
            if self._cancelled or (self._closed and not cancel_pending_enqueues):
                raise errors.CancelledError(None, None, f"Barrier '{self.name}' is already closed.")
            self._closed, self._cancelled = True, cancel_pending_enqueues
            if cancel_pending_enqueues:
                self._incomplete.clear()
            if not self._incomplete:
                self._close_queue(step)

    def _close_queue(self, step: Any) -> None:
        if not self._ready.is_closed:
            self._ready.close(step, lambda outputs, error: None, True)

    def release(self) -> None:
        """Closes it for good, as its container is dropped."""
        with self._lock:
            self._closed = self._cancelled = True
            self._incomplete.clear()
            self._ready.release()


def _copied(values: Any) -> Any:
    return values.clone() if isinstance(values, torch.Tensor) else values.copy()


def _text(key: bytes) -> str:
    return key.decode(errors="replace")


def _as_array(component: Any) -> Any:
    """A row of strings that NumPy gave as bare bytes, as an array again."""
    if isinstance(component, (torch.Tensor, np.ndarray)):
        return component
    scalar = np.empty((), dtype=object)
    scalar[()] = component
    return scalar
