"""Queues as runtime objects: who may put in, who waits, who gets what; no graph and no thread.

A `Queue` is a storage (`queue_storage.py`), a capacity, and two lines of *attempts* that wait: to enqueue,
and to dequeue. An attempt is served in parts, a batch as far as there is room or there are elements, and
attempts of a kind strictly one after the other. Whoever changes the queue serves both lines as far as they
go, under the lock, and afterwards, without it, tells the attempts that are finished. White paper 4.6.

=============  ============================================================================================
state          meaning
=============  ============================================================================================
open           all go on
closing        a close waits in the line behind the enqueues that came before it; later ones will be refused
closed         enqueues fail with CancelledError; a dequeue that will never be served with OutOfRangeError
=============  ============================================================================================

An attempt whose step is cancelled leaves its line, and puts back what it had taken. Nothing is lost: an
element is in the queue, or in the outputs of exactly one finished step.

>>> from types import SimpleNamespace
>>> from flowstone.framework.types import dtypes
>>> from flowstone.ops.queues.queue_storage import BlockStorage
>>> step = SimpleNamespace(on_cancel=lambda callback: lambda: None)
>>> queue = Queue("FIFOQueue", "letters", (dtypes.int32,), ((),), 10, BlockStorage())
>>> queue.dequeue_many(step, lambda outputs, error: print("got", outputs), 2)
>>> queue.enqueue(step, lambda outputs, error: print("put"), (torch.tensor([1, 2, 3]),), many=True)
got (tensor([1, 2]),)
put
>>> queue.size
1
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, format_dims, is_compatible
from flowstone.ops.queues.queue_attempts import Attempt, CloseAttempt, DequeueAttempt, Done, EnqueueAttempt
from flowstone.ops.queues.queue_storage import SINGLE, Chunk, join, join_padded

UNLIMITED = 2**31 - 1


class Queue:
    """A queue of elements with components of types `types`.

    `kind` and `name` are what errors call it. `shapes` are the components' shapes, or None where elements may
    be of any shape (then nothing is dequeued as a batch); with a size of None in them (a padding queue),
    batches are filled up with zeros. `spare` elements stay in the queue while it is open. `description` is
    what those who share it by name must agree on.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        types: tuple[DType, ...],
        shapes: tuple[Dims, ...] | None,
        capacity: int,
        storage: Any,
        *,
        spare: int = 0,
        device: torch.device | None = None,
        description: tuple[Any, ...] = (),
    ) -> None:
        self.kind, self.name, self.dtypes, self.shapes = kind, name, types, shapes
        self.capacity = capacity if capacity >= 0 else UNLIMITED
        self.description, self.is_closed = description, False
        self._storage, self._spare, self._device = storage, spare, device
        self._is_open = shapes is not None and any(dims is None or None in dims for dims in shapes)
        self._lock = threading.Lock()
        self._enqueues: OrderedDict[Attempt, None] = OrderedDict()  # as sets that keep the order
        self._dequeues: OrderedDict[Attempt, None] = OrderedDict()
        self._lulls: list[threading.Lock] = []  # one a thread, released when its lull is over

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}: {self.size} of {self.capacity}>"

    @property
    def size(self) -> int:
        """How many elements are in it; those that a waiting dequeue will get are not."""
        size: int = self._storage.size
        first: Any = next(iter(self._dequeues), None)
        return size if first is None else size - min(first.wanted - first.taken, max(size - self._spare, 0))

    @property
    def tensor(self) -> np.ndarray[Any, Any]:
        """What a fetch of its reference shows: container and name."""
        return np.array([b"localhost", self.name.encode()], dtype=object)

    @property
    def waiting(self) -> tuple[int, int]:
        """How many attempts wait: to enqueue (closes among them), to dequeue."""
        return len(self._enqueues), len(self._dequeues)

    # ---- enqueue

    def enqueue(self, step: Any, done: Done, components: tuple[Any, ...], many: bool = False) -> None:
        """Puts in an element, or the rows of a batch; `done` is told when all are in.

        What it is given must stay as it is. InvalidArgumentError (through `done`) for shapes that do not fit,
        CancelledError where the queue is closed.
        """
        try:
            start, stop = self._checked_rows(components) if many else self._checked_element(components)
            with self._lock:
                attempt, finished = self._put(done, components, start, stop)
        except Exception as error:
            done(None, error)
            return
        self._settle(finished)
        if attempt is not None and not attempt.is_settled:
            if step.turn is not None:
                step.lull = self.lull
            self._register(step, attempt)

    def enqueue_at_once(self, components: tuple[Any, ...], many: bool = False) -> bool:
        """Puts in an element, or the rows of a batch, if there is room; errors are left to `enqueue`."""
        try:
            start, stop = self._checked_rows(components) if many else self._checked_element(components)
        except errors.InvalidArgumentError:
            return False
        count = 1 if start < 0 else stop - start
        with self._lock:
            if self._enqueues or self.is_closed or count > self.capacity - self._storage.size or not count:
                return False
            self._storage.put(components, start, stop)
            finished = self._serve() if self._can_serve() else None
        if finished:
            self._settle(finished)
        return True

    def _can_serve(self) -> bool:
        """Whether the first dequeue in line can be finished now, or must make room."""
        if not self._dequeues:
            return False
        first: Any = next(iter(self._dequeues))
        size: int = self._storage.size
        is_ready: bool = size - self._spare >= first.wanted - first.taken or size >= self.capacity
        return is_ready

    def _put(self, done: Done, components: tuple[Any, ...], start: int, stop: int) -> Any:
        """The attempt that must wait, or None, and those that this one finishes."""
        count = 1 if start < 0 else stop - start
        storage = self._storage
        if not self._enqueues and not self.is_closed and count <= self.capacity - storage.size:
            if count:
                storage.put(components, start, stop)
            finished = self._serve() if self._can_serve() else []
            finished.append((Attempt(done), None))
            return None, finished
        attempt = EnqueueAttempt(done, components, start, stop)
        self._enqueues[attempt] = None
        return attempt, self._serve()

    def _checked_element(self, components: tuple[Any, ...]) -> tuple[int, int]:
        if self.shapes is not None:
            for i, (component, dims) in enumerate(zip(components, self.shapes)):
                if component.shape != dims and not is_compatible(tuple(component.shape), dims):
                    raise _mismatch(i, dims, component)
        return SINGLE, 0

    def _checked_rows(self, components: tuple[Any, ...]) -> tuple[int, int]:
        rows = components[0].shape[0] if components[0].ndim else None
        for i, component in enumerate(components):
            shape = tuple(component.shape)
            dims = None if self.shapes is None else self.shapes[i]
            if not shape or not is_compatible(shape[1:], dims):
                raise _mismatch(i, None if dims is None else (rows, *dims), component)
            if shape[0] != rows:
                if self.shapes is not None:
                    raise _mismatch(i, None if dims is None else (rows, *dims), component)
                raise _invalid(
                    "All input tensors must have the same size in the 0th dimension. "
                    f"Component {i} has {shape[0]}, and should have {rows}"
                )
        return 0, rows or 0

    # ---- dequeue

    def dequeue(self, step: Any, done: Done) -> None:
        """Takes an element out; `done` is told when there was one.

        OutOfRangeError (through `done`) where the queue is closed and empty.
        """
        self._take(step, DequeueAttempt(done, SINGLE, False, self._join))

    def dequeue_many(self, step: Any, done: Done, wanted: int, up_to: bool = False) -> None:
        """Takes a batch of `wanted` elements out; `done` is told when it is complete.

        `up_to`: a closed queue gives what it has, if it has any. OutOfRangeError (through `done`) where the
        queue is closed and lacks elements, InvalidArgumentError where it cannot make batches.
        """
        refusal = self._refusal(wanted, up_to)
        if refusal is not None or wanted == 0:
            done(None if refusal else self._empty_batch(), refusal)
        else:
            self._take(step, DequeueAttempt(done, wanted, up_to, self._join))

    def dequeue_at_once(self, wanted: int, up_to: bool = False) -> tuple[Any, ...] | None:
        """The element, or the batch of `wanted` elements, if they are there; None if not, or for errors."""
        attempt = DequeueAttempt(_nobody, wanted, up_to, self._join)
        needed = attempt.wanted
        if not needed or (wanted >= 0 and self.shapes is None):
            return None
        with self._lock:
            if self._dequeues or needed > self._storage.size - (0 if self.is_closed else self._spare):
                return None
            attempt.chunks = self._storage.take(needed)
            finished = self._serve() if self._enqueues else None
            if self._lulls and self._is_low():
                self._end_lulls()
        if finished:
            self._settle(finished)
        return attempt.outputs()

    def _take(self, step: Any, attempt: DequeueAttempt) -> None:
        with self._lock:
            self._dequeues[attempt] = None
            waits = self._storage.draws_ahead and not (self._enqueues or self.is_closed or self._can_serve())
            finished = self._serve() if len(self._dequeues) == 1 and not waits else []
            if self._lulls:
                self._end_lulls()
        self._settle(finished)
        if not attempt.is_settled:
            self._register(step, attempt)

    def _refusal(self, wanted: int, up_to: bool) -> BaseException | None:
        if wanted < 0:
            return _invalid(
                f"{'DequeueUpToOp' if up_to else 'DequeueManyOp'} requested {wanted} < 0 elements"
            )
        if self.shapes is None:
            return _invalid(
                f"{self.kind}'s DequeueMany and DequeueUpTo require the components to have specified shapes."
            )
        return None

    def _empty_batch(self) -> tuple[Any, ...]:
        batch: list[Any] = []
        for dtype, dims in zip(self.dtypes, self.shapes or ()):
            shape = (0, *[n or 0 for n in dims or ()])
            empty = dtype.torch is None
            batch.append(
                np.empty(shape, dtype=object)
                if empty
                else torch.empty(shape, dtype=dtype.torch, device=self._device)
            )
        return tuple(batch)

    def _join(self, chunks: list[Chunk]) -> tuple[Any, ...]:
        if self._is_open:
            return join_padded(chunks, [len(dims or ()) for dims in self.shapes or ()])
        return join(chunks)

    # ---- lulls

    def lull(self, seconds: float) -> None:
        """Returns when three quarters of the room (of that above `spare`) are free, when a dequeue must wait,
        or after so many seconds.

        Whoever enqueues again and again and had to wait for room is to spend a lull before going on: room for
        many batches gathers. Otherwise every dequeue wakes a thread that puts in one batch and waits again.
        Batches that are drawn are new tensors, with which a thread gives the interpreter's lock to those that
        wait for it: these come later there.
        """
        over = threading.Lock()
        over.acquire()
        with self._lock:
            if self._dequeues or self.is_closed or self._is_low():
                return
            self._lulls.append(over)
        if not over.acquire(timeout=seconds):
            with self._lock:
                self._lulls = [other for other in self._lulls if other is not over]

    def _is_low(self) -> bool:
        size: int = self._storage.size - self._spare
        return 4 * size <= self.capacity - self._spare

    def _end_lulls(self) -> None:
        for over in self._lulls:
            over.release()
        self._lulls.clear()

    # ---- closing

    def close(self, step: Any, done: Done, cancel_pending_enqueues: bool = False) -> None:
        """Refuses further elements, and once those on their way are in, fails dequeues that lack elements.

        `cancel_pending_enqueues`: fails the waiting enqueues too, at once. CancelledError (through `done`)
        for closing twice without that.
        """
        attempt = CloseAttempt(done)
        with self._lock:
            finished: list[tuple[Attempt, BaseException | None]] = []
            if cancel_pending_enqueues:
                finished += _settled(self._enqueues, "Enqueue")
                attempt.is_settled = self.is_closed = True
            else:
                self._enqueues[attempt] = None
            finished += self._serve()
            if cancel_pending_enqueues:
                finished.append((attempt, None))
        self._settle(finished)
        if not attempt.is_settled:
            self._register(step, attempt)

    def release(self) -> None:
        """Closes it for good, as its container is dropped: what waits fails with CancelledError."""
        with self._lock:
            finished = _settled(self._enqueues, "Enqueue") + _settled(self._dequeues, "Dequeue")
            self.is_closed = True
        self._settle(finished)

    # ---- serving, under the lock

    def _serve(self) -> list[tuple[Attempt, BaseException | None]]:
        """Serves both lines as far as they go; gives what is finished, each with its error or None."""
        finished: list[tuple[Attempt, BaseException | None]] = []
        moved = True
        while moved:
            moved = False
            for line, advance in (
                (self._enqueues, self._advance_enqueue),
                (self._dequeues, self._advance_dequeue),
            ):
                while line:
                    attempt: Any = next(iter(line))
                    before = self._storage.size
                    result = advance(attempt)
                    moved = moved or self._storage.size != before
                    if result is _WAITS:
                        break
                    line.popitem(last=False)
                    attempt.is_settled = moved = True
                    finished.append((attempt, result))
        return finished

    def _advance_enqueue(self, attempt: Any) -> Any:
        """_WAITS, or how it ended: an error or None."""
        if type(attempt) is CloseAttempt:
            if self.is_closed:
                return _cancelled(f"Queue '{self.name}' is already closed.")
            self.is_closed = True
            return None
        start, stop = attempt.start, attempt.stop
        if start == stop:
            return None
        if self.is_closed:
            return _cancelled(f"{self.kind} '{self.name}' is closed.")
        room = self.capacity - self._storage.size
        if room <= 0:
            return _WAITS
        if start < 0:
            self._storage.put(attempt.components, start, stop)
            return None
        until = min(stop, start + room)
        self._storage.put(attempt.components, start, until)
        attempt.start = until
        return None if until == stop else _WAITS

    def _advance_dequeue(self, attempt: DequeueAttempt) -> Any:
        size = self._storage.size
        needed = attempt.wanted - attempt.taken
        count = min(needed, size if self.is_closed else max(size - self._spare, 0))
        if self.is_closed and count < needed and not (attempt.up_to and attempt.taken + count):
            self._storage.put_back(attempt.chunks)
            kind = "FIFOQueue" if attempt.single and self.kind == "PaddingFIFOQueue" else self.kind
            return errors.OutOfRangeError(
                None,
                None,
                f"{kind} '{self.name}' is closed and has insufficient elements "
                f"(requested {needed}, current size {size})",
            )
        if count:
            attempt.chunks += self._storage.take(count)
            attempt.taken += count
        return None if count == needed or self.is_closed else _WAITS

    # ---- the ends of attempts, without the lock

    @staticmethod
    def _settle(finished: list[tuple[Attempt, BaseException | None]]) -> None:
        for attempt, error in finished:
            attempt.finish(error)

    def _register(self, step: Any, attempt: Attempt) -> None:
        remove = step.on_cancel(lambda: self._cancel(attempt))
        with self._lock:
            if not attempt.is_settled:
                attempt.remove = remove
                return
        remove()

    def _cancel(self, attempt: Attempt) -> None:
        """The step of `attempt` ends early: it leaves the line as if it had not been there."""
        with self._lock, torch.inference_mode():
            if attempt.is_settled:
                return
            attempt.is_settled = True
            if isinstance(attempt, DequeueAttempt):
                del self._dequeues[attempt]
                self._storage.put_back(attempt.chunks)
                what = "Dequeue"
            else:
                del self._enqueues[attempt]
                what = "Close" if isinstance(attempt, CloseAttempt) else "Enqueue"
            finished = self._serve()
        attempt.finish(_cancelled(f"{what} operation was cancelled"))
        with torch.inference_mode():
            self._settle(finished)


_WAITS: Any = object()


def _nobody(outputs: Any, error: Any) -> None:
    """Is told how an attempt ended whose caller knows."""


def _settled(line: OrderedDict[Attempt, None], what: str) -> list[tuple[Attempt, BaseException | None]]:
    """Ends all attempts of a line."""
    error = _cancelled(f"{what} operation was cancelled")
    ended: list[tuple[Attempt, BaseException | None]] = [(attempt, error) for attempt in line]
    for attempt in line:
        attempt.is_settled = True
    line.clear()
    return ended


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _cancelled(message: str) -> errors.CancelledError:
    return errors.CancelledError(None, None, message)


def _mismatch(i: int, dims: Dims, component: Any) -> errors.InvalidArgumentError:
    return _invalid(
        f"Shape mismatch in tuple component {i}. "
        f"Expected {format_dims(dims)}, got {format_dims(tuple(component.shape))}"
    )
