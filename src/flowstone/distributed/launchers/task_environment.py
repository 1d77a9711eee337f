"""How a task learns its place: the environment variable ``TF_CONFIG``, JSON with the cluster and the task.

    >>> tf_config({"ps": ["a:1"], "worker": ["b:1"]}, Task("worker", 0))
    '{"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}'
    >>> parse_tf_config(_)
    ({'ps': ['a:1'], 'worker': ['b:1']}, Task(job='worker', index=0))

`tf.estimator.RunConfig`, `tf.contrib.learn.RunConfig` and cluster resolvers read it. A cluster with a
`master` also gets ``"environment": "cloud"``, by which `tf.contrib.learn` knows that the master leads.

Who may speak to the tasks is in their environment as well (`distributed/wire/cluster_security.py`), never on
a command line, which others can read.
"""

from __future__ import annotations

import json
import secrets
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from flowstone.distributed.launchers.cluster_description import EVALUATOR, Program, Task
from flowstone.distributed.launchers.program_arguments import task_arguments

__all__ = [
    "check_task",
    "parse_tf_config",
    "security_variables",
    "share_of_threads",
    "task_command",
    "task_variables",
    "tf_config",
    "tf_config_lines",
]

_TOKEN, _SECRETS, _NAME = (f"FLOWSTONE_CLUSTER_{each}" for each in ("TOKEN", "SECRETS", "NAME"))
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def tf_config(cluster: Mapping[str, Sequence[str]], task: Task) -> str:
    """The text of ``TF_CONFIG`` for a task."""
    value: dict[str, Any] = {
        "cluster": {job: list(hosts) for job, hosts in cluster.items()},
        "task": {"type": task.job, "index": task.index},
    }
    if "master" in cluster:
        value["environment"] = "cloud"
    return json.dumps(value)


def parse_tf_config(text: str) -> tuple[dict[str, list[str]], Task]:
    """The cluster and the task of ``TF_CONFIG``'s text. ValueError for other text, and for a task that the
    cluster does not have."""
    try:
        value = json.loads(text)
        cluster = {job: _hosts(hosts) for job, hosts in value["cluster"].items()}
        task = Task(value["task"]["type"], int(value["task"].get("index", 0)))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(
            'TF_CONFIG must be JSON such as {"cluster": {"worker": ["host:port"]}, '
            f'"task": {{"type": "worker", "index": 0}}}}: {type(error).__name__}: {error}'
        ) from None
    check_task(cluster, task)
    return cluster, task


def _hosts(hosts: Any) -> list[str]:
    if isinstance(hosts, dict):  # some tasks only, by their numbers
        hosts = [hosts.get(str(index), "") for index in range(max(map(int, hosts), default=-1) + 1)]
    return [str(host) for host in hosts]


def check_task(cluster: Mapping[str, Sequence[str]], task: Task) -> None:
    """ValueError for a task that the cluster does not have; an evaluator is outside it."""
    if task.job == EVALUATOR and task.job not in cluster:
        return
    if not 0 <= task.index < len(cluster.get(task.job, ())):
        jobs = ", ".join(f"{job} ({len(hosts)})" for job, hosts in cluster.items()) or "none"
        raise ValueError(f"the cluster has no task {task}; its jobs with their tasks: {jobs}")


def task_variables(
    cluster: Mapping[str, Sequence[str]], task: Task, threads: int | None, given: Mapping[str, str]
) -> dict[str, str]:
    """What a task's environment has beside `given`, the launcher's own: its place, output that is written at
    once, and its share of the threads, if there is one and nobody has said how many."""
    variables = {"TF_CONFIG": tf_config(cluster, task), "PYTHONUNBUFFERED": "1"}
    if threads is not None:
        variables |= {name: str(threads) for name in _THREAD_VARIABLES if name not in given}
    return variables


def security_variables(program: Program, given: Mapping[str, str]) -> dict[str, str]:
    """What the environment of all tasks says of the cluster's token and certificates: what `given` says, the
    launcher's own. If that is nothing, a token made for this cluster, by which its tasks alone know each
    other; but plain servers are for programs elsewhere, which could not know it."""
    found = {name: given[name] for name in (_SECRETS, _NAME) if given.get(name)}
    if _TOKEN in given:  # also an empty one, by which somebody says that there is none
        found[_TOKEN] = given[_TOKEN]
    if program.path and _TOKEN not in found and _SECRETS not in found:
        found[_TOKEN] = secrets.token_urlsafe(24)
    return found


def task_command(program: Program, task: Task, cluster: Mapping[str, Sequence[str]]) -> list[str]:
    """The command line of a task: its program, or a plain server."""
    flowstone = (sys.executable, "-m", "flowstone")
    if not program.path:
        return [*flowstone, "server"]
    module = ["-m"] if program.as_module else []
    runner = program.runner or (*flowstone, "run")
    return [*runner, *module, program.path, *task_arguments(program, task, cluster)]


def share_of_threads(threads: int | None, cores: int, tasks: int) -> int:
    """The threads of one task of several on a machine: `threads` if it is given."""
    return threads if threads is not None else max(1, cores // max(1, tasks))


def tf_config_lines(
    program: Program, tasks: Sequence[Task], cluster: Mapping[str, Sequence[str]], secrets_folder: str = ""
) -> list[str]:
    """A line for a shell for each task: ``TF_CONFIG``, where the secrets are if they are in a folder and,
    with a program, the command after it."""
    folder = [f"{_SECRETS}={shlex.quote(secrets_folder)}"] if secrets_folder else []
    lines = []
    for task in tasks:
        command = []
        if program.path:
            arguments = task_arguments(program, task, cluster)
            command = ["flowstone", "run", *(["-m"] if program.as_module else []), program.path, *arguments]
        setting = f"TF_CONFIG={shlex.quote(tf_config(cluster, task))}"
        lines.append(" ".join([setting, *folder, *map(shlex.quote, command)]))
    return lines
