"""`Step`: what belongs to one execution of a plan and is thrown away with it."""

from __future__ import annotations

import time

from flowstone.framework import errors


class Step:
    """One execution: its deadline (monotonic seconds, or None) and whether it was cancelled."""

    __slots__ = ("cancelled", "deadline")

    def __init__(self, timeout_ms: int = 0) -> None:
        self.deadline = time.monotonic() + timeout_ms / 1e3 if timeout_ms > 0 else None
        self.cancelled = False

    def check(self) -> None:
        """Raises DeadlineExceededError or CancelledError if the step must end."""
        if self.cancelled:
            raise errors.CancelledError(None, None, "Step was cancelled.")
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise errors.DeadlineExceededError(None, None, "Timed out: the step's time limit has passed.")


UNLIMITED = Step()
