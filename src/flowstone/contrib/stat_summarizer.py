"""`tf.contrib.stat_summarizer`: tables of where the time and the memory of steps went."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import flowstone as tf

__all__ = ["StatSummarizer"]


@dataclass
class _Node:
    """What is known of a node over all steps; times in microseconds, memory in bytes."""

    name: str
    kind: str
    start: int
    first: int
    total: int = 0
    memory: int = 0
    steps: int = 0

    @property
    def average(self) -> float:
        return self.total / self.steps


_KIND = re.compile(r" = (\w+)\(")
_COLUMNS = ("[start]", "[first]", "[avg ms]", "[%]", "[cdf%]", "[mem KB]", "[times called]", "[Name]")


class StatSummarizer:
    """Sums up the statistics of steps, as `RunMetadata` has them.

    Args:
        args: at most one: the graph, a GraphDef or its bytes, which is not needed. TypeError for more.
    """

    def __init__(self, *args: Any) -> None:
        if len(args) > 1:
            raise TypeError("StatSummarizer takes at most one argument: a GraphDef.")
        self._nodes: dict[str, _Node] = {}
        self._steps: list[int] = []
        self._memory: list[int] = []

    def ProcessStepStats(self, step_stats: Any) -> None:
        """Adds the statistics of a step, a StepStats."""
        nodes = [node for device in step_stats.dev_stats for node in device.node_stats]
        begin = min((node.all_start_micros for node in nodes), default=0)
        time = memory = 0
        for node in nodes:
            kind = _KIND.search(node.timeline_label)
            duration = node.all_end_rel_micros or node.op_end_rel_micros
            size = sum(each.total_bytes for each in node.memory)
            start = node.all_start_micros - begin
            fresh = _Node(node.node_name, kind.group(1) if kind else "<>", start, duration)
            known = self._nodes.setdefault(node.node_name, fresh)
            known.total, known.steps = known.total + duration, known.steps + 1
            known.memory = size
            time, memory = time + duration, memory + size
        self._steps.append(time)
        self._memory.append(memory)

    def ProcessStepStatsStr(self, step_stats_str: bytes) -> None:
        """Adds the statistics of a step, the bytes of a StepStats."""
        step_stats = type(tf.RunMetadata().step_stats)()
        step_stats.ParseFromString(step_stats_str)
        self.ProcessStepStats(step_stats)

    def GetOutputString(self) -> str:
        """The tables: by the order of the run, by time, by memory, by kind of node; and the sums."""
        nodes = list(self._nodes.values())
        tables = [
            self._table("Run Order", sorted(nodes, key=lambda node: node.start)),
            self._table("Top by Computation Time", sorted(nodes, key=lambda node: -node.average)[:10]),
            self._table("Top by Memory Use", sorted(nodes, key=lambda node: -node.memory)[:10]),
            f"Number of nodes executed: {len(nodes)}\n" + self._kinds(nodes),
        ]
        times = f"Timings (microseconds): {_figures(self._steps)}"
        memory = f"Memory (bytes): {_figures(self._memory)}"
        return "\n".join([*tables, times, memory, f"{len(nodes)} nodes observed\n"])

    def PrintStepStats(self) -> None:
        """Writes the tables to the log."""
        tf.logging.info("%s", self.GetOutputString())

    def _table(self, title: str, nodes: list[_Node]) -> str:
        total = sum(node.average for node in self._nodes.values()) or 1.0
        rows = ["\t".join([f"{'[node type]':>24}", *(f"{column:>9}" for column in _COLUMNS)])]
        so_far = 0.0
        for node in nodes:
            share = 100 * node.average / total
            so_far += share
            figures = [f"{micros / 1000:9.3f}" for micros in (node.start, node.first, node.average)]
            shares = [f"{share:7.3f}%", f"{so_far:7.3f}%", f"{node.memory / 1000:9.3f}", f"{node.steps:9d}"]
            rows.append("\t".join([f"{node.kind:>24}", *figures, *shares, node.name]))
        return _titled(title, rows)

    def _kinds(self, nodes: list[_Node]) -> str:
        total = sum(node.average for node in nodes) or 1.0
        groups: dict[str, list[_Node]] = {}
        for node in nodes:
            groups.setdefault(node.kind, []).append(node)
        rows = [
            "\t".join(
                [
                    f"{'[Node type]':>24}",
                    "[count]",
                    "[avg ms]",
                    "[avg %]",
                    "[cdf %]",
                    "[mem KB]",
                    "[times called]",
                ]
            )
        ]
        so_far = 0.0
        for kind, own in sorted(groups.items(), key=lambda item: -sum(node.average for node in item[1])):
            time, memory = sum(node.average for node in own), sum(node.memory for node in own)
            so_far += 100 * time / total
            figures = [
                f"{len(own):9d}",
                f"{time / 1000:9.3f}",
                f"{100 * time / total:8.3f}%",
                f"{so_far:8.3f}%",
            ]
            rows.append(
                "\t".join(
                    [f"{kind:>24}", *figures, f"{memory / 1000:9.3f}", f"{sum(n.steps for n in own):9d}"]
                )
            )
        return _titled("Summary by node type", rows)


def _titled(title: str, rows: list[str]) -> str:
    bar = "=" * 30
    return "\n".join([f"{bar} {title} {bar}", *rows, ""])


def _figures(values: list[int]) -> str:
    if not values:
        return "count=0"
    text = f"count={len(values)} curr={values[-1]}"
    if len(values) == 1:
        return text
    return f"{text} min={min(values)} max={max(values)} avg={sum(values) / len(values):g}"
