"""What waited for whom in a traced step on several tasks, and the longest chain of such waits.

    path = critical_path(metadata)          # a RunMetadata with StepStats and partition graphs
    print(waiting_text(path, waits(metadata)))

The *critical path* leads from the end of the step back to its beginning: from each run of a node to what it
waited for last. That is one of its inputs, what its thread did before, or, of a Receive, the transfer and
then the Send on the other task. What the path does not contain could have been slower without making the
step longer. Times of different tasks are compared by the clocks that the master has aligned.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from flowstone.distributed.workers.transfers import RECV_TENSOR, seen_transfers
from flowstone.partition.send_receive import RECEIVE_TYPES, SEND_TYPES
from flowstone.runtime.quantities import WIDTH, aligned, bytes_text, clipped, time_text

_LABEL = re.compile(r"(?P<name>\S+) = (?P<op>[^\s(]+)\((?P<inputs>.*)\)$")
_MOST_WAITS = 8
_MOST_OPS = 4


class Wait(NamedTuple):
    """A Receive that waited: the tensor with its bytes, the tasks, the nodes, how long it `waited_ms`; of
    that, `behind_ms` until the Send began and `way_ms` on the way."""

    tensor: str
    size: int
    source: str
    target: str
    send: str
    receive: str
    waited_ms: float
    behind_ms: float
    way_ms: float


class Stretch(NamedTuple):
    """A part of the critical path: nodes of one `task` (`ops` with their milliseconds, and `idle_ms` between
    them), a transfer to it (`wait`), or, with neither, the time before its part began."""

    task: str
    ms: float
    ops: dict[str, float]
    idle_ms: float
    wait: Wait | None


class _Run:
    """A run of a node, in nanoseconds."""

    __slots__ = ("device", "end", "inputs", "name", "op", "start", "thread")

    def __init__(self, device: str, stats: Any) -> None:
        label = _LABEL.match(stats.timeline_label)
        self.device, self.name, self.thread = device, stats.node_name, stats.thread_id
        self.op = label["op"] if label else "unknown"
        self.inputs = label["inputs"].split(", ") if label and label["inputs"] else []
        self.start = stats.all_start_nanos
        self.end = self.start + stats.all_end_rel_nanos


class _Step:
    """The runs of a step, by what one looks for them by."""

    def __init__(self, metadata: Any) -> None:
        self.runs = [
            _Run(device.device, stats)
            for device in metadata.step_stats.dev_stats
            if "/stream" not in device.device
            for stats in device.node_stats
            if stats.node_name != RECV_TENSOR
        ]
        self.by_node: defaultdict[tuple[str, str], list[_Run]] = defaultdict(list)
        self.by_thread: defaultdict[tuple[str, int], list[_Run]] = defaultdict(list)
        for run in sorted(self.runs, key=lambda run: run.end):
            if run.end > run.start:  # what was there before the step is waited for by nobody
                self.by_node[run.device, run.name].append(run)
                self.by_thread[run.device, run.thread].append(run)
        self.sent = self._pairs(metadata)
        self.begin = min((run.start for run in self.runs), default=0)

    def _pairs(self, metadata: Any) -> dict[_Run, tuple[_Run, Wait, int]]:
        """Of each run of a Receive: the run of its Send, the wait, and when the tensor came."""
        ends: defaultdict[tuple[str, str, str], dict[bool, tuple[str, str]]] = defaultdict(dict)
        for graph in metadata.partition_graphs:
            for node in graph.node:
                if node.op in SEND_TYPES or node.op in RECEIVE_TYPES:
                    keys = ("tensor_name", "send_device", "recv_device")
                    tensor, source, target = (node.attr[key].s.decode() for key in keys)
                    ends[tensor, source, target][node.op in SEND_TYPES] = (node.device, node.name)
        seen = defaultdict(list)
        for each in seen_transfers(metadata.step_stats):
            seen[each.tensor, each.source, each.target].append(each)
        found = {}
        for way, both in ends.items():
            if len(both) < 2:
                continue
            ways = sorted(seen[way], key=lambda each: each.end)
            pairs = zip(self.by_node[both[True]], self.by_node[both[False]])
            for i, (send, receive) in enumerate(pairs):
                size, came = (ways[i].size, ways[i].end) if i < len(ways) else (0, receive.end)
                found[receive] = (send, _wait(way, size, send, receive, came), came)
        return found

    def last(self) -> _Run | None:
        """The run that ended last."""
        return max((run for run in self.runs if run.end > run.start), key=lambda run: run.end, default=None)

    def before(self, run: _Run) -> _Run | None:
        """What this run waited for last on its own device: an input, or what its thread did before."""
        found = [self._ended(self.by_thread[run.device, run.thread], run)]
        for text in run.inputs:
            name = text.removeprefix("^").rpartition(":")[0] or text.removeprefix("^")
            if run.op not in RECEIVE_TYPES:
                found.append(self._ended(self.by_node.get((run.device, name), ()), run))
        return max((each for each in found if each is not None), key=lambda each: each.end, default=None)

    @staticmethod
    def _ended(runs: Sequence[_Run], before: _Run) -> _Run | None:
        """The last of these that had ended when a run began."""
        i = bisect_right(runs, before.start, key=lambda run: run.end)
        while i and runs[i - 1] is before:
            i -= 1
        return runs[i - 1] if i else None


def _wait(way: tuple[str, str, str], size: int, send: _Run, receive: _Run, came: int) -> Wait:
    waited = receive.end - receive.start
    behind = min(max(send.start - receive.start, 0), waited)
    on_the_way = max(min(came, receive.end) - max(send.start, receive.start), 0)
    return Wait(
        way[0], size, _task(way[1]), _task(way[2]), send.name, receive.name,
        waited / 1e6, behind / 1e6, on_the_way / 1e6,
    )  # fmt: skip


def _task(device: str) -> str:
    return device.rpartition("/device:")[0].replace("/replica:0", "")


def waits(metadata: Any) -> list[Wait]:
    """The waits of all Receives from other tasks, the longest first."""
    found = [wait for _, wait, _ in _Step(metadata).sent.values() if wait.source != wait.target]
    return sorted(found, key=lambda wait: -wait.waited_ms)


def critical_path(metadata: Any) -> list[Stretch]:
    """The stretches of the critical path, the first in time first; empty for a step without a trace."""
    step = _Step(metadata)
    run, path = step.last(), _Path()
    while run is not None:
        sent = step.sent.get(run)
        before = step.before(run)
        if sent is not None and sent[2] > run.start:
            path.transfer(run, sent[0], sent[1])
            run, before = sent[0], step.before(sent[0])
            path.gap(run, before)
        else:
            path.node(run, before)
        if before is None:
            path.begin(run, step.begin)
        run = before
    return path.stretches()


class _Path:
    """Collects the stretches from the last to the first."""

    def __init__(self) -> None:
        self._found: list[Stretch] = []
        self._task, self._ops, self._idle = "", Counter[str](), 0

    def node(self, run: _Run, before: _Run | None) -> None:
        """A run of a node on its task, which began when `before` had ended."""
        if _task(run.device) != self._task:
            self._close()
            self._task = _task(run.device)
        self._ops[run.op] += run.end - run.start
        self.gap(run, before)

    def gap(self, run: _Run, before: _Run | None) -> None:
        """The time before a run that is not shown itself."""
        self._task = _task(run.device)
        self._idle += max(run.start - before.end, 0) if before is not None else 0

    def transfer(self, receive: _Run, send: _Run, wait: Wait) -> None:
        """The way of a tensor."""
        self._close()
        length = max(receive.end - send.start, 0) / 1e6
        self._found.append(Stretch(_task(receive.device), length, {}, 0.0, wait))

    def begin(self, run: _Run, begin: int) -> None:
        """The first run of its task that counts, in a step that began at `begin`."""
        self._close()
        length = (run.start - begin) / 1e6
        if length > 0:
            self._found.append(Stretch(_task(run.device), length, {}, length, None))

    def _close(self) -> None:
        if self._ops:
            ops = {op: length / 1e6 for op, length in self._ops.most_common()}
            idle = self._idle / 1e6
            self._found.append(Stretch(self._task, sum(ops.values()) + idle, ops, idle, None))
        self._task, self._ops, self._idle = "", Counter(), 0

    def stretches(self) -> list[Stretch]:
        """All, the first in time first."""
        self._close()
        return self._found[::-1]


# ---- text


def waiting_text(path: Sequence[Stretch], every_wait: Sequence[Wait]) -> str:
    """The critical path and the longest waits, as lines of at most 100 columns."""
    total = sum(each.ms for each in path)
    lines = [f"what waited for whom (critical path: {time_text(total)})"]
    for each in path:
        share = each.ms / total if total else 0
        lines.append(clipped(f"  {time_text(each.ms):>9}  {share:>4.0%}  {_described(each)}", WIDTH))
    shown = [wait for wait in every_wait if wait.waited_ms > 0][:_MOST_WAITS]
    if not shown:
        return "\n".join(lines)
    rows: list[Sequence[str]] = [
        ("tensor", "on", "for the Send of", "waited", "behind", "on its way", "bytes")
    ]
    rows += [
        (
            clipped(wait.tensor, 34), wait.target, wait.source, time_text(wait.waited_ms),
            time_text(wait.behind_ms), time_text(wait.way_ms), bytes_text(wait.size),
        )
        for wait in shown
    ]  # fmt: skip
    return "\n".join([*lines, "", "the longest waits of Receives", *aligned(rows, left=3)])


def _described(each: Stretch) -> str:
    if each.wait is None and not each.ops:
        return f"{each.task}  before its part began"
    if each.wait is None:
        ops = list(each.ops)
        more = f", … ({len(ops) - _MOST_OPS} more)" if len(ops) > _MOST_OPS else ""
        idle = f"; {time_text(each.idle_ms)} between them" if each.idle_ms else ""
        return f"{each.task}  {', '.join(ops[:_MOST_OPS])}{more}{idle}"
    wait = each.wait
    way = f"{wait.source} -> {wait.target}  {wait.tensor}"
    return f"{way}, {bytes_text(wait.size)}; waited for {time_text(wait.waited_ms)}"
