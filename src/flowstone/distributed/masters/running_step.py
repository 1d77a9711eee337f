"""`RunningStep`: carries out what a `MasterStep` says, from the thread that asked for the step.

The parts of other tasks are begun first, then that of the master's own task runs on the calling thread.
Answers come from the threads of the connections.
"""

from __future__ import annotations

import random
import threading
from _thread import allocate_lock
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flowstone.distributed.links.worker_links import Described, WorkerLink
from flowstone.distributed.masters import master_step
from flowstone.distributed.masters.master_step import MasterStep
from flowstone.distributed.task_names import from_task
from flowstone.distributed.workers.part_graphs import PartGraph
from flowstone.framework import errors
from flowstone.framework.types.dtypes import DType

__all__ = ["RegisteredPart", "RunningStep"]


class RegisteredPart(NamedTuple):
    """A part that its worker knows by `handle`."""

    graph: PartGraph
    handle: str


class RunningStep:
    """One step of these parts. `session`: the handle of the workers' sessions; `feeds`: values with their
    types, and `fetches`: the number of results, of the whole; `timeout_ms`: 0 for no limit; `described`: what
    is asked of the step besides; `kept`: the task that keeps what the step has left there until `let_go`."""

    def __init__(
        self,
        session: str,
        parts: Sequence[RegisteredPart],
        feeds: Sequence[tuple[Any, DType]],
        fetches: int,
        links: Mapping[str, WorkerLink],
        timeout_ms: int = 0,
        described: Described | None = None,
        kept: str = "",
    ) -> None:
        self.number = random.getrandbits(62) + 1
        self._session, self._feeds, self._links, self._timeout_ms = session, feeds, links, timeout_ms
        self.described, self._kept = described, kept
        self._given = parts  # which the workers keep as long as somebody has the list
        self._parts = {part.graph.task: part for part in parts}
        self._results: list[Any] = [None] * fetches
        self._machine = MasterStep(self._parts)
        self._lock = threading.Lock()
        self._over = allocate_lock()
        self._over.acquire()
        self._error: BaseException | None = None
        self._is_left = False  # the task `kept` is to forget the step, once it is let go

    def run(self) -> list[Any]:
        """Runs the step; returns its results, or raises its failure."""
        timer = None
        if self._timeout_ms:
            timer = threading.Timer(self._timeout_ms / 1e3, self._time_is_up)
            timer.daemon = True
            timer.start()
        try:
            self._follow(self._machine.begin())
            self._over.acquire()
        except BaseException:  # an interrupt of the waiting thread
            self.cancel(errors.CancelledError(None, None, "The step was interrupted."))
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if self._error is not None:
            raise self._error
        return self._results

    def cancel(self, error: BaseException) -> None:
        """Ends the step early, on all tasks."""
        with self._lock:
            instructions = self._machine.cancelled(error)
        self._follow(instructions)

    def let_go(self, is_over: bool = False) -> None:
        """Nobody will ask the task `kept` for anything more: it forgets the step, now or when the step
        ends. `is_over`: the step has ended, or will not begin."""
        with self._lock:
            kept, self._kept = self._kept, ""
            is_over = is_over or self._is_left
        if kept and is_over:
            self._links[kept].clean_up(self.number)

    def _keeps(self, task: str) -> bool:
        with self._lock:
            self._is_left = self._is_left or task == self._kept
            return task == self._kept

    def _time_is_up(self) -> None:
        self.cancel(errors.DeadlineExceededError(None, None, "Timed out: the step's time limit has passed."))

    def _follow(self, instructions: Sequence[master_step.Instruction]) -> None:
        own: str | None = None
        for each in instructions:
            if isinstance(each, master_step.RunPart):
                if self._links[each.task].is_local:
                    own = each.task  # after the others have been begun
                else:
                    self._begin(each.task)
            elif isinstance(each, master_step.AbortPart):
                self._links[each.task].fail(self.number, each.error)
            elif isinstance(each, master_step.CleanUp):
                if self._kept and self._keeps(each.task):
                    continue
                if self._parts[each.task].graph.sends or not self._machine.went_well:
                    self._links[each.task].clean_up(self.number)
            else:
                self._error = each.error
                self._over.release()
        if own is not None:
            self._begin(own)

    def _begin(self, task: str) -> None:
        part = self._parts[task]
        feeds = [self._feeds[i] for _, i in part.graph.feeds]

        def done(values: Any, error: BaseException | None) -> None:
            if error is None:
                for value, (_, i) in zip(values, part.graph.fetches):
                    self._results[i] = value
            with self._lock:
                if error is None:
                    instructions = self._machine.ended(task, None)
                else:
                    instructions = self._machine.failed(task, from_task(error, task))
            self._follow(instructions)

        self._links[task].run(
            self._session, part.handle, self.number, part.graph, feeds, done, self.described
        )
