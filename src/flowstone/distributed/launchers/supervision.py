"""`Supervision`: who is started, restarted and ended in a cluster; a state machine without I/O.

Events are calls (`begin`, `ended`, `interrupt`); each returns instructions, `Start(task)` or `End(task)`, in
order. The state is

- `running`: the tasks that were started and have not ended, those that were told to end among them;
- `restarts`: how often each was started again;
- `is_ending`: all were told to end, and how they end no longer matters;
- `exit_status`: the cluster's, that of the first failure.

A task fails that ends with another status than 0, or is ended by a signal. It is restarted as often as
allowed; then the others are ended. When all but the passive tasks have ended, these are ended.

    >>> from flowstone.distributed.launchers.cluster_description import ClusterDescription, Program
    >>> cluster = ClusterDescription({"ps": 1, "worker": 1}, Program("p.py"), restarts=1)
    >>> supervision = Supervision(cluster)
    >>> supervision.begin()
    [Start(task=Task(job='ps', index=0)), Start(task=Task(job='worker', index=0))]
    >>> supervision.ended(Task("worker", 0), 1)
    [Start(task=Task(job='worker', index=0))]
    >>> supervision.ended(Task("worker", 0), 0)
    [End(task=Task(job='ps', index=0))]
    >>> supervision.ended(Task("ps", 0), -15), supervision.is_over, supervision.exit_status
    ([], True, 0)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flowstone.distributed.launchers.cluster_description import ClusterDescription, Task

__all__ = ["End", "Start", "Supervision", "exit_status_of"]


class Start(NamedTuple):
    """Start the task, for the first time or again."""

    task: Task


class End(NamedTuple):
    """Ask the task to end, and end it by force if it does not."""

    task: Task


Instruction = Start | End


class Supervision:
    """Decides for the tasks of one cluster."""

    def __init__(self, description: ClusterDescription) -> None:
        self._description = description
        self.running: list[Task] = []
        self.restarts = dict.fromkeys(description.tasks, 0)
        self.is_ending = False
        self.exit_status = 0

    @property
    def allowed_restarts(self) -> int:
        """How often each task may be started again."""
        return self._description.restarts

    @property
    def is_over(self) -> bool:
        """Whether no task runs."""
        return not self.running

    def begin(self) -> list[Instruction]:
        """The first instructions."""
        self.running = list(self._description.tasks)
        return [Start(task) for task in self.running]

    def ended(self, task: Task, status: int) -> Sequence[Instruction]:
        """A task has ended, with its exit status or the negative number of the signal that ended it."""
        self.running.remove(task)
        if self.is_ending:
            return []
        if status != 0:
            if self.restarts[task] < self.allowed_restarts:
                self.restarts[task] += 1
                self.running.append(task)
                return [Start(task)]
            return self.interrupt(exit_status_of(status))
        if all(self._description.is_passive(other) for other in self.running):
            return self.interrupt(0)
        return []

    def interrupt(self, exit_status: int) -> list[Instruction]:
        """Ends all that run; the cluster's exit status is this, if it has none yet."""
        self.is_ending = True
        self.exit_status = self.exit_status or exit_status
        return [End(task) for task in self.running]


def exit_status_of(status: int) -> int:
    """What a shell reports: a process that a signal has ended counts as 128 and the signal's number."""
    return 128 - status if status < 0 else status
