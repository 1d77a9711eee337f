"""`Timeline`: a step's StepStats as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing.

    metadata = tf.RunMetadata()
    session.run(fetches, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    Path("step.json").write_text(Timeline(metadata.step_stats).generate_chrome_trace_format())

A device is a process of the trace with a row for each node that runs at the same time, and an arrow for each
tensor that goes from one row to another. With memory shown, every tensor is an object with its description,
and every allocator a curve. StepStats of TensorFlow are shown as TensorFlow shows them: times are absolute
microseconds. If all nodes have times in nanoseconds, as flowstone's do, these are shown, counted from the
first node's start.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_LABEL = re.compile(r"(?P<name>\S+) = (?P<op>[^\s(]+)\((?P<inputs>.*)\)$")
_COPIED = re.compile(r"/_\d+$")  # TensorFlow's partitioner adds this to the names of received tensors
_KERNELS = "/stream:all"  # the row of a GPU's kernels; the device's own row has the times of their launches


class AllocationMaximum(NamedTuple):
    """When an allocator held most: `timestamp` in microseconds, `num_bytes`, and the `tensors` by name."""

    timestamp: float
    num_bytes: int
    tensors: set[str]


class StepStatsAnalysis(NamedTuple):
    """A step as a trace, and the `AllocationMaximum` of each allocator by name."""

    chrome_trace: ChromeTrace
    allocator_maximums: dict[str, AllocationMaximum]


class ChromeTrace:
    """Events of the Trace Event format, metadata first."""

    def __init__(self) -> None:
        self._metadata: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []

    def add_process(self, name: str, pid: int) -> None:
        """Names a process."""
        event = {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}
        self._metadata.append(event)

    def add(self, ph: str, category: str, name: str, pid: int, tid: int, ts: float, **more: Any) -> None:
        """An event of phase `ph` at `ts` microseconds."""
        event = {"ph": ph, "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, **more}
        self._events.append(event)

    def format_to_string(self, pretty: bool = False) -> str:
        """The trace as JSON; `pretty` is with a line for each field."""
        trace = {"traceEvents": [*self._metadata, *self._events]}
        return json.dumps(trace, indent=4) if pretty else json.dumps(trace, separators=(",", ":"))


class _Run:
    """One run of a node: name, op and inputs as its label says, `start` and `end`, pid and row."""

    def __init__(self, stats: Any, is_kernel: bool, clock: _Clock) -> None:
        self.stats = stats
        label = _LABEL.match(stats.timeline_label)
        if label is not None:
            self.name, self.op = label["name"], label["op"]
            self.inputs = label["inputs"].split(", ") if label["inputs"] else []
        else:
            self.name, self.op, self.inputs = stats.node_name, "unknown", []
            if is_kernel and ":" in stats.node_name:
                self.name, _, self.op = stats.node_name.partition(":")
            elif stats.node_name == "RecvTensor":
                self.op = "RecvTensor"
        self.start, self.end = clock.times(stats)
        self.pid = self.row = 0


class _Clock:
    """Times of nodes: nanoseconds from the first node's start if all nodes have them, else microseconds."""

    def __init__(self, step_stats: Any) -> None:
        nodes = [node for device in step_stats.dev_stats for node in device.node_stats]
        self.is_fine = bool(nodes) and all(node.all_start_nanos for node in nodes)
        self._first = min((node.all_start_nanos for node in nodes), default=0)
        self.tick = 0.0 if self.is_fine else 1  # taken off an end, so that it precedes a start

    def times(self, node: Any) -> tuple[float, float]:
        if not self.is_fine:
            return node.all_start_micros, node.all_start_micros + node.all_end_rel_micros
        start = node.all_start_nanos - self._first
        return start / 1e3, (start + node.all_end_rel_nanos) / 1e3


