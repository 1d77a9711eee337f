"""`Collectives`: where the collective operations of a process's steps meet, in memory.

A kernel offers its value (`join`) and is told its result later, from any thread; it holds none. Which offers
meet is decided by `CollectiveGroups`; the last one to come computes the results (`collective_values.py`). The
steps that take part are watched: one that fails tells the others. `distributed/links/collective_links.py` is
the same for the tasks of a cluster.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from torch._C import _InferenceMode

from flowstone.framework import errors
from flowstone.ops.collectives.offers import Offer
from flowstone.runtime.steps.collective_groups import CollectiveGroups, Instruction, Meet
from flowstone.runtime.steps.collective_values import results_of
from flowstone.runtime.steps.step import Step

__all__ = ["Collectives", "Done", "Participant"]

Done = Callable[..., None]  # called with the tuple of outputs and None, or None and an error


class Participant:
    """A step that takes part in collective operations, by its `number`. It ends with the step's memory."""

    __slots__ = ("_ended", "is_watched", "number")

    def __init__(self, number: int, ended: deque[int]) -> None:
        self.number, self._ended = number, ended
        self.is_watched = False

    def __del__(self) -> None:
        self._ended.append(self.number)


class Collectives:
    """The collective operations of one session, or of all sessions of a task. `task`: its name."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.local: Collectives = self  # where those of this task alone meet
        self._groups = CollectiveGroups()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._ended: deque[Any] = deque()  # steps that are over; a finaliser may not wait for the lock

    def join(self, step: Step, done: Done, offer: Offer, timeout_s: float = 0.0) -> None:
        """Offers a value. Later, or at once, ``done((result,), None)`` or ``done(None, error)``.

        `timeout_s`: after which the offer ends with DeadlineExceededError (0: it waits as long as the step).
        """
        number = self._participant(step).number
        timer = None
        if timeout_s > 0:
            timer = threading.Timer(timeout_s, self._time_is_up, (number, offer))
            timer.daemon = True
            timer.start()
        self._offer(number, _once(done, timer), offer)

    def end(self, error: errors.OpError) -> None:
        """Ends all that waits."""
        with self._lock:
            found = self._groups.fail_all(error)
        self._follow(found)

    def begin_program(self, task: str = "") -> None:
        """What failed before concerns nobody any more: a session begins, in `task` (this one by default)."""
        with self._lock:
            self._forget()
            self._groups.forget_failures(task or self.task)

    def __len__(self) -> int:
        """How many steps take part in something."""
        with self._lock:
            self._forget()
            return len(self._groups)

    # ---- steps

    def _participant(self, step: Step) -> Participant:
        found: Participant = step.state(self, lambda: Participant(next(self._numbers), self._ended))
        if not found.is_watched:
            found.is_watched = True
            watched, number = weakref.ref(step), found.number  # the step must not keep itself
            step.on_cancel(lambda: self._cancelled(number, watched()))
        return found

    def _cancelled(self, number: int, step: Step | None) -> None:
        if step is not None and step.is_over:
            return
        error = None if step is None else step.error
        if not isinstance(error, errors.OpError):
            error = errors.CancelledError(
                None, None, "The step ended early." if error is None else str(error)
            )
        self._fail(number, error)

    def _time_is_up(self, number: int, offer: Offer) -> None:
        self._fail(number, self._late(offer))

    def _late(self, offer: Offer) -> errors.OpError:
        with self._lock:
            names = ", ".join(self._groups.missing(offer)) or "others"
        return errors.DeadlineExceededError(
            None, None, f"The collective operation {offer.instance} of group {offer.group} waited for {names}"
        )

    # ---- what happens to offers; a task of a cluster asks another one

    def _offer(self, number: Any, report: Done, offer: Offer, task: str = "") -> None:
        with self._lock:
            self._forget()
            found = self._groups.join(number, task or self.task, report, offer)
        self._follow(found)

    def _fail(self, number: Any, error: errors.OpError) -> None:
        with self._lock:
            self._forget()
            found = self._groups.fail(number, error)
        self._follow(found)

    def _forget(self) -> None:
        while self._ended:
            self._groups.end(self._ended.popleft())

    def _follow(self, instructions: Sequence[Instruction]) -> None:
        """Does what the groups say; without the lock, since it may run what waited."""
        for each in instructions:
            if isinstance(each, Meet):
                self._meet(each)
            else:
                self._tell(each.ticket, None, each.error)

    def _meet(self, meeting: Meet) -> None:
        try:
            with _InferenceMode(True):
                results = results_of(meeting.offers)
        except Exception as error:
            failure = errors.InternalError(None, None, f"A collective operation failed: {error}")
            for ticket in meeting.tickets:
                self._tell(ticket, None, failure)
        else:
            for ticket, result in zip(meeting.tickets, results):
                self._tell(ticket, result, None)

    def _tell(self, ticket: Any, result: Any, error: errors.OpError | None) -> None:
        if error is None:
            ticket((result,), None)
        else:
            ticket(None, copy_of(error))


def copy_of(error: errors.OpError) -> errors.OpError:
    """The same error for another node."""
    kind: Any = type(error)
    made: errors.OpError = kind(None, None, error.message)
    return made


def _once(done: Done, timer: threading.Timer | None) -> Done:
    """Calls `done` the first time alone, and stops the timer."""
    left = [done]

    def report(outputs: Any, error: BaseException | None) -> None:
        try:
            told = left.pop()
        except IndexError:
            return
        if timer is not None:
            timer.cancel()
        told(outputs, error)

    return report
