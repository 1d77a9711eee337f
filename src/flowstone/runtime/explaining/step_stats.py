"""Converts traces to StepStats, TensorFlow's message for what ran when in a step.

Each run of a node is a NodeExecStats: times in microseconds of the epoch and in nanoseconds, the thread, a
label ``name = Op(inputs)``, the type, shape and memory of each output, and the memory allocated for them
(none for an output that lies in an input's memory). A Receive is labelled as if the Send's value were its
input. Kernels on a GPU are listed a second time, under the device's name with ``/stream:all``, when they ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.types.tensor_proto import messages
from flowstone.partition.send_receive import RECEIVES
from flowstone.runtime.code.tracing import Buffer, Event, Trace

Nodes = Mapping[str, Mapping[str, PlanNode]]  # device name -> node name -> the node as it was partitioned


def step_stats(trace: Trace, nodes: Nodes) -> Any:
    """The StepStats of a finished trace: devices by name, their nodes by start."""
    message = messages("step_stats_pb2").StepStats()
    by_device: dict[str, list[Event]] = {device: [] for device in sorted(nodes)}
    for event in sorted(trace.events, key=lambda event: event.start):
        by_device.setdefault(event.device, []).append(event)
    addresses = {device: _addresses(events) for device, events in by_device.items()}
    for device, events in by_device.items():
        own = message.dev_stats.add(device=device)
        elsewhere = set().union(*(found for other, found in addresses.items() if other != device))
        writer = _Writer(trace, nodes.get(device, {}), _allocator(device), elsewhere)
        for event in events:
            writer.write(event, own.node_stats.add())
            own.thread_names[event.thread] = trace.thread_names[event.thread]
    for device, events in by_device.items():
        _write_kernels(trace, device, events, message)
    return message


def is_computed(trace: Trace, event: Event) -> bool:
    """Whether the node of an event was computed in the step; other values existed before."""
    return event.start != trace.begin or event.end != trace.begin


def _addresses(events: Iterable[Event]) -> set[int]:
    return {buffer.address for event in events for buffer in event.outputs if buffer is not None}


def _allocator(device: str) -> str:
    kind, _, number = device.rpartition("/device:")[2].partition(":")
    return "cpu" if kind == "CPU" else f"{kind}_{number}"


def _write_kernels(trace: Trace, device: str, events: Iterable[Event], message: Any) -> None:
    ran = [event for event in events if event.kernels is not None]
    if not ran:
        return
    own = message.dev_stats.add(device=f"{device}/stream:all")
    for event in ran:
        assert event.kernels is not None
        stats = own.node_stats.add(node_name=f"{event.node.name}:{event.node.type}")
        stats.timeline_label = stats.node_name
        start, end = event.kernels
        _write_times(stats, trace.epoch, start, start, end)


def _write_times(stats: Any, epoch: int, ready: int, start: int, end: int) -> None:
    begin, length = start + epoch, end - start
    stats.scheduled_nanos, stats.scheduled_micros = ready + epoch, (ready + epoch) // 1000
    stats.all_start_nanos, stats.all_start_micros = begin, begin // 1000
    stats.op_end_rel_nanos = stats.all_end_rel_nanos = length
    stats.op_end_rel_micros = stats.all_end_rel_micros = (begin + length) // 1000 - begin // 1000


class _Writer:
    """Writes the events of one device in their order; remembers the memory of values by ``name:index``.

    `elsewhere`: addresses of values of other devices; received values may lie there.
    """

    def __init__(
        self, trace: Trace, nodes: Mapping[str, PlanNode], allocator: str, elsewhere: set[int]
    ) -> None:
        self._trace, self._nodes, self._allocator = trace, nodes, allocator
        self._elsewhere = elsewhere
        self._places: dict[str, tuple[int, int]] = {}  # the address and the number of the allocation
        self._allocations = 0

    def write(self, event: Event, stats: Any) -> None:
        node = self._nodes.get(event.node.name, event.node)
        stats.node_name, stats.timeline_label = node.name, label(node)
        stats.thread_id = event.thread
        _write_times(stats, self._trace.epoch, event.ready, event.start, event.end)
        shared = dict(self._input_places(node))
        taken = self._elsewhere if node.declaration.role in RECEIVES else shared
        total = 0
        for index, (output, buffer) in enumerate(zip(node.outputs, event.outputs)):
            if buffer is None:
                continue
            number = shared.get(buffer.address, 0)
            if buffer.address and not number:
                self._allocations += 1
                number = self._allocations
                if buffer.address not in taken and not node.declaration.aliases:
                    total += buffer.allocated
            self._places[f"{node.name}:{index}"] = (buffer.address, number)
            self._write_output(output, buffer, number, stats.output.add(slot=index))
        if not is_computed(self._trace, event):
            stats.memory_stats.persistent_memory_size = 0 if node.is_feed else total
        elif total:
            stats.memory.add(
                allocator_name=self._allocator, total_bytes=total, peak_bytes=total, live_bytes=total
            )

    def _input_places(self, node: PlanNode) -> Iterable[tuple[int, int]]:
        return [self._places[x.name] for x in node.inputs if x.name in self._places]

    def _write_output(self, output: PlanOutput, buffer: Buffer, number: int, message: Any) -> None:
        description = message.tensor_description
        description.dtype = output.dtype.base_dtype.as_datatype_enum
        description.shape.SetInParent()
        for size in buffer.shape:
            description.shape.dim.add(size=size)
        allocation = description.allocation_description
        allocation.requested_bytes, allocation.allocated_bytes = buffer.size, buffer.allocated
        allocation.allocator_name = self._allocator
        allocation.allocation_id, allocation.ptr = number, buffer.address


def label(node: PlanNode) -> str:
    """``name = Op(inputs)``, as TensorFlow labels a run of a node."""
    words = [x.name.removesuffix(":0") for x in node.inputs]
    if node.declaration.role in RECEIVES:
        words.append(node.name.removesuffix("/receive") + "/send")
    words += [f"^{control.name}" for control in node.control_inputs]
    return f"{node.name} = {node.type}({', '.join(words)})"
