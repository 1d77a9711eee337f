"""`Steps`: the steps of one session that are under way, and what its configuration says of all its steps."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

from flowstone.framework import errors
from flowstone.runtime.step import Step
from flowstone.runtime.tracing import Trace, TracedStep


class Steps:
    """Makes steps that end with the session, and counts and iterates over those under way.

    `timeout_ms`: how long a step may take (0: as long as it does). `intra_op_threads`: how many it has for
    one kernel (0: as many as torch has). `thread_pools`: how many RunOptions may choose from. `turns`: whose
    holder repeats short steps (`repetition.py`).
    """

    def __init__(self, config: Any = None) -> None:
        """`config`: the session's ConfigProto, or None."""
        self.timeout_ms: int = 0 if config is None else config.operation_timeout_in_ms
        self.intra_op_threads: int = 0 if config is None else max(0, config.intra_op_parallelism_threads)
        self.thread_pools = 1 if config is None else max(1, len(config.session_inter_op_thread_pool))
        self.turns = threading.Lock()
        self._under_way: weakref.WeakSet[Step] = weakref.WeakSet()
        self._has_ended = False

    def new(self, timeout_ms: int = 0, trace: Trace | None = None) -> Step:
        """A step that ends with the session, for kernels that wait."""
        step = Step(timeout_ms) if trace is None else TracedStep(trace, timeout_ms)
        self._under_way.add(step)
        if self._has_ended:
            step.cancel(closed_error())
        return step

    def end(self) -> None:
        """Cancels those under way, and whatever begins from now on."""
        self._has_ended = True
        for step in list(self._under_way):
            step.cancel(closed_error())

    def __len__(self) -> int:
        return len(self._under_way)

    def __iter__(self) -> Iterator[Step]:
        return iter(list(self._under_way))


def closed_error() -> errors.CancelledError:
    """Why a step ends with its session."""
    return errors.CancelledError(None, None, "Session has been closed.")
