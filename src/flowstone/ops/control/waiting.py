"""`WaitingList`: attempts on one object that wait, without a thread, until the object has changed.

An attempt is a function that does its work and returns its outputs, raises, or returns `WAITS` having changed
nothing. It is tried when it comes, and again after changes by others, under the object's lock; who waits is
told without it. Attempts of one *line* wait for the same, so they are served first come, first served, and
only the first is tried; attempts that wait for different things, such as the keys of a map, have lines of
their own. An attempt whose step is cancelled, or over time, leaves its line as if it had not been there.

>>> from types import SimpleNamespace
>>> step = SimpleNamespace(on_cancel=lambda callback: lambda: None)
>>> box, waiting = [], WaitingList("Take")
>>> waiting.start(step, lambda outputs, error: print("took", outputs), lambda: box.pop() if box else WAITS)
>>> waiting.change(lambda: box.append("a letter"))
took a letter
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.ops.queues.queue_attempts import Attempt, Done

WAITS: Any = type("Waits", (), {"__repr__": lambda self: "WAITS"})()


class _Wait(Attempt):
    """An attempt with the function that it tries; `result` or `error` once it is settled."""

    __slots__ = ("error", "line", "result", "try_it")

    def __init__(self, done: Done, try_it: Callable[[], Any], line: Hashable) -> None:
        super().__init__(done)
        self.try_it, self.line = try_it, line
        self.result: Any = None
        self.error: BaseException | None = None

    def outputs(self) -> Any:
        """What the function returned."""
        return self.result

    def advance(self) -> bool:
        """Tries it; whether it is settled now."""
        try:
            self.result = self.try_it()
        except Exception as error:
            self.error = error
        self.is_settled = self.error is not None or self.result is not WAITS
        return self.is_settled


class WaitingList:
    """The attempts on one object, and the lock under which the object is changed.

    `what` is what a cancelled attempt is called in its CancelledError.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.RLock()  # an attempt may end another, of a step that is cancelled
        self._lines: dict[Hashable, dict[_Wait, None]] = {}  # of sets that keep the order
        self._released = False

    def __len__(self) -> int:
        return sum(map(len, list(self._lines.values())))

    def start(self, step: Any, done: Done, try_it: Callable[[], Any], line: Hashable = None) -> None:
        """Makes an attempt for `step`, in this line: `done` is told its outputs, or its error, once."""
        wait = _Wait(done, try_it, line)
        with self._lock:
            if self._released:
                wait.error, wait.is_settled = self._cancelled(), True
                finished = [wait]
            elif line not in self._lines and wait.advance():
                finished = [wait] + ([] if wait.error else self._serve())
            else:
                self._lines.setdefault(line, {})[wait] = None
                finished = []
        _tell(finished)
        if not wait.is_settled:
            self._register(step, wait)

    def change(self, function: Callable[[], Any]) -> Any:
        """Calls `function` under the lock, then serves who waits; returns what it returned."""
        with self._lock:
            result = function()
            finished = self._serve()
        _tell(finished)
        return result

    def release(self) -> None:
        """Ends all attempts, now and later, with CancelledError: the object's container is dropped."""
        with self._lock:
            self._released = True
            finished = [wait for line in self._lines.values() for wait in line]
            self._lines.clear()
            for wait in finished:
                wait.error, wait.is_settled = self._cancelled(), True
        _tell(finished)

    # ---- under the lock

    def _serve(self) -> list[_Wait]:
        """Tries the first of each line until none gets any further; gives those that are settled."""
        finished: list[_Wait] = []
        moved = True
        while moved:
            moved = False
            for line in list(self._lines.values()):
                while line:
                    wait = next(iter(line))
                    if not wait.is_settled:
                        if not wait.advance():
                            break
                        finished.append(wait)
                        moved = moved or wait.error is None
                    self._leave(wait)
        return finished

    def _leave(self, wait: _Wait) -> None:
        line = self._lines.get(wait.line, {})
        line.pop(wait, None)
        if not line:
            self._lines.pop(wait.line, None)

    def _cancelled(self) -> errors.CancelledError:
        return errors.CancelledError(None, None, f"{self._what} operation was cancelled")

    # ---- cancellation

    def _register(self, step: Any, wait: _Wait) -> None:
        remove = step.on_cancel(lambda: self._cancel(wait))
        with self._lock:
            if not wait.is_settled:
                wait.remove = remove
                return
        remove()

    def _cancel(self, wait: _Wait) -> None:
        with self._lock, torch.inference_mode():
            if wait.is_settled:
                return
            wait.error, wait.is_settled = self._cancelled(), True
            self._leave(wait)
            finished = [wait, *self._serve()]
        _tell(finished)


def _tell(finished: list[_Wait]) -> None:
    for wait in finished:
        wait.finish(wait.error)
