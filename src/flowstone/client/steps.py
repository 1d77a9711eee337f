"""`Steps`: the running steps of one session, and the limits that its configuration sets for all of them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

from flowstone.framework import errors
from flowstone.runtime.code.tracing import Trace, TracedStep
from flowstone.runtime.steps.step import Step


class Steps:
    """Makes steps that end with the session; has the running ones as its length and items.

    `timeout_ms`: how long a step may take (0: no limit). `intra_op_threads`: how many threads a kernel may
    use (0: as many as torch has). `thread_pools`: how many RunOptions may choose from. `turns`: the lock that
    is held by the thread whose turn it is to repeat short steps (`repetition.py`). `common`: the step of all
    executions that need none of their own; it too is cancelled when the session ends.
    """

    def __init__(self, config: Any = None) -> None:
        """`config`: the session's ConfigProto, or None."""
        self.timeout_ms: int = 0 if config is None else config.operation_timeout_in_ms
        self.intra_op_threads: int = 0 if config is None else max(0, config.intra_op_parallelism_threads)
        self.thread_pools = 1 if config is None else max(1, len(config.session_inter_op_thread_pool))
        self.turns = threading.Lock()
        self.common = Step()
        self._under_way: weakref.WeakSet[Step] = weakref.WeakSet()
        self._has_ended = False

    def new(self, timeout_ms: int = 0, trace: Trace | None = None) -> Step:
        """A new step, which is cancelled when the session ends."""
        step = Step(timeout_ms) if trace is None else TracedStep(trace, timeout_ms)
        self._under_way.add(step)
        if self._has_ended:
            step.cancel(closed_error())
        return step

    def end(self) -> None:
        """Cancels the running steps, and all that begin later."""
        self._has_ended = True
        self.common.cancel(closed_error())
        for step in list(self._under_way):
            step.cancel(closed_error())

    def __len__(self) -> int:
        return len(self._under_way)

    def __iter__(self) -> Iterator[Step]:
        return iter(list(self._under_way))


def closed_error() -> errors.CancelledError:
    """The error of a step whose session was closed."""
    return errors.CancelledError(None, None, "Session has been closed.")
