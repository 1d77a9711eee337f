"""`ClusterOutcome`: how each task of a cluster ended, and the table that says so."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from flowstone.distributed.launchers.cluster_description import Task
from flowstone.distributed.launchers.supervision import Supervision

__all__ = ["ClusterOutcome", "TaskOutcome", "failure_text"]


@dataclass(frozen=True)
class TaskOutcome:
    """How a task ended: `status` is its last process's exit status, the negative number of the signal that
    ended it, or None if it was not started; `was_ended`: because the launcher said so; `duration_s` from its
    first start to its last end."""

    task: Task
    pid: int | None
    status: int | None
    was_ended: bool
    duration_s: float
    restarts: int

    @property
    def exit_text(self) -> str:
        """The status in words: "0", "3", "SIGKILL", "ended" for a task that ended as it was told."""
        if self.status is None:
            return "not started"
        if self.was_ended and self.status in (0, -signal.SIGTERM):
            return "ended"
        return _exit_text(self.status)


@dataclass(frozen=True)
class ClusterOutcome:
    """How a cluster ended: its exit status, that of the first failure, and its tasks."""

    exit_status: int
    tasks: Sequence[TaskOutcome]

    def table(self) -> str:
        """A line a task: its name, process, exit, seconds and restarts."""
        rows = [("task", "pid", "exit", "seconds", "restarts")]
        for each in self.tasks:
            pid = "-" if each.pid is None else str(each.pid)
            rows.append((str(each.task), pid, each.exit_text, f"{each.duration_s:.1f}", str(each.restarts)))
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = (
            "  ".join(
                cell.ljust(width) if column in (0, 2) else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths))
            )
            for row in rows
        )
        return "\n".join(line.rstrip() for line in lines)


def failure_text(task: Task, status: int, duration_s: float, supervision: Supervision) -> str:
    """What happened to a task that failed, and what follows from it."""
    text = f"{task} failed with exit {_exit_text(status)} after {duration_s:.1f} s"
    if supervision.is_ending:
        return f"{text}; the others are ended"
    return f"{text}; started again, {supervision.restarts[task]} of {supervision.allowed_restarts}"


def _exit_text(status: int) -> str:
    if status >= 0:
        return str(status)
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
