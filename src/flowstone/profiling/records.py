"""What each node of a graph is, and what it did in the steps that a RunMetadata tells of.

Names, ops, inputs and shapes are the graph's; an OpLogProto adds floating-point operations, types and
lines; StepStats add times and bytes. Nodes that only a step has, such as those that rewriting made, are
records without inputs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from flowstone.profiling.float_operations import Shape

_LABEL = re.compile(r"\S+ = (?P<op>[^\s(]+)\(")

Dims = tuple[int | None, ...] | None


class Line(NamedTuple):
    """A line of Python that was running when a node was made."""

    file: str
    line: int
    function: str


class Costs(NamedTuple):
    """What nodes cost: times in microseconds, bytes, parameters, operations, and how many there are."""

    cpu_micros: int = 0
    accelerator_micros: int = 0
    bytes: int = 0
    peak_bytes: int = 0
    residual_bytes: int = 0
    output_bytes: int = 0
    params: int = 0
    float_ops: int = 0
    runs: int = 0
    definitions: int = 0

    @property
    def micros(self) -> int:
        """The time on host and accelerator."""
        return self.cpu_micros + self.accelerator_micros

    def __add__(self, other: Costs) -> Costs:  # type: ignore[override]
        return Costs._make(map(int.__add__, self, other))


class Span(NamedTuple):
    """When a node ran, in microseconds: where, the beginning, how long."""

    device: str
    start: int
    micros: int
    on_accelerator: bool = False


class Execution:
    """What one node did in one step, over all its runs."""

    def __init__(self) -> None:
        self.costs = Costs()
        self.devices: list[str] = []
        self.spans: list[Span] = []

    def add_run(self, stats: Any, device: str) -> None:
        """Adds a run that a NodeExecStats tells of."""
        micros = _micros(stats)
        temporary = stats.memory_stats.temp_memory_size
        persistent = stats.memory_stats.persistent_memory_size
        allocations = [each.tensor_description.allocation_description for each in stats.output]
        self.costs += Costs(
            cpu_micros=micros,
            bytes=sum(each.total_bytes for each in stats.memory) + temporary + persistent,
            peak_bytes=sum(each.peak_bytes for each in stats.memory) + temporary + persistent,
            residual_bytes=sum(each.live_bytes for each in stats.memory) + persistent,
            output_bytes=sum(each.allocated_bytes or each.requested_bytes for each in allocations),
            runs=1,
        )
        if device not in self.devices:
            self.devices.append(device)
        self.spans.append(Span(device, stats.all_start_micros, micros))

    def add_kernel(self, stats: Any, device: str) -> None:
        """Adds the time of its kernels on an accelerator."""
        micros = _micros(stats)
        self.costs += Costs(accelerator_micros=micros)
        self.spans.append(Span(device, stats.all_start_micros, micros, on_accelerator=True))


def _micros(stats: Any) -> int:
    """How long a run took; less than a microsecond counts as one, unless it is known that it took no time."""
    if stats.all_start_nanos and not stats.op_end_rel_nanos and not stats.op_end_rel_micros:
        return 0
    return max(int(stats.op_end_rel_micros), 1)


class Record:
    """A node: what it is, and what it did in each step, by the step's number."""

    def __init__(self, name: str, op: str) -> None:
        self.name, self.op = name, op
        self.own_types: set[str] = {op}
        self.inputs: list[str] = []
        self.input_shapes: dict[int, Dims] = {}
        self.shape: tuple[int, ...] | None = None  # of a variable or placeholder, -1 where it is not known
        self.data_format = ""
        self.float_ops = 0
        self.lines: tuple[Line, ...] = ()
        self.executions: dict[int, Execution] = {}

    @property
    def types(self) -> set[str]:
        """The op, the devices on which it ran, and the types of its OpLogProto."""
        return self.own_types.union(self.devices)

    @property
    def devices(self) -> list[str]:
        """On which devices it ran, in any step."""
        found = (device for execution in self.executions.values() for device in execution.devices)
        return list(dict.fromkeys(found))

    @property
    def params(self) -> int:
        """How many numbers the variable holds."""
        return 0 if self.shape is None or -1 in self.shape else math.prod(self.shape)

    def costs(self, step: int) -> Costs:
        """What it costs in a step, or on average of the steps in which it ran if `step` is -1."""
        if step < 0:
            seen = [execution.costs for execution in self.executions.values()]
        else:
            seen = [self.executions[step].costs] if step in self.executions else []
        means = [sum(column) // len(seen) for column in zip(*seen)] if seen else []
        costs = Costs(*means)
        return costs._replace(
            params=self.params, float_ops=self.float_ops * max(costs.runs, 1), definitions=1
        )


# ---- records of a graph


def graph_records(graph: Any, log: Any, known: Mapping[str, Shape]) -> dict[str, Record]:
    """The records of a graph's nodes by name, with what the OpLogProto says of them."""
    records = {op.name: _record(op, known) for op in graph.get_operations()}
    texts = dict(log.id_to_string)
    for entry in log.log_entries:
        record = records.get(entry.name)
        if record is None:
            continue
        record.float_ops = entry.float_ops or record.float_ops
        record.own_types.update(entry.types)
        if entry.code_def.traces:
            record.lines = tuple(
                Line(texts.get(each.file_id, ""), each.lineno, texts.get(each.function_id, ""))
                for each in entry.code_def.traces
            )
    return records


def _record(op: Any, known: Mapping[str, Shape]) -> Record:
    record = Record(op.name, op.type)
    record.inputs = [x.op.name for x in op.inputs] + [control.name for control in op.control_inputs]
    for index, x in enumerate(op.inputs):
        dims = x.dims
        record.input_shapes[index] = _shown(known.get(x.name, dims) if dims is None or None in dims else dims)
    for index, control in enumerate(op.control_inputs, len(op.inputs)):
        outputs = control.outputs
        record.input_shapes[index] = _shown(outputs[0].dims) if outputs else None
    if isinstance(shape := op.attributes.get("shape"), tuple):
        record.shape = tuple(-1 if n is None else int(n) for n in shape) or (1,)
    record.data_format = str(op.attributes.get("data_format", ""))
    return record


def _shown(dims: Dims) -> Dims:
    return dims if dims is None else (dims or (1,))  # a scalar is shown as one number


# ---- steps


def known_shapes(run_metadata: Any) -> dict[str, Shape]:
    """The shapes of a step's tensors, by tensor name; of a node that ran repeatedly those of its last run."""
    found: dict[str, Shape] = {}
    for device in run_metadata.step_stats.dev_stats:
        for node in device.node_stats:
            for output in node.output:
                shape = tuple(dim.size for dim in output.tensor_description.shape.dim)
                found[f"{node.node_name}:{output.slot}"] = shape
    return found


def add_step(records: dict[str, Record], step: int, run_metadata: Any) -> None:
    """Adds what the nodes did in a step; nodes that the graph lacks become records of their own."""
    streams = []
    for device in run_metadata.step_stats.dev_stats:
        name = device.device.lower()
        if "/stream:" in name:
            streams.append(device)
        elif "/device:" in name or name.rpartition("/")[2].partition(":")[0] in ("cpu", "gpu"):
            _add_runs(records, step, device.node_stats, name)
    for device in streams:
        if device.device.endswith("/stream:all"):
            _add_kernels(records, step, device)


def _add_runs(records: dict[str, Record], step: int, runs: Iterable[Any], device: str) -> None:
    for stats in runs:
        if not stats.all_start_micros:  # never started
            continue
        name = stats.node_name.partition(":")[0]
        if name in ("_SOURCE", "_SINK"):  # TensorFlow's marks for a step's begin and end
            continue
        record = records.get(name)
        if record is None:
            label = _LABEL.match(stats.timeline_label)
            record = records[name] = Record(name, label["op"] if label else name)
        record.executions.setdefault(step, Execution()).add_run(stats, device)


def _add_kernels(records: dict[str, Record], step: int, device: Any) -> None:
    for stats in device.node_stats:
        record = records.get(stats.node_name.partition(":")[0])
        if record is not None and stats.all_start_micros:
            execution = record.executions.setdefault(step, Execution())
            execution.add_kernel(stats, device.device.lower())
