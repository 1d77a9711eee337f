"""`MasterStep`: one step as its master sees it. A state machine without I/O.

The master has each task run its part, and waits for all. The first failure ends the step everywhere: the
other tasks are told to abort, and the step ends with that failure once all have answered. In the end every
task is told to clean up, so that nothing of the step stays with them.

    events           `begin`, `ended(task, results)`, `failed(task, error)`, `cancelled(error)`
    instructions     `RunPart(task)`, `AbortPart(task, error)`, `CleanUp(task)`, `Finish(results, error)`

A task answers each `RunPart` once, with `ended` or `failed`; what it answers after it was aborted counts no
more. `validate` checks what must hold, `story` lists what happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from flowstone.framework import errors

__all__ = ["AbortPart", "CleanUp", "Finish", "MasterStep", "RunPart"]

_WAITING, _RUNNING, _ENDED, _FAILED = "waiting", "running", "ended", "failed"


class RunPart(NamedTuple):
    """Have the task run its part."""

    task: str


class AbortPart(NamedTuple):
    """Have the task end its part early."""

    task: str
    error: BaseException


class CleanUp(NamedTuple):
    """Tell the task that the step is over."""

    task: str


class Finish(NamedTuple):
    """The step is over, with each task's results, or with an error."""

    results: dict[str, Any]
    error: BaseException | None


Instruction = RunPart | AbortPart | CleanUp | Finish


class MasterStep:
    """A step of the parts of `tasks`."""

    def __init__(self, tasks: Iterable[str]) -> None:
        self._state = dict.fromkeys(tasks, _WAITING)
        self._running = (
            0  # parts, counted since looking for them would take the square of the number of tasks
        )
        self._results: dict[str, Any] = {}
        self._error: BaseException | None = None
        self._is_over = False
        self._story: list[str] = []

    @property
    def went_well(self) -> bool:
        """Whether nothing has failed so far."""
        return self._error is None

    def begin(self) -> list[Instruction]:
        """The step begins."""
        self._story.append("begin")
        found: list[Instruction] = []
        for task in self._state:
            self._state[task] = _RUNNING
            self._running += 1
            found.append(RunPart(task))
        return found or self._finish()

    def ended(self, task: str, results: Any) -> list[Instruction]:
        """The task's part has ended well."""
        if self._state[task] is not _RUNNING:
            return []
        self._state[task] = _ENDED
        self._running -= 1
        self._results[task] = results
        self._story.append(f"{task} ended")
        return self._perhaps_finish()

    def failed(self, task: str, error: BaseException) -> list[Instruction]:
        """The task's part has failed, or the task cannot be reached."""
        if self._state[task] is not _RUNNING:
            return []
        self._state[task] = _FAILED
        self._running -= 1
        self._story.append(f"{task} failed: {type(error).__name__}")
        return self._ends_with(error) + self._perhaps_finish()

    def cancelled(self, error: BaseException) -> list[Instruction]:
        """The client, or a time limit, wants the step to end."""
        if self._is_over:
            return []
        self._story.append(f"cancelled: {type(error).__name__}")
        return self._ends_with(error)

    def validate(self) -> None:
        """AssertionError if the step is over while a part runs, or ended well without all results."""
        running = [task for task, state in self._state.items() if state is _RUNNING]
        assert len(running) == self._running, f"{self._running} parts are counted, but {running} run"
        assert not (self._is_over and running), f"the step is over, but {running} run"
        if self._is_over and self._error is None:
            assert set(self._results) == set(self._state), "results are missing"

    def story(self) -> list[str]:
        """What happened, in order."""
        return list(self._story)

    def _ends_with(self, error: BaseException) -> list[Instruction]:
        if self._error is not None:
            if not _is_follower(self._error) or _is_follower(error):
                return []
            self._error = error  # the cause came after what it caused
            return []
        self._error = error
        return [AbortPart(task, error) for task, state in self._state.items() if state is _RUNNING]

    def _perhaps_finish(self) -> list[Instruction]:
        return [] if self._running else self._finish()

    def _finish(self) -> list[Instruction]:
        self._is_over = True
        self._story.append("over")
        found: list[Instruction] = [CleanUp(task) for task in self._state]
        results = {} if self._error is not None else self._results
        return [*found, Finish(results, self._error)]


def _is_follower(error: BaseException) -> bool:
    """Whether another part's failure may have caused this one."""
    return isinstance(error, (errors.AbortedError, errors.CancelledError))
