"""A task's place in a cluster that `srun` has started, from Slurm's variables.

    srun -n 5 flowstone cluster task --slurm --ps 1 --workers 4 program.py

Slurm's processes are the tasks in the order of their ranks, those that serve first. Where each runs say
``SLURM_STEP_NODELIST`` (`nodes`) and ``SLURM_STEP_TASKS_PER_NODE`` (`tasks_per_node`), in blocks, or in
turn with ``SLURM_DISTRIBUTION=cyclic``. A task's port is the one that ``srun --resv-ports`` has reserved,
else one that follows from the job's number and the task's place on its machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from flowstone.distributed.launchers.cluster_description import ClusterDescription, Task

__all__ = ["from_slurm", "nodes", "tasks_per_node"]

_FIRST_PORT = 12_000
_PORTS_A_JOB = 64
_JOBS = 300  # whose ports lie apart, below those that a kernel gives to whoever asks
_LIST = re.compile(r"((?:[^,\[]|\[[^\]]*\])+)")


def from_slurm(
    description: ClusterDescription, variables: Mapping[str, str]
) -> tuple[dict[str, list[str]], Task]:
    """The cluster's addresses by job, and which task this process is.

    ValueError outside of a step of Slurm, and if it has not as many processes as the cluster has tasks.
    """
    tasks = description.tasks
    rank, count = (
        _number(variables, "SLURM_PROCID"),
        _number(variables, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
    )
    if count != len(tasks):
        raise ValueError(
            f"Slurm has started {count} processes and the cluster has {len(tasks)} tasks: srun -n"
        )
    places = _places(variables)
    if len(places) != count:
        raise ValueError(f"Slurm's variables place {len(places)} processes, not {count}")
    ports = _ports(variables)
    if max(local for _, local in places) >= len(ports):
        raise ValueError(f"Slurm places more tasks on a node than there are ports: {len(ports)}")
    addresses = {task: f"{node}:{ports[local]}" for task, (node, local) in zip(tasks, places)}
    return description.addresses_by_job(addresses), tasks[rank]


def _places(variables: Mapping[str, str]) -> list[tuple[str, int]]:
    """For each rank its node, and its number among the processes there."""
    counts = tasks_per_node(_text(variables, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"))
    names = nodes(_text(variables, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"))
    if len(counts) != len(names):
        raise ValueError(f"Slurm's variables name {len(names)} nodes and the processes of {len(counts)}")
    slots = [(node, local) for node, count in zip(names, counts) for local in range(count)]
    distribution = variables.get("SLURM_DISTRIBUTION", "").partition(":")[0].partition(",")[0]
    if distribution == "cyclic":
        slots.sort(key=lambda slot: slot[1])  # is stable: one a node, in turn
    elif distribution not in ("", "*", "block"):
        raise ValueError(f"srun -m {distribution}: use block or cyclic, by which a rank tells its node")
    return slots


def _ports(variables: Mapping[str, str]) -> list[int]:
    reserved = variables.get("SLURM_STEP_RESV_PORTS")
    if reserved:
        return [int(port) for port in nodes(f"[{reserved}]")]
    step = _number(variables, "SLURM_JOB_ID") % _JOBS
    first = _FIRST_PORT + step * _PORTS_A_JOB
    return list(range(first, first + _PORTS_A_JOB))


def nodes(text: str) -> list[str]:
    """The names in Slurm's short form.

    >>> nodes("login,n[08-10,12],r[1-2]n[8-9]")
    ['login', 'n08', 'n09', 'n10', 'n12', 'r1n8', 'r1n9', 'r2n8', 'r2n9']
    """
    return [name for part in _LIST.findall(text) for name in _expanded(part)]


def _expanded(part: str) -> Iterator[str]:
    before, bracket, rest = part.partition("[")
    if not bracket:
        yield part
        return
    ranges, _, after = rest.partition("]")
    for each in ranges.split(","):
        first, _, last = each.partition("-")
        for number in range(int(first), int(last or first) + 1):
            for end in _expanded(after):
                yield f"{before}{number:0{len(first)}d}{end}"


def tasks_per_node(text: str) -> list[int]:
    """The numbers of processes by node, in Slurm's short form.

    >>> tasks_per_node("2(x3),1")
    [2, 2, 2, 1]
    """
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if match is None:
            raise ValueError(f"Slurm's numbers of processes should be such as 2(x3),1 and are {text!r}")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts


def _text(variables: Mapping[str, str], *names: str) -> str:
    for name in names:
        if variables.get(name):
            return variables[name]
    raise ValueError(f"{names[0]} is not set: this is no step of Slurm; start it with srun")


def _number(variables: Mapping[str, str], *names: str) -> int:
    text = _text(variables, *names)
    if not text.isdecimal():
        raise ValueError(f"{names[0]} should be a number and is {text!r}")
    return int(text)
