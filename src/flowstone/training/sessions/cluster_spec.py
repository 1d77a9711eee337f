"""`ClusterSpec`: the jobs of a cluster and the addresses of their tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowstone.framework.types.tensor_proto import messages

__all__ = ["ClusterSpec"]


class ClusterSpec:
    """The jobs of a cluster, each with the addresses of its tasks.

        tf.train.ClusterSpec({"ps": ["host0:2222"], "worker": {1: "host2:2222"}})

    Args:
        cluster: a dict from the names of jobs to lists of addresses, or to dicts from task numbers to
            addresses where only some are known; or a ClusterDef message; or another ClusterSpec.

    Raises TypeError for other things, ValueError for addresses that are no text.
    """

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            jobs: Mapping[str, Any] = cluster.as_dict()
        elif isinstance(cluster, Mapping):
            jobs = cluster
        elif hasattr(cluster, "job"):
            jobs = {job.name: dict(job.tasks) for job in cluster.job}
        else:
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, "
                "or a `ClusterDef` protocol buffer"
            )
        self._jobs = {_text(name): _tasks(_text(name), tasks) for name, tasks in jobs.items()}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __hash__(self) -> int:
        return hash(str(sorted(self._jobs.items())))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()})"

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def as_dict(self) -> dict[str, Any]:
        """The jobs by name: a list of addresses where the tasks are numbered from 0, else a dict."""
        return {
            name: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for name, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> Any:
        """The cluster as a ClusterDef message."""
        cluster = messages("cluster_pb2").ClusterDef()
        for name in sorted(self._jobs):
            job = cluster.job.add(name=name)
            for index, address in self._jobs[name].items():
                job.tasks[index] = address
        return cluster

    def num_tasks(self, job_name: str) -> int:
        """The number of a job's tasks. ValueError if there is no such job."""
        return len(self._tasks_of(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of a job's tasks, sorted. ValueError if there is no such job."""
        return list(self._tasks_of(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task. ValueError if there is no such job or task."""
        tasks = self._tasks_of(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """A job's addresses by task number, None for numbers without a task. ValueError if there is no such
        job."""
        tasks = self._tasks_of(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def _tasks_of(self, job_name: str) -> dict[int, str]:
        if job_name not in self._jobs:
            raise ValueError(f"No such job in cluster: {job_name!r}")
        return self._jobs[job_name]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _tasks(job: str, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, (list, tuple)):
        tasks = dict(enumerate(tasks))
    if not isinstance(tasks, Mapping):
        raise TypeError(f"The tasks for job {job!r} must be a list or a dictionary from integers to strings.")
    for index, address in tasks.items():
        if not isinstance(address, (str, bytes)):
            raise TypeError(f"Task address must be bytes or unicode string, but task {index} has {address!r}")
    return {index: _text(tasks[index]) for index in sorted(tasks)}
