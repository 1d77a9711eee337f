"""Requests that wait are joined along the first axis, run as one, and split again.

There is no thread: whoever comes to an idle queue runs at once, alone. Those who come while a step runs
wait; when it ends, the first of them leads: it takes with it those behind that have the same types and
shapes but for the first axis, up to `max_batch_size` rows. If they are fewer, it waits for more, no longer
than `timeout_s` after its own arrival. When a joined step fails, or gives something without a row for each
row fed, each request runs alone, so that only the bad one fails.

>>> import numpy as np
>>> batches = Batches(lambda arrays: [arrays[0] * 2], BatchOptions(max_batch_size=8))
>>> batches([np.array([1, 2])])
[array([2, 4])]
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["BatchOptions", "Batches"]

Array = np.ndarray[Any, Any]
Run = Callable[[Sequence[Array]], list[Array]]


class BatchOptions(NamedTuple):
    """At most this many rows in a step (1: requests are not joined), and how long the first waits for
    more."""

    max_batch_size: int = 1
    timeout_s: float = 0.0


class _Request:
    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays = arrays
        self.rows = len(arrays[0])
        self.kind = tuple([(array.dtype, array.shape[1:]) for array in arrays])
        self.arrived = time.monotonic()
        self.called = threading.Event()  # it is done, or it shall lead
        self.done = False
        self.result: list[Array] = []
        self.error: BaseException | None = None

    def run_alone(self, run: Run) -> None:
        try:
            self.result = run(self.arrays)
        except BaseException as error:  # raised again where the request was made
            self.error = error
        self.done = True

    def outcome(self) -> list[Array]:
        if self.error is not None:
            raise self.error
        return self.result


class Batches:
    """A function of lists of arrays, like `run`, that joins what waits while it runs."""

    def __init__(self, run: Run, options: BatchOptions) -> None:
        self._run, self._options = run, options
        self._changed = threading.Condition()
        self._waiting: list[_Request] = []
        self._busy = False

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        if not _can_be_joined(arrays):
            return self._run(arrays)
        request = _Request(arrays)
        if self._enters(request):
            batch = [request]
        else:
            request.called.wait()
            if request.done:
                return request.outcome()
            batch = self._gathered(request)
        try:
            self._run_together(batch)
        finally:
            self._hand_over()
        return request.outcome()

    def _enters(self, request: _Request) -> bool:
        with self._changed:
            if not self._busy:
                self._busy = True
                return True
            self._waiting.append(request)
            self._changed.notify()
            return False

    def _hand_over(self) -> None:
        with self._changed:
            if self._waiting:
                self._waiting[0].called.set()
            else:
                self._busy = False

    def _gathered(self, leader: _Request) -> list[_Request]:
        """Takes what runs with the leader out of the queue; waits for more while there is room and time."""
        with self._changed:
            while True:
                batch, full = self._fitting(leader)
                left = leader.arrived + self._options.timeout_s - time.monotonic()
                if full or left <= 0:
                    self._waiting = [each for each in self._waiting if each not in batch]
                    return batch
                self._changed.wait(left)

    def _fitting(self, leader: _Request) -> tuple[list[_Request], bool]:
        batch: list[_Request] = []
        room = max(self._options.max_batch_size, leader.rows)
        for each in self._waiting:
            if each.kind == leader.kind:
                if each.rows > room:
                    return batch, True
                batch.append(each)
                room -= each.rows
        return batch, room == 0

    def _run_together(self, batch: list[_Request]) -> None:
        if len(batch) == 1 or not self._joined(batch):
            for each in batch:
                each.run_alone(self._run)
        for each in batch:
            each.called.set()

    def _joined(self, batch: list[_Request]) -> bool:
        """Runs the requests as one step; whether that gave each its rows."""
        count = sum(each.rows for each in batch)
        try:
            columns = zip(*[each.arrays for each in batch], strict=True)
            results = self._run([np.concatenate(column) for column in columns])
        except Exception:  # each alone says whose it is
            return False
        if not all(result.ndim and len(result) == count for result in results):
            return False
        start = 0
        for each in batch:
            each.result = [result[start : start + each.rows] for result in results]
            each.done = True
            start += each.rows
        return True


def _can_be_joined(arrays: Sequence[Array]) -> bool:
    return bool(arrays) and all(array.ndim and len(array) == len(arrays[0]) > 0 for array in arrays)
