"""A task's arguments: a program's with the task's own job, number and hosts in them.

    >>> cluster = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}
    >>> fill(["--job={job}", "--hosts={worker_hosts}"], Task("worker", 1), cluster)
    ['--job=worker', '--hosts=b:1,c:1']

Programs of TensorFlow's tutorials read flags instead; `flags` has them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from flowstone.distributed.launchers.cluster_description import Program, Task

__all__ = ["fill", "flags", "task_arguments"]

_PLACEHOLDER = re.compile(r"\{(job|task|([A-Za-z]\w*)_hosts)\}")
_CONVENTIONAL = ("ps", "worker", "chief", "master")


def task_arguments(program: Program, task: Task, cluster: Mapping[str, Sequence[str]]) -> list[str]:
    """The arguments of a task's program. ValueError for the hosts of a job that is not there."""
    filled = fill(program.arguments, task, cluster)
    if program.with_flags and filled == list(program.arguments):
        filled += flags(task, cluster)
    return filled


def fill(arguments: Sequence[str], task: Task, cluster: Mapping[str, Sequence[str]]) -> list[str]:
    """`arguments` with the placeholders replaced; other text in braces stays. `{ps_hosts}` of a cluster
    without this job is empty; a job that is neither there nor conventional is a ValueError."""

    def value(match: re.Match[str]) -> str:
        name, job = match.groups()
        if name == "job":
            return task.job
        if name == "task":
            return str(task.index)
        if job not in cluster and job not in _CONVENTIONAL:
            raise ValueError(f"{match[0]}: the cluster has no job {job}, but {', '.join(cluster)}")
        return ",".join(cluster.get(job, ()))

    return [_PLACEHOLDER.sub(value, argument) for argument in arguments]


def flags(task: Task, cluster: Mapping[str, Sequence[str]]) -> list[str]:
    """The flags that distributed programs read: `--job_name`, `--task_index`, `--ps_hosts`,
    `--worker_hosts`, and the hosts of other jobs of the cluster."""
    jobs = ["ps", "worker", *(job for job in cluster if job not in ("ps", "worker"))]
    hosts = [f"--{job}_hosts={','.join(cluster.get(job, ()))}" for job in jobs]
    return [f"--job_name={task.job}", f"--task_index={task.index}", *hosts]
