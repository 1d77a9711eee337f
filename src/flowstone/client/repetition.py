"""Repetition: runs one step again and again on one thread, as a queue runner does.

The plan is looked up once, and a program of one segment is called directly.

Threads that repeat short steps take turns. Only one of them can run Python at a time. If they competed for
the interpreter's lock, it would change hands at every kernel, which costs more than the steps. A thread that
waits in a kernel lets the others go on. Threads whose steps are long do not take part. A thread that found a
queue full goes on when there is room for many steps, since switching to it costs more than a step, too. The
team is left to the thread that trains (`Plan.shares_team`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from torch._C import _InferenceMode

from flowstone.client.session import BaseSession
from flowstone.runtime.code.failures import explain
from flowstone.runtime.code.generated_code import Segment
from flowstone.runtime.process import threads
from flowstone.runtime.steps.step import Step

_SECONDS = 0.005  # length of a turn
_SHORT = 10  # steps in a turn; a thread with fewer in `_LONG_TURNS` turns running takes no more turns
_LONG_TURNS = 3  # first steps are long, as are those while another thread has the interpreter's lock
_LULL = 0.001  # seconds at most before the step after one that waited


def repeat(session: BaseSession, operation: Any, should_stop: Callable[[], bool]) -> None:
    """Runs `operation` until `should_stop()`. Raises what a step raises, CancelledError once the session is
    closed.
    """
    plan = session.plan_of(operation)
    if plan is None or not isinstance(plan.program, Segment):
        run = session.make_callable(operation)
        while not should_stop():
            run()
        return
    steps = session.steps
    step = steps.new()
    try:
        with _InferenceMode(True):
            function, turn = plan.function, _Turn(steps.turns)
            count = steps.intra_op_threads or (1 if plan.one_thread or plan.shares_team else 0)
            threads.run_with(count, lambda: _repeat(function, step, turn, should_stop))
    except Exception as error:
        raise explain(error, plan.program) from None
    if step.error is not None:
        raise step.error


class _Turn:
    """A thread's turns: the `end` of the current one, and the `steps` made in it."""

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


def _spend(lull: Callable[[float], None], turn: _Turn) -> None:
    turn.release()
    try:
        lull(_LULL)
    finally:
        turn.acquire()


def _repeat(function: Callable[..., Any], step: Step, turn: _Turn, should_stop: Callable[[], bool]) -> None:
    now = time.perf_counter
    step.turn = turn
    long_turns = 0
    while long_turns < _LONG_TURNS:
        turn.acquire()
        try:
            while now() < turn.end:
                if should_stop() or step.error is not None:
                    return
                function(step)
                turn.steps += 1
                lull, step.lull = step.lull, None
                if lull is not None:
                    _spend(lull, turn)
            long_turns = long_turns + 1 if turn.steps < _SHORT else 0
        finally:
            turn.release()
        time.sleep(0)  # gives the lock to a thread that waits for it
    step.turn = None
    while not should_stop() and step.error is None:
        function(step)
