"""`WaitingList`: attempts on one object that wait, without a thread, until the object has changed.

An attempt is a function that does its work and returns its outputs, raises, or returns `WAITS` having changed
nothing. It is tried when it comes, and again after every change by others, under the object's lock; who
waits is told without it. With `in_order` an attempt is served only after all that came before it (gradients
are taken first come, first served); otherwise each waits for its own condition (the keys of a map). An
attempt whose step is cancelled, or over time, leaves the list as if it had not been there.

>>> from types import SimpleNamespace
>>> step = SimpleNamespace(on_cancel=lambda callback: lambda: None)
>>> box, waiting = [], WaitingList("Take")
>>> waiting.start(step, lambda outputs, error: print("took", outputs), lambda: box.pop() if box else WAITS)
>>> waiting.change(lambda: box.append("a letter"))
took a letter
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from flowstone.framework import errors
from flowstone.ops.queue_state import Attempt, Done

WAITS: Any = type("Waits", (), {"__repr__": lambda self: "WAITS"})()


class _Wait(Attempt):
    """An attempt with the function that it tries; `result` or `error` once it is settled."""

    __slots__ = ("error", "result", "try_it")

    def __init__(self, done: Done, try_it: Callable[[], Any]) -> None:
        super().__init__(done)
        self.try_it = try_it
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

    def __init__(self, what: str, in_order: bool = False) -> None:
        self._what, self._in_order = what, in_order
        self._lock = threading.RLock()  # an attempt may end another, of a step that is cancelled
        self._waits: dict[_Wait, None] = {}  # as a set that keeps the order
        self._released = False

    def __len__(self) -> int:
        return len(self._waits)

    def start(self, step: Any, done: Done, try_it: Callable[[], Any]) -> None:
        """Makes an attempt for `step`: `done` is told its outputs, or its error, once."""
        wait = _Wait(done, try_it)
        with self._lock:
            if self._released:
                wait.error, wait.is_settled = self._cancelled(), True
                finished = [wait]
            elif not (self._in_order and self._waits) and wait.advance():
                finished = [wait] + ([] if wait.error else self._serve())
            else:
                self._waits[wait] = None
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
            finished = list(self._waits)
            self._waits.clear()
            for wait in finished:
                wait.error, wait.is_settled = self._cancelled(), True
        _tell(finished)

    # ---- under the lock

    def _serve(self) -> list[_Wait]:
        """Tries all until none gets any further; gives those that are settled."""
        finished: list[_Wait] = []
        moved = True
        while moved:
            moved = False
            for wait in list(self._waits):
                if wait.is_settled:
                    continue
                if wait.advance():
                    self._waits.pop(wait, None)
                    finished.append(wait)
                    moved = moved or wait.error is None
                elif self._in_order:
                    break
        return finished

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
            del self._waits[wait]
            finished = [wait, *self._serve()]
        _tell(finished)


def _tell(finished: list[_Wait]) -> None:
    for wait in finished:
        wait.finish(wait.error)
