"""Calls of several steps gathered into batches: what `Batch` and `BatchFunction` wait in.

A `Batcher` adds the rows of each call to the open batch. The batch is closed when it is full, when the next
call would not fit, or when its first call has waited for the timeout; then `run` gets its calls, and tells
each of them its outputs. Nothing holds a thread meanwhile.

>>> from types import SimpleNamespace
>>> step = SimpleNamespace(on_cancel=lambda callback: lambda: None)
>>> batcher = Batcher(2, 60.0, [], 10, lambda calls: [call.finish((len(calls),), None) for call in calls])
>>> for name in "ab":
...     batcher.add(step, lambda outputs, error, name=name: print(name, outputs), (torch.zeros(1, 2),))
a (2,)
b (2,)
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.queues.queue_attempts import Done

Values = tuple[Any, ...]


class BatchedCall:
    """One call of a step: `inputs`, whose rows are batched, `others`, which are not, and a random `id`."""

    __slots__ = ("_done", "_lock", "id", "inputs", "others", "remove", "rows", "step")

    def __init__(self, step: Any, done: Done, inputs: Values, others: Values) -> None:
        self.step, self.inputs, self.others = step, inputs, others
        self.id = secrets.randbits(64) - 2**63
        self.rows = _rows_of(inputs)
        self.remove: Callable[[], None] | None = None
        self._done: Done | None = done
        self._lock = threading.Lock()

    def finish(self, outputs: Values | None, error: BaseException | None) -> None:
        """Tells the step, once."""
        with self._lock:
            done, self._done = self._done, None
        if done is not None:
            if self.remove is not None:
                self.remove()
            done(outputs, error)


def _rows_of(inputs: Values) -> int:
    if any(x.ndim == 0 for x in inputs):
        shapes = ", ".join([str(list(x.shape)) for x in inputs])
        raise invalid(
            f"Batching input tensors must have at least one dimension, but their shapes are {shapes}"
        )
    if len({x.shape[0] for x in inputs}) != 1:
        sizes = [x.shape[0] for x in inputs]
        raise invalid(
            f"Batching input tensors supplied in a given op must have equal 0th-dimension size: {sizes}"
        )
    return int(inputs[0].shape[0])


class Batcher:
    """The open batch of one queue; safe for concurrent use.

    `limit`: rows of a batch; `timeout`: seconds; `sizes`: the numbers of rows that batches may have (rising,
    the last one `limit`; [] for any); `most`: how many batches may wait for `run` to end.
    """

    def __init__(
        self,
        limit: int,
        timeout: float,
        sizes: Sequence[int],
        most: int,
        run: Callable[[list[BatchedCall]], None],
    ) -> None:
        if sizes and any(b <= a for a, b in pairwise(sizes)):
            raise invalid(f"allowed_batch_sizes entries must be monotonically increasing: {list(sizes)}")
        if sizes and sizes[-1] != limit:
            raise invalid(
                f"final entry in allowed_batch_sizes must equal max_batch_size: {sizes[-1]}, {limit}"
            )
        self.limit, self.sizes = limit, sizes
        self._timeout, self._most, self._run = timeout, most, run
        self._lock = threading.Lock()
        self._open: list[BatchedCall] = []
        self._rows = self._running = 0
        self._released = False

    def add(self, step: Any, done: Done, inputs: Values, others: Values = ()) -> None:
        """Adds a call. InvalidArgumentError for inputs that do not fit, UnavailableError if too much
        waits."""
        call = BatchedCall(step, done, inputs, others)
        if call.rows > self.limit:
            raise invalid(f"Task size {call.rows} is larger than maximum input batch size {self.limit}")
        closed = []
        with self._lock:
            if self._released:
                raise _cancelled()
            if self._running >= self._most:
                raise errors.UnavailableError(None, None, "The batch scheduling queue is full")
            if self._rows + call.rows > self.limit:
                closed.append(self._close())
            self._open.append(call)
            self._rows += call.rows
            batch = self._open
            if self._rows == self.limit or not self._timeout:
                closed.append(self._close())
            elif len(batch) == 1:
                self._start_timer(batch)
        remove = step.on_cancel(lambda: self._cancel(call))
        call.remove = remove
        for calls in closed:
            self._finish(calls)

    def release(self) -> None:
        """Ends all calls with CancelledError: the session ends."""
        with self._lock:
            self._released = True
            calls = self._open
            self._open, self._rows = [], 0
        for call in calls:
            call.finish(None, _cancelled())

    def _close(self) -> list[BatchedCall]:
        calls, self._open, self._rows = self._open, [], 0
        self._running += bool(calls)
        return calls

    def _start_timer(self, batch: list[BatchedCall]) -> None:
        start_timer(self._timeout, self._end_of_wait, batch)

    def _end_of_wait(self, batch: list[BatchedCall]) -> None:
        with self._lock:
            if self._open is not batch:
                return
            calls = self._close()
        self._finish(calls)

    def _finish(self, calls: list[BatchedCall]) -> None:
        if not calls:
            return
        try:
            with torch.inference_mode():
                self._run(calls)
        except Exception as error:
            for call in calls:
                call.finish(None, error)
        finally:
            with self._lock:
                self._running -= 1

    def _cancel(self, call: BatchedCall) -> None:
        with self._lock:
            if call in self._open:
                self._open.remove(call)
                self._rows -= call.rows
        call.finish(None, _cancelled())

    def join(self, calls: list[BatchedCall]) -> tuple[list[Any], int]:
        """The batched inputs, padded with copies of the first row to an allowed size; and that size."""
        rows = sum([call.rows for call in calls])
        size = next((size for size in self.sizes if size >= rows), rows)
        return [
            _joined([call.inputs[i] for call in calls], size - rows) for i in range(len(calls[0].inputs))
        ], size


def _joined(parts: list[Any], missing: int) -> Any:
    if missing:
        first = next(part for part in parts if part.shape[0])[:1]
        parts = [*parts, *[first] * missing]
    try:
        return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else torch.cat(parts)
    except (RuntimeError, ValueError):
        shapes = ", ".join([str(list(part.shape)) for part in parts])
        raise invalid(f"Batched tensors must have the same shape behind dimension 0: {shapes}") from None


def start_timer(seconds: float, function: Callable[..., None], *arguments: Any) -> threading.Timer:
    """Has a thread call `function` after this time, unless the timer is cancelled."""
    timer = threading.Timer(seconds, function, arguments)
    timer.daemon = True  # it does not keep the process alive
    timer.start()
    return timer


def _cancelled() -> errors.CancelledError:
    return errors.CancelledError(None, None, "Batch operation was cancelled")
