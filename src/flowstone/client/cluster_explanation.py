"""`ClusterExplanation`: what became of one kind of step on a cluster, and what it waited for, as text and as
JSON. Of steps in one process `runtime/explaining/explanation.py` does the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.client.critical_path import Stretch, Wait, critical_path, waiting_text, waits
from flowstone.distributed.cluster_plans import ClusterPlan
from flowstone.distributed.workers.transfers import RECV_TENSOR
from flowstone.framework.declarations.operation import registry
from flowstone.runtime.explaining.explanation import rewrite_text
from flowstone.runtime.quantities import WIDTH, aligned, clipped, listed, time_text

_MOST_TYPES = 15
_RECEIVES = registry.with_role("receive", "host_receive")


class ClusterTrace:
    """A traced step: its RunMetadata, with the partition graphs, and how long it took the client."""

    def __init__(self, metadata: Any, duration_ms: float) -> None:
        self.metadata, self.duration_ms = metadata, duration_ms


class TypeOnTask(NamedTuple):
    """The nodes of an op type on a task: the runs and the milliseconds of a step; whether it waits."""

    task: str
    op: str
    runs: int
    ms: float
    waits: bool


class Waiting(NamedTuple):
    """What traces say: the time of a step in milliseconds (of untraced ones, if there are any), how many were
    traced, the ops on each task (medians), and path and waits of the step of median length."""

    step_ms: float
    traced_steps: int
    types: list[TypeOnTask]
    path: list[Stretch]
    waits: list[Wait]


class ClusterExplanation(NamedTuple):
    """One kind of step: names of `fetches` and `feeds`, how often it ran (`runs`) and how long in total,
    whether only its first run was traced; what the cluster made of it; what was measured (None: nothing)."""

    fetches: tuple[str, ...]
    feeds: tuple[str, ...]
    runs: int
    total_ms: float
    is_cold: bool
    plan: ClusterPlan
    measured: Waiting | None

    def gist(self, number: int) -> list[str]:
        """A few lines for the first screen."""
        lines = [clipped(listed(f"  [{number}] ", self.fetches), WIDTH)]
        tasks = len(self.plan.tasks)
        count = f"{self.runs} step{'s' if self.runs != 1 else ''} on {tasks} task{'s' if tasks != 1 else ''}"
        if self.measured is None:
            return [*lines, f"      {count}, not measured"]
        lines.append(f"      {count}, of {time_text(self.measured.step_ms)}")
        longest = sorted(self.measured.path, key=lambda each: -each.ms)[:3]
        shares = [f"{_named(each)} {time_text(each.ms)}" for each in longest]
        return [*lines, clipped(f"      waits for {', '.join(shares)}", WIDTH)]

    def text(self, with_plans: bool = False) -> str:
        """The kind explained; `with_plans`: with the graphs and the code of master and workers."""
        lines = [listed("step of ", self.fetches)]
        if self.feeds:
            lines.append(listed("  fed with ", self.feeds))
        about = f"  {self.runs} step{'s' if self.runs != 1 else ''}, {time_text(self.total_ms)}"
        if self.measured is not None:
            about += f"; {time_text(self.measured.step_ms)} a step, {self.measured.traced_steps} traced"
        blocks = [
            "\n".join([*lines, about]),
            self.plan.outline(),
            f"by the master\n{_rewrites(self.plan.log)}",
        ]
        blocks += [
            f"by {task.task}\n{_rewrites(task.plan.log)}" for task in self.plan.tasks if task.plan is not None
        ]
        if self.measured is not None:
            blocks += [measured_text(self.measured)]
        if with_plans:
            blocks.append(self.plan.text())
        return "\n\n".join(blocks)

    def record(self) -> dict[str, Any]:
        """The same as JSON has it."""
        measured = self.measured
        return {
            "fetches": list(self.fetches),
            "feeds": list(self.feeds),
            "steps": self.runs,
            "total_ms": self.total_ms,
            "only_first_step_traced": self.is_cold,
            "rewrites": [{"pass": name, "node": node, "reason": why} for name, node, why in self.plan.log],
            "graph": self.plan.graph,
            "placement": [each._asdict() for each in self.plan.placement],
            "transfers": [each._asdict() for each in self.plan.transfers],
            "tasks": [
                {**each._asdict(), "plan": None if each.plan is None else each.plan._asdict()}
                for each in self.plan.tasks
            ],
            "profile": None if measured is None else _measured_record(measured),
        }


def _rewrites(log: Sequence[tuple[str, str, str]]) -> str:
    return "\n".join("  " + line for line in rewrite_text(log).splitlines())


def _named(each: Stretch) -> str:
    if each.wait is not None:
        return f"{each.wait.source} -> {each.wait.target}"
    return f"{each.task}{'' if each.ops else ' (to begin)'}"


def _measured_record(measured: Waiting) -> dict[str, Any]:
    return {
        "step_ms": measured.step_ms,
        "traced_steps": measured.traced_steps,
        "ops": [each._asdict() for each in measured.types],
        "critical_path": [
            {**each._asdict(), "wait": None if each.wait is None else each.wait._asdict()}
            for each in measured.path
        ],
        "waits": [each._asdict() for each in measured.waits],
    }


# ---- what traces say


def measured_waiting(traces: Sequence[ClusterTrace], durations_ms: Sequence[float] = ()) -> Waiting:
    """Of at least one traced step, and the times of steps without a trace."""
    ordered = sorted(traces, key=lambda trace: trace.duration_ms)
    typical = ordered[(len(ordered) - 1) // 2].metadata
    step_ms = float(np.median(list(durations_ms) or [trace.duration_ms for trace in traces]))
    return Waiting(
        step_ms,
        len(traces),
        _types([trace.metadata for trace in traces]),
        critical_path(typical),
        waits(typical),
    )


def _types(steps: Sequence[Any]) -> list[TypeOnTask]:
    times: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * len(steps))
    runs: dict[tuple[str, str], int] = defaultdict(int)
    for i, metadata in enumerate(steps):
        for device in metadata.step_stats.dev_stats:
            task = device.device.rpartition("/device:")[0].replace("/replica:0", "")
            for run in device.node_stats:
                if run.node_name == RECV_TENSOR or "/stream" in device.device or not run.all_end_rel_nanos:
                    continue
                op = run.timeline_label.partition(" = ")[2].partition("(")[0] or "unknown"
                times[task, op][i] += run.all_end_rel_nanos / 1e6
                runs[task, op] += i == len(steps) - 1
    found = [
        TypeOnTask(task, op, runs[task, op], float(np.median(each)), op in _RECEIVES)
        for (task, op), each in times.items()
    ]
    return sorted(found, key=lambda each: -each.ms)


def measured_text(measured: Waiting) -> str:
    """Where the time goes, and what waited for whom."""
    rows: list[Sequence[str]] = [("op", "task", "runs", "time")]
    rows += [
        (f"{each.op} (waits)" if each.waits else each.op, each.task, str(each.runs), time_text(each.ms))
        for each in measured.types[:_MOST_TYPES]
    ]
    count = f"{measured.traced_steps} traced step{'s' if measured.traced_steps != 1 else ''}"
    lines = [f"where the time goes (median of {count})", *aligned(rows, left=2)]
    inside = sum(each.ms for each in measured.path)
    lines.append(
        f"  a step takes {time_text(measured.step_ms)}; from its first node to its last {time_text(inside)}"
    )
    return "\n".join(lines) + "\n\n" + waiting_text(measured.path, measured.waits)
