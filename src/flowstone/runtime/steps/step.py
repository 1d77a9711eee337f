"""`Step`: the state of one execution of a plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from flowstone.framework import errors
from flowstone.runtime.steps.rendezvous import Rendezvous


class Step:
    """One execution: its deadline (monotonic seconds, or None), and the error with which it must end early,
    if any.

    `rendezvous` is where its devices meet. Waiting kernels register with `on_cancel`; `cancel` may be called
    from any thread and tells them once.
    `turn` is a lock, or None: the thread that runs the step holds it, and releases it while it waits.
    `lull(seconds)` is set by a kernel that had to wait in a step with a turn, if the next step should come a
    little later: it returns when that time has come. `state(key, make)` gives objects that the kernels of the
    step share and that end with it, such as loops' stacks. `is_over` is set before a step is cancelled that
    has ended, so that what it kept is dropped.
    """

    __slots__ = (
        "__weakref__", "_callbacks", "_lock", "_states", "deadline", "error", "is_over", "lull", "rendezvous",
        "turn",
    )  # fmt: skip

    def __init__(self, timeout_ms: int = 0) -> None:
        self.deadline = time.monotonic() + timeout_ms / 1e3 if timeout_ms > 0 else None
        self.error: BaseException | None = None
        self.is_over = False
        self.rendezvous = Rendezvous()
        self.turn: Any = None
        self.lull: Callable[[float], None] | None = None
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._states: dict[Any, Any] = {}
        self._lock = threading.Lock()

    @property
    def cancelled(self) -> bool:
        """Whether the step must end."""
        return self.error is not None

    def check(self) -> None:
        """Raises DeadlineExceededError or CancelledError if the step must end."""
        if self.error is not None:
            raise self.error
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise deadline_error()

    def cancel(self, error: BaseException | None = None) -> None:
        """Ends the step early with `error` (CancelledError if None); the first reason counts."""
        with self._lock:
            if self.error is not None:
                return
            self.error = error or errors.CancelledError(None, None, "Step was cancelled.")
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        self.rendezvous.cancel(self.error)
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Has `callback` called when the step is cancelled (at once if it is); returns a function that undoes
        this."""
        key = id(callback)
        with self._lock:
            if self.error is None:
                self._callbacks[key] = callback

                def remove() -> None:
                    with self._lock:
                        self._callbacks.pop(key, None)

                return remove
        callback()
        return lambda: None

    def state(self, key: Any, make: Callable[[], Any]) -> Any:
        """The step's own object for this key, made on first use."""
        with self._lock:
            if key not in self._states:
                self._states[key] = make()
            return self._states[key]


def deadline_error() -> errors.DeadlineExceededError:
    """The error of a step whose time limit has passed."""
    return errors.DeadlineExceededError(None, None, "Timed out: the step's time limit has passed.")


UNLIMITED = Step()
"""For plans whose steps need none of this."""