class Timeline:
    """Draws a step as a trace of events.

    `step_stats`: the StepStats of a RunMetadata. `graph`: accepted because TensorFlow's has it; not used.
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._clock = _Clock(step_stats)
        self._step_stats = step_stats

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """The step in Chrome's Trace Event format, as JSON text.

        `show_dataflow`: arrows for tensors. `show_memory`: tensors as objects, and the memory of each
        allocator over time. `op_time`: when a node on a GPU is shown: while its launches were made
        ("schedule"), while its kernels ran ("gpu"), or both ("all", as is anything else).
        """
        analysis = self.analyze_step_stats(show_dataflow, show_memory, op_time)
        return analysis.chrome_trace.format_to_string(pretty=True)

    def analyze_step_stats(
        self, show_dataflow: bool = True, show_memory: bool = True, op_time: str = "schedule"
    ) -> StepStatsAnalysis:
        """The trace as an object, and when each allocator held most (only with `show_memory`)."""
        return _Analysis(self._step_stats, self._clock, op_time).make(show_dataflow, show_memory)


class _Analysis:
    def __init__(self, step_stats: Any, clock: _Clock, op_time: str) -> None:
        self.trace, self.tick = ChromeTrace(), clock.tick
        self.runs: list[_Run] = []
        self.producers: dict[str, list[_Run]] = {}
        self.trace.add_process("Allocators", 0)
        devices = []
        for i, device in enumerate(step_stats.dev_stats):
            what = "Transfers" if _is_of_transfers(device) else "Compute"
            self.trace.add_process(f"{device.device} {what}", 2 * i + 1)
            self.trace.add_process(f"{device.device} Tensors", 2 * i + 2)
            is_kernel = "/stream" in device.device or "/memcpy" in device.device
            runs = [_Run(node, is_kernel, clock) for node in device.node_stats]
            if what == "Transfers":
                for run in runs:
                    run.name = run.stats.timeline_label
            devices.append((device.device, runs))
        if op_time != "schedule":
            _move_to_kernels(devices, op_time)
        for i, (name, runs) in enumerate(devices):
            _assign_rows(runs, 2 * i + 1, clock.is_fine)
            self.runs += runs
            if "/stream" not in name:
                for run in runs:
                    self.producers.setdefault(run.name, []).append(run)

    def make(self, show_dataflow: bool, show_memory: bool) -> StepStatsAnalysis:
        tensors = _Tensors(self) if show_memory else None
        if tensors is not None:
            tensors.show_made()
        flows = 0
        for run in self.runs:
            arguments = {f"input{i}": name for i, name in enumerate(run.inputs)}
            self.trace.add(
                "X", "Op", run.op, run.pid, run.row, run.start,
                dur=_rounded(run.end - run.start), args={"name": run.name, "op": run.op, **arguments},
            )  # fmt: skip
            for name, source in self.sources(run):
                if show_dataflow and (source.pid, source.row) != (run.pid, run.row):
                    self.trace.add("s", "DataFlow", name, source.pid, source.row, source.end, id=flows)
                    self.trace.add("t", "DataFlow", name, run.pid, run.row, run.start, id=flows)
                    flows += 1
        return StepStatsAnalysis(self.trace, {} if tensors is None else tensors.show_memory())

    def sources(self, run: _Run) -> list[tuple[str, _Run]]:
        """The tensors that a run takes, by name, and which runs made them."""
        found: dict[str, _Run] = {}
        for text in run.inputs:
            name = _COPIED.sub("", text)
            source = self._latest(name.partition(":")[0], run)
            if source is not None and not name.startswith("^"):
                found[name] = source
        return list(found.items())

    def _latest(self, name: str, before: _Run) -> _Run | None:
        """The last run of the node `name` that had ended when `before` began; the first one if none had."""
        runs = self.producers.get(name, ())
        ended = [run for run in runs if run.end <= before.start]
        return ended[-1] if ended else runs[0] if runs else None


def _is_of_transfers(device: Any) -> bool:
    """Whether these are tensors on their way from other tasks, in a row of their own."""
    return bool(device.node_stats) and all(node.node_name == "RecvTensor" for node in device.node_stats)


def _assign_rows(runs: list[_Run], pid: int, may_touch: bool) -> None:
    """Gives each run the first row that is free when it starts. `may_touch`: a row is free again as soon as a
    run has ended; else one microsecond later, since times are rounded to whole ones."""
    ends: list[float] = []
    for run in runs:
        free = [row for row, end in enumerate(ends) if end < run.start or (may_touch and end == run.start)]
        run.pid, run.row = pid, free[0] if free else len(ends)
        if not free:
            ends.append(0)
        ends[run.row] = run.end


def _move_to_kernels(devices: list[tuple[str, list[_Run]]], op_time: str) -> None:
    """Replaces the time of a node's launches by that of its kernels, or adds the latter."""
    for stream, kernels in devices:
        if not stream.endswith(_KERNELS):
            continue
        spans: dict[str, tuple[float, float]] = {}
        for kernel in kernels:
            start, end = spans.get(kernel.name, (kernel.start, kernel.end))
            spans[kernel.name] = (min(start, kernel.start), max(end, kernel.end))
        for name, runs in devices:
            for run in runs if name.endswith(stream.removesuffix(_KERNELS)) else ():
                if run.name in spans:
                    start, end = spans[run.name]
                    run.start, run.end = (start if op_time == "gpu" else run.start, end)


