"""The rendezvous of one step: where Sends leave what Receives take (white paper 3.2.2).

A key names the tensor, the two devices and the iteration. Whichever comes first waits for the other, without
blocking a thread. Values that are sent and never received, such as those of a loop's last, dead iteration,
are dropped with the step, or when it is cancelled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from flowstone.framework import errors


class Rendezvous:
    """Values and receivers by key; safe for concurrent use."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}
        self._receivers: dict[Hashable, Callable[..., None]] = {}
        self._error: BaseException | None = None
        self._lock = threading.Lock()

    def send(self, key: Hashable, value: Any) -> None:
        """Leaves a value. InternalError if one was sent under this key before."""
        with self._lock:
            receiver = self._receivers.pop(key, None)
            if receiver is None:
                if key in self._values:
                    raise errors.InternalError(None, None, f"Duplicate send of {key}")
                if self._error is None:
                    self._values[key] = value
        if receiver is not None:
            receiver((value,), None)

    def receive(self, key: Hashable, done: Callable[..., None]) -> None:
        """Calls ``done((value,), None)`` once there is one, or ``done(None, error)`` after `cancel`."""
        with self._lock:
            error = self._error
            if error is None and key not in self._values:
                self._receivers[key] = done
                return
            value = self._values.pop(key, None)
        done(None if error else (value,), error)

    def cancel(self, error: BaseException) -> None:
        """Ends all receivers, present and later ones, with `error`."""
        with self._lock:
            self._error = self._error or error
            receivers = list(self._receivers.values())
            self._receivers.clear()
            values, self._values = self._values, {}
        del values  # outside the lock: freeing a value may run code that takes the lock
        for done in receivers:
            done(None, error)
