"""`ClusterDescription`: the jobs of a cluster and the program of its tasks, wherever they will run.

    >>> cluster = ClusterDescription({"ps": 1, "worker": 2}, Program("train.py"))
    >>> [str(task) for task in cluster.tasks]
    ['ps/0', 'worker/0', 'worker/1']
    >>> cluster.addresses_by_job(dict(zip(cluster.tasks, ["a:1", "b:1", "c:1"])))
    {'ps': ['a:1'], 'worker': ['b:1', 'c:1']}

The jobs are those of Estimators: `ps` tasks hold variables and serve, `worker` tasks train, at most one
`chief` (or, in older programs, `master`) trains and leads, an `evaluator` evaluates checkpoints and is no
part of the cluster: nobody connects to it. Jobs of other names are the program's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["ClusterDescription", "Program", "Task", "parse_cluster", "parse_job_count"]

EVALUATOR = "evaluator"
PASSIVE_JOBS = frozenset({"ps"})
_ALONE = ("chief", "master", EVALUATOR)
_JOB_NAME = re.compile(r"[A-Za-z]\w*\Z")
_ORDER = {"ps": 0, "chief": 1, "master": 1, "worker": 2, EVALUATOR: 4}


@dataclass(frozen=True)
class Task:
    """One task of a cluster."""

    job: str
    index: int

    def __str__(self) -> str:
        return f"{self.job}/{self.index}"


@dataclass(frozen=True)
class Program:
    """What a task runs.

    Args:
        path: a Python file, or a module's name with `as_module`. "" for no program: the task is a plain
            server, to which other programs connect.
        arguments: its arguments, in which `{job}`, `{task}`, `{ps_hosts}` … stand for the task's own.
        with_flags: appends ``--job_name``, ``--task_index`` and the hosts, for programs that read them.
        runner: the command that runs a program; None for `flowstone run` of the Python in use.
    """

    path: str
    arguments: tuple[str, ...] = ()
    as_module: bool = False
    with_flags: bool = False
    runner: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ClusterDescription:
    """The jobs of a cluster with the number of their tasks, and what they run.

    Args:
        jobs: the number of tasks by job.
        program: what each task runs.
        restarts: how often a task that died is started again.
        threads: the threads of each task's kernels; None divides the processor's cores among the tasks.
        passive_jobs: jobs that serve the others and are ended when these have ended.

    Raises ValueError for a cluster that cannot be.
    """

    jobs: Mapping[str, int]
    program: Program
    restarts: int = 0
    threads: int | None = None
    passive_jobs: frozenset[str] = PASSIVE_JOBS

    def __post_init__(self) -> None:
        for job, count in self.jobs.items():
            if not _JOB_NAME.match(job):
                raise ValueError(f"a job's name has letters, digits and _, and begins with a letter: {job!r}")
            if count < 0:
                raise ValueError(f"the job {job} cannot have {count} tasks")
            if job in _ALONE and count > 1:
                raise ValueError(f"a cluster has at most one {job}, not {count}")
        if self.jobs.get("chief") and self.jobs.get("master"):
            raise ValueError("a cluster is led by a chief or, in older programs, by a master, not by both")
        if not any(count for job, count in self.jobs.items() if job != EVALUATOR):
            raise ValueError("the cluster has no tasks")
        if self.restarts < 0:
            raise ValueError(f"a task cannot be restarted {self.restarts} times")

    @property
    def tasks(self) -> list[Task]:
        """All tasks, in the order in which they are started: who serves comes first."""
        jobs = sorted(self.jobs, key=lambda job: _ORDER.get(job, 3))
        return [Task(job, index) for job in jobs for index in range(self.jobs[job])]

    def is_passive(self, task: Task) -> bool:
        """Whether the task is ended when all others have ended. Where there are no others, or no program
        but plain servers, nobody ends the tasks but who started them."""
        others = any(count and job not in self.passive_jobs for job, count in self.jobs.items())
        return others and bool(self.program.path) and task.job in self.passive_jobs

    def addresses_by_job(self, addresses: Mapping[Task, str]) -> dict[str, list[str]]:
        """What `tf.train.ClusterSpec` takes: each job's addresses, without the evaluator's."""
        cluster: dict[str, list[str]] = {}
        for task in self.tasks:
            if task.job != EVALUATOR:
                cluster.setdefault(task.job, []).append(addresses[task])
        return cluster


def parse_job_count(text: str) -> tuple[str, int]:
    """The job and the count of ``trainer=2``. ValueError for other text."""
    job, separator, count = text.partition("=")
    if not separator or not count.isdecimal() or not _JOB_NAME.match(job):
        raise ValueError(f"write JOB=COUNT, such as trainer=2, not {text!r}")
    return job, int(count)


def parse_cluster(text: str) -> dict[str, list[str]]:
    """The addresses by job of ``ps=host0:2222;worker=host1:2222,host2:2222``. ValueError for other text.

    >>> parse_cluster("ps=a:1;worker=b:1,c:1")
    {'ps': ['a:1'], 'worker': ['b:1', 'c:1']}
    """
    cluster: dict[str, list[str]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        job, separator, addresses = part.partition("=")
        hosts = [address.strip() for address in addresses.split(",")]
        if not separator or not _JOB_NAME.match(job) or not _are_addresses(hosts):
            raise ValueError(
                f"write JOB=HOST:PORT,HOST:PORT;JOB=…, such as ps=h0:2222;worker=h1:2222, not {part!r}"
            )
        if job in cluster:
            raise ValueError(f"the cluster names the job {job} twice")
        cluster[job] = hosts
    if not cluster:
        raise ValueError("the cluster has no job")
    return cluster


def _are_addresses(hosts: Sequence[str]) -> bool:
    return all(re.fullmatch(r"[^\s:]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}", host) for host in hosts)
