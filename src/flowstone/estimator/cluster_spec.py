"""`ClusterSpec`: the tasks of a cluster by their jobs, with their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flowstone as tf

__all__ = ["ClusterSpec"]


class ClusterSpec:
    """The addresses of the tasks of jobs.

    Args:
        cluster: a ClusterSpec, a ClusterDef, or a dict from jobs to lists of addresses or to dicts from task
            indices to addresses.

    Raises TypeError for other things.
    """

    def __init__(self, cluster: Any) -> None:
        self._jobs: dict[str, dict[int, str]] = {}
        if isinstance(cluster, ClusterSpec):
            self._jobs = {job: dict(tasks) for job, tasks in cluster._jobs.items()}
        elif isinstance(cluster, Mapping):
            self._jobs = {str(job): _addresses(job, tasks) for job, tasks in cluster.items()}
        elif getattr(getattr(cluster, "DESCRIPTOR", None), "name", "") == "ClusterDef":
            self._jobs = {job.name: dict(job.tasks) for job in cluster.job}
        else:
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network "
                "addresses, or a `ClusterDef` protocol buffer"
            )

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()})"

    def as_dict(self) -> dict[str, Any]:
        """Lists of addresses by job; dicts by task index where indices are missing."""
        return {
            job: [tasks[index] for index in sorted(tasks)] if sorted(tasks) == [*range(len(tasks))] else tasks
            for job, tasks in sorted(self._jobs.items())
        }

    def as_cluster_def(self) -> Any:
        """The ClusterDef message."""
        message = tf.train.ClusterDef()
        for job, tasks in sorted(self._jobs.items()):
            message.job.add(name=job, tasks=tasks)
        return message

    @property
    def jobs(self) -> list[str]:
        """The jobs' names."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has; ValueError for an unknown job."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The indices of a job's tasks; ValueError for an unknown job."""
        return sorted(self._tasks(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """A task's address; ValueError for an unknown job or task."""
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job's tasks, None where an index is missing; ValueError for an unknown job."""
        tasks = self._tasks(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def _tasks(self, job: str) -> dict[int, str]:
        if job not in self._jobs:
            raise ValueError(f"No such job in cluster: {job!r}")
        return self._jobs[job]


def _addresses(job: Any, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, Mapping):
        return {int(index): str(address) for index, address in tasks.items()}
    if isinstance(tasks, (list, tuple)):
        return {index: str(address) for index, address in enumerate(tasks)}
    raise TypeError(f"The tasks for job {job!r} must be a list or dictionary from integers to strings.")
