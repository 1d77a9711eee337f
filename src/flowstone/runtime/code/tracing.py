"""Traces: record what ran when in one step, and the values that it made.

A traced step runs another compilation of its plan. In generated code (`TracedCode`) a node's line becomes

    _start = _clock(); v1 = mm(a0, W.tensor); del a0; _record(3, _start, v1)

where ``_clock`` and ``_record`` come from the step's `Trace`. It keeps an `Event` for each run of a node: its
times, the thread, and a `Buffer` for each value that has a consumer, but never the value itself. Nodes that
cost nothing in a step (feeds, constants, variables) are recorded once, without a duration. Control flow
inside a segment is Python's and has no events. The executor's primitives, between units, have events
(`traced_units.py`). `step_stats.py` converts a trace to messages.

On a GPU, kernels run after their launch. Each line is enclosed in two CUDA events as well, whose times are
read when the step is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.runtime.code.generated_code import Code, Segment
from flowstone.runtime.steps.step import Step

now: Callable[[], int] = time.perf_counter_ns


class Buffer(NamedTuple):
    """A value as a trace keeps it: its `shape`, its `size` in bytes, and the `address` and the bytes
    `allocated` of the memory that it lies in (0 if unknown).
    """

    shape: tuple[int, ...]
    size: int
    address: int
    allocated: int


class Event(NamedTuple):
    """One run of a node, in nanoseconds of `now`: `ready` to run, `start`, `end`; a buffer for each output
    (None for one without consumers); `kernels`: when its kernels ran on a GPU.
    """

    device: str
    node: PlanNode
    ready: int
    start: int
    end: int
    outputs: list[Buffer | None]
    thread: int
    kernels: tuple[int, int] | None = None


class NodeTable:
    """The nodes of a segment by the numbers that generated code has for them, its constants, its device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.nodes: list[PlanNode] = []
        self.constants: dict[PlanOutput, Any] = {}


class TracedCode(Code):
    """Generated code that records a trace."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._table = NodeTable(device)

    def constant(self, output: PlanOutput, value: Any) -> str:
        """The global of an output that is this object in every step."""
        self._table.constants[output] = value
        return super().constant(output, value)

    def computation(
        self, depth: int, text: str, node: PlanNode, arguments: list[str], results: Sequence[str]
    ) -> None:
        """Adds the line that computes `node`, between reading the clock and recording the event."""
        number = len(self._table.nodes)
        self._table.nodes.append(node)
        values = "".join(", None" if name == "_" else f", {name}" for name in results)
        self.line(depth, f"_start = _clock(); {text}; _record({number}, _start{values})", node, arguments)

    def finish(self) -> Segment:
        """Compiles the function, which first gets the clock from its step."""
        self.insert_first(f"_clock, _record = step.trace.recorder({self.name('_table', self._table)})")
        return super().finish()


class Trace:
    """The events of one step, in the order in which the nodes ended.

    `gpus`: torch's devices of the GPUs whose kernels are timed, by device name. In `units_ready`, the
    executor of a device puts the time at which the segment that it starts next became ready.
    """

    def __init__(self, gpus: Mapping[str, torch.device] | None = None) -> None:
        self.events: list[Event] = []
        self.thread_names: dict[int, str] = {}
        self.units_ready: dict[str, int] = {}
        self.epoch = time.time_ns() - now()  # of the clock
        self.begin = 0
        self._clocks = {name: _KernelClock(device) for name, device in (gpus or {}).items()}
        self._constants: set[tuple[str, str]] = set()
        self._pending: list[tuple[Event, Any, Any]] = []

    @property
    def duration_ms(self) -> float:
        """From the beginning of the step to the end of its last node."""
        ends = [event.kernels[1] if event.kernels else event.end for event in self.events]
        return (max(ends, default=self.begin) - self.begin) / 1e6

    def restart(self) -> None:
        """Sets the step's beginning to now."""
        self.begin = now()

    def record(
        self, device: str, node: PlanNode, ready: int, start: int, end: int, values: Sequence[Any]
    ) -> None:
        """Adds one run of `node`, on this thread, with its values."""
        self.events.append(Event(device, node, ready, start, end, _buffers(node, values), self._thread()))

    def record_constant(self, device: str, node: PlanNode, values: Sequence[Any]) -> None:
        """Adds, once, a node whose value exists from the beginning."""
        if (device, node.name) not in self._constants:
            self._constants.add((device, node.name))
            self.record(device, node, self.begin, self.begin, self.begin, values)

    def recorder(self, table: NodeTable) -> tuple[Callable[[], Any], Callable[..., None]]:
        """For a call of a segment: the clock, and a function that records a node (by its number) that started
        at a time of that clock and has just ended with these values.
        """
        for output, value in table.constants.items():
            self.record_constant(table.device, output.op, [value])
        ready = self.units_ready.pop(table.device, 0)
        thread, nodes, device, add = self._thread(), table.nodes, table.device, self.events.append
        clock = self._clocks.get(device)
        if clock is not None:
            return clock.read, self._kernel_recorder(table, clock, ready)

        def record(number: int, start: int, *values: Any) -> None:
            nonlocal ready
            end = now()
            node = nodes[number]
            add(Event(device, node, ready or start, start, end, _buffers(node, values), thread))
            ready = 0

        return now, record

    def _kernel_recorder(self, table: NodeTable, clock: _KernelClock, ready: int) -> Callable[..., None]:
        thread, nodes, device = self._thread(), table.nodes, table.device

        def record(number: int, start: tuple[int, Any], *values: Any) -> None:
            nonlocal ready
            end, node = clock.read(), nodes[number]
            buffers = _buffers(node, values)
            event = Event(device, node, ready or start[0], start[0], end[0], buffers, thread)
            self._pending.append((event, start[1], end[1]))
            ready = 0

        return record

    def finish(self) -> None:
        """Waits for the kernels of GPUs, and records when they ran."""
        for event, before, after in self._pending:
            times = self._clocks[event.device].times(before, after)
            self.events.append(event._replace(kernels=times))
        self._pending.clear()

    def _thread(self) -> int:
        number = threading.get_native_id()
        if number not in self.thread_names:
            self.thread_names[number] = threading.current_thread().name
        return number