class _Tensor:
    """A tensor's life: made by `run`, held until it is last taken, at `end`."""

    def __init__(self, name: str, run: _Run, description: Any) -> None:
        self.name, self.run, self.description = name, run, description
        self.taken: list[float] = []

    @property
    def end(self) -> float:
        """When the last run that takes it ended, but not before its own."""
        return max([self.run.end, *self.taken])


class _Tensors:
    """The tensors of a step, and the memory of allocators that follows from their lives."""

    def __init__(self, analysis: _Analysis) -> None:
        self._trace, self._tick = analysis.trace, analysis.tick
        self._tensors: list[_Tensor] = []
        by_run: dict[tuple[_Run, str], _Tensor] = {}
        for run in analysis.runs:
            for output in run.stats.output:
                name = f"{run.name}:{output.slot}" if output.slot else run.name
                tensor = by_run[run, name] = _Tensor(name, run, output.tensor_description)
                self._tensors.append(tensor)
        for run in analysis.runs:
            for name, source in analysis.sources(run):
                taken = by_run.get((source, name.removesuffix(":0")))
                if taken is not None:
                    taken.taken.append(run.end - self._tick)

    def show_made(self) -> None:
        """Adds an object for each tensor."""
        for i, tensor in enumerate(self._tensors):
            run = tensor.run
            text = str(tensor.description).replace('"', "")
            snapshot = {"snapshot": {"tensor_description": text}}
            self._trace.add("N", "Tensor", tensor.name, run.pid + 1, run.row, run.start, id=i)
            end = run.end - self._tick
            self._trace.add("O", "Tensor", tensor.name, run.pid + 1, run.row, end, id=i, args=snapshot)

    def show_memory(self) -> dict[str, AllocationMaximum]:
        """Adds the ends of the objects, and a curve for each allocator; returns the curves' maxima."""
        changes: dict[str, list[tuple[float, int, str]]] = {}
        held: dict[tuple[str, int], float] = {}  # the end of the life of a buffer's last tensor
        for i, tensor in enumerate(self._tensors):
            end = tensor.end
            self._trace.add("D", "Tensor", tensor.name, tensor.run.pid + 1, 0, end, id=i)
            allocation = tensor.description.allocation_description
            buffer = (allocation.allocator_name, allocation.ptr)
            start, size = tensor.run.start, allocation.requested_bytes
            if allocation.ptr and held.get(buffer, -1) >= start:  # it lies in the buffer of another tensor
                start, size = held[buffer], allocation.requested_bytes
                if end <= start:
                    continue
            if allocation.ptr:
                held[buffer] = end
            own = changes.setdefault(allocation.allocator_name, [])
            own += [(start, size, tensor.name), (end, -size, tensor.name)]
        return {name: self._curve(name, own) for name, own in sorted(changes.items())}

    def _curve(self, allocator: str, changes: list[tuple[float, int, str]]) -> AllocationMaximum:
        total, live = 0, set()
        most = AllocationMaximum(0, 0, set())
        for ts, size, name in sorted(changes):
            total += size
            live.add(name) if size > 0 else live.discard(name)
            if total > most.num_bytes:
                most = AllocationMaximum(ts, total, set(live))
            self._trace.add("C", "Memory", allocator, 0, 0, ts, args={allocator: total})
        return most


def _rounded(microseconds: float) -> float:
    return round(microseconds, 3)
