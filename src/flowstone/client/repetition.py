"""Repetition: one step again and again on one thread, as a queue runner needs it.

The plan is looked up once, and a program that is one segment is called without anything around it.

Threads that repeat short steps take turns. Only one of them can run Python at a time, and where they compete
for the interpreter's lock it goes to and fro at every kernel, which costs more than the steps. Whoever waits
in a kernel lets the others go on; threads whose steps are long do not take part.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from torch._C import _InferenceMode

from flowstone.client.session import BaseSession
from flowstone.runtime import threads
from flowstone.runtime.failures import explain
from flowstone.runtime.generated_code import Segment
from flowstone.runtime.step import Step

_SECONDS = 0.005  # of a turn
_SHORT = 10  # steps in a turn; with fewer, a thread takes turns no more


def repeat(session: BaseSession, operation: Any, should_stop: Callable[[], bool]) -> None:
    """Runs `operation` until `should_stop()`. Raises what a step raises, CancelledError once the session is
    closed.
    """
    plan = session.plan_of(operation)
    if plan is None or not isinstance(plan.segment, Segment):
        run = session.make_callable(operation)
        while not should_stop():
            run()
        return
    step = session.new_step()
    try:
        with _InferenceMode(True):
            function, turn = plan.segment.function, _Turn(session.turns)
            threads.run_with(session.intra_op_threads, lambda: _repeat(function, step, turn, should_stop))
    except Exception as error:
        raise explain(error, plan.segment) from None
    if step.error is not None:
        raise step.error


class _Turn:
    """A thread's turns; `end` of the present one, and the `steps` made in it."""

    __slots__ = ("_lock", "end", "steps")

    def __init__(self, lock: threading.Lock) -> None:
        self._lock, self.end, self.steps = lock, 0.0, 0

    def acquire(self) -> None:
        """Waits for the turn, and begins it."""
        self._lock.acquire()
        self.end, self.steps = time.perf_counter() + _SECONDS, 0

    def release(self) -> None:
        """Ends the turn."""
        self._lock.release()


def _repeat(function: Callable[..., Any], step: Step, turn: _Turn, should_stop: Callable[[], bool]) -> None:
    now = time.perf_counter
    step.turn = turn
    while True:
        turn.acquire()
        try:
            while now() < turn.end:
                if should_stop() or step.error is not None:
                    return
                function(step)
                turn.steps += 1
            if turn.steps < _SHORT:
                break
        finally:
            turn.release()
        time.sleep(0)  # lets a thread that waits have the lock
    step.turn = None
    while not should_stop() and step.error is None:
        function(step)