class _KernelClock:
    """Reads the host's clock, and records an event in the GPU's stream."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._first = _mark()
        torch.cuda.synchronize(device)
        self._first.record(torch.cuda.current_stream(device))
        torch.cuda.synchronize(device)
        self._begin = now()

    def read(self) -> tuple[int, Any]:
        mark = _mark()
        mark.record(torch.cuda.current_stream(self._device))
        return now(), mark

    def times(self, before: Any, after: Any) -> tuple[int, int]:
        """When the stream reached two events, in nanoseconds of `now`."""
        after.synchronize()
        start = self._begin + round(self._first.elapsed_time(before) * 1e6)
        return start, start + round(before.elapsed_time(after) * 1e6)


def _mark() -> Any:
    return torch.cuda.Event(enable_timing=True)


class TracedStep(Step):
    """A step with a trace."""

    __slots__ = ("trace",)

    def __init__(self, trace: Trace, timeout_ms: int = 0) -> None:
        super().__init__(timeout_ms)
        self.trace = trace


def _buffers(node: PlanNode, values: Sequence[Any]) -> list[Buffer | None]:
    return [
        None if value is None else buffer_of(value, output) for value, output in zip(values, node.outputs)
    ]


def buffer_of(value: Any, output: PlanOutput) -> Buffer | None:
    """The buffer that describes a value; None for a variable without a value."""
    if output.dtype.is_ref and not isinstance(value, torch.Tensor):
        value = getattr(value, "tensor", None)
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:  # packed weights, which stay with their variable
            return Buffer(tuple(value.shape), value.numel() * value.itemsize, 0, 0)
        storage = value.untyped_storage()
        return Buffer(tuple(value.shape), value.nbytes, storage.data_ptr(), storage.nbytes())
    if isinstance(value, np.ndarray):
        return Buffer(value.shape, value.nbytes, value.__array_interface__["data"][0], value.nbytes)
    if value is None:
        return None
    if isinstance(value, (bool, int, float)):  # a number of a loop, which is not in a buffer
        return Buffer((), output.dtype.base_dtype.size or 0, 0, 0)
    return Buffer((), 0, 0, 0)
