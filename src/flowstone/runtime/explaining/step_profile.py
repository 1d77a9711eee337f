"""Profiles a step: where its time and memory go, and how far its nodes are from the machine's floor.

A `StepProfile` is made from the traces of a few steps of one plan. A node's time is the median over these
steps; its runs within a step (in a loop) are added up. Its shapes, allocations, operations and bytes are
those of the last step. `placement/operation_cost.py` counts operations and bytes, from the traced shapes
instead of the static ones; `floors.py` says how long they take at least.

Memory is followed through the last trace: a value that a node allocates is held until the last consumer of
it, or of a view of it, has ended. Variables, constants and feeds are counted apart. If control flow inside a
segment takes a value, which traces do not show, the value is held until the same node makes its next one. A
kernel's scratch memory is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput
from flowstone.framework.tensors.node import Node, Output
from flowstone.framework.types.dtypes import resource
from flowstone.framework.types.shape import Dims, format_dims
from flowstone.placement.operation_cost import Work, work
from flowstone.rewriting.analyses.memory_estimate import peak_memory
from flowstone.runtime.code.tracing import Buffer, Event, Trace
from flowstone.runtime.explaining.floors import Floor, Floors
from flowstone.runtime.explaining.step_stats import is_computed
from flowstone.runtime.plans.plan import Plan


class NodeProfile(NamedTuple):
    """A node in a step: its `runs`, their total `ms` and `floor_ms` (0.0 without a floor), the `bound` that
    determines the floor ("" for none), `operations` (floating point), `traffic` (bytes read and written),
    `allocated` (bytes). `inputs` and `outputs` are types with shapes; `user_line` is ``file:line`` or "".
    `waits`: its kernel may wait for others, so its time is not work.
    """

    name: str
    type: str
    device: str
    user_line: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    runs: int
    ms: float
    floor_ms: float
    bound: str
    operations: float
    traffic: int
    allocated: int
    waits: bool

    @property
    def ratio(self) -> float:
        """Its time divided by its floor; 0.0 if there is no floor."""
        return self.ms / self.floor_ms if self.floor_ms else 0.0


class HeldValue(NamedTuple):
    """A value of `size` bytes, its type with its shape, and the user's line that made it ("" if none did)."""

    name: str
    type: str
    size: int
    user_line: str


class MemoryProfile(NamedTuple):
    """Bytes: `state` (variables and constants), `fed`, the largest size of the step's values at a time
    (`peak`; the plan's estimate of it, `estimated_peak`), and `allocated` in the whole step. `held` are the
    values at the peak, largest first, and `at` the node that had just run ("" for none).
    """

    state: int
    fed: int
    peak: int
    estimated_peak: int
    allocated: int
    held: tuple[HeldValue, ...]
    at: str


class StepProfile(NamedTuple):
    """`step_ms`: the median of steps without a trace (of traced ones where there were none); `traced_steps`:
    how many were traced; `nodes`, the most expensive first; the devices' `machines` by device name.
    """

    step_ms: float
    traced_steps: int
    nodes: tuple[NodeProfile, ...]
    memory: MemoryProfile
    machines: dict[str, Floors]

    @property
    def node_ms(self) -> float:
        """The sum of all nodes' times."""
        return sum(node.ms for node in self.nodes)


def profile(
    plan: Plan, traces: Sequence[Trace], machines: dict[str, Floors], durations_ms: Sequence[float] = ()
) -> StepProfile:
    """The profile of steps of `plan`. `traces`: finished, one at least. `machines`: by device name; nodes of
    other devices have no floor. `durations_ms`: of steps without a trace.
    """
    every = [_partitioned(plan, trace) for trace in traces]
    times = [_times(computed) for computed, _ in every]
    events, constants = every[-1]
    memory = _MemoryWalk(plan, events, constants)
    by_node: dict[tuple[str, PlanNode], list[int]] = {}
    for i, event in enumerate(events):
        by_node.setdefault((event.device, event.node), []).append(i)
    shapes = _Shapes([*constants, *events])
    nodes = [
        _node_profile(
            [events[i] for i in own],
            float(np.median([each.get(key, 0.0) for each in times])),
            sum(memory.allocated[i] for i in own),
            shapes,
            machines.get(key[0]),
        )
        for key, own in by_node.items()
    ]
    nodes.sort(key=lambda node: (-node.ms, node.name))
    steps = list(durations_ms) or [trace.duration_ms for trace in traces]
    return StepProfile(float(np.median(steps)), len(traces), tuple(nodes), memory.profile(), machines)


def _partitioned(plan: Plan, trace: Trace) -> tuple[list[Event], list[Event]]:
    """The events of computed nodes, by their end, and of nodes that were there before. They get the nodes of
    the plan's parts, since copies in units have other inputs. Names alone do not identify a plan's nodes.
    """
    own = {node for part in plan.parts.values() for node in part.nodes}
    named = {(device, node.name): node for device, part in plan.parts.items() for node in part.nodes}
    computed: list[Event] = []
    constants: list[Event] = []
    for event in trace.events:
        if event.node not in own:
            event = event._replace(node=named.get((event.device, event.node.name), event.node))
        (computed if is_computed(trace, event) else constants).append(event)
    return sorted(computed, key=lambda event: event.end), constants


def _times(events: Iterable[Event]) -> dict[tuple[str, PlanNode], float]:
    """Milliseconds by device and node; on a GPU those of the kernels."""
    found: dict[tuple[str, PlanNode], float] = {}
    for event in events:
        start, end = event.kernels or (event.start, event.end)
        key = event.device, event.node
        found[key] = found.get(key, 0.0) + (end - start) / 1e6
    return found


def _node_profile(
    events: Sequence[Event], ms: float, allocated: int, shapes: _Shapes, floors: Floors | None
) -> NodeProfile:
    event, runs = events[-1], len(events)
    node = shapes.node(event)
    waits = node.declaration.asynchronous
    done, floor = Work(0.0, 0), Floor(0.0, "")
    if not node.declaration.is_free and not waits:
        done = work(node)
        if floors is not None:
            floor = floors.floor(done.operations, done.size, "Conv" in node.type)
    return NodeProfile(
        node.name,
        node.type,
        event.device,
        _line_text(event.node),
        tuple(map(_type_text, event.node.inputs, [x.dims for x in node.inputs])),
        tuple(map(_type_text, node.outputs, [x.dims for x in node.outputs])),
        runs,
        ms,
        floor.seconds * 1e3 * runs,
        floor.bound,
        done.operations * runs,
        done.size * runs,
        allocated,
        waits,
    )


def _line_text(node: PlanNode) -> str:
    line = node.origin.user_line
    return f"{line[0]}:{line[1]}" if line else ""


def _type_text(output: Output, dims: Dims) -> str:
    return output.dtype.base_dtype.name + format_dims(dims).replace(" ", "")


class _Shapes:
    """The shapes in a trace, by device and output."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._seen: dict[tuple[str, PlanOutput], tuple[int, ...]] = {}
        for event in events:
            for output, buffer in zip(event.node.outputs, event.outputs):
                if buffer is not None and _has_shape(output):
                    self._seen[event.device, output] = buffer.shape

    def node(self, event: Event) -> Node:
        """The event's node with the shapes of this trace; handles have the shapes of their variables."""
        original = event.node
        node = Node(
            original.declaration, original.name, [self._of(event.device, x) for x in original.inputs],
            original.attributes, original.group_sizes, [], original.device, original.order,
        )  # fmt: skip
        node.outputs = [self._of(event.device, x) for x in original.outputs]
        return node

    def _of(self, device: str, x: PlanOutput) -> PlanOutput:
        if x.op.declaration.role == "variable" and x.dtype is resource:
            attributes = x.op.attributes
            return PlanOutput(x.op, x.value_index, attributes["dtype"], attributes.get("shape"))
        return PlanOutput(x.op, x.value_index, x.dtype, self._seen.get((device, x), x.dims))


def _has_shape(output: PlanOutput) -> bool:
    """Whether a trace records the shape of such values."""
    return output.dtype.base_dtype.torch is not None


class _MemoryWalk:
    """Follows the step's memory; `allocated[i]` are the bytes that event i took newly."""

    def __init__(self, plan: Plan, events: Sequence[Event], constants: Sequence[Event]) -> None:
        self._plan, self._events = plan, events
        self._state: dict[int, int] = {}  # bytes by address
        self._fed: dict[int, int] = {}
        for event in constants:
            kept = self._fed if event.node.is_feed else self._state
            kept.update({b.address: b.allocated for b in event.outputs if b is not None and b.address})
        self._last = self._last_uses()
        self._live: dict[int, tuple[int, HeldValue]] = {}  # by address: last event that uses it, value
        self._peak, self._at, self._held = 0, "", list(self._live.values())
        self.allocated = [self._run(i, event) for i, event in enumerate(events)]

    def profile(self) -> MemoryProfile:
        """The memory profile of the step."""
        held = sorted([value for _, value in self._held], key=lambda value: -value.size)
        estimate = sum(peak_memory(part) for part in self._plan.parts.values())
        state, fed = sum(self._state.values()), sum(self._fed.values())
        return MemoryProfile(state, fed, self._peak, estimate, sum(self.allocated), tuple(held), self._at)

    def _last_uses(self) -> dict[tuple[int, int], int]:
        """By event and output: the last event that takes the value."""
        seen = {(event.device, event.node) for event in self._events}
        unseen: set[tuple[str, PlanOutput]] = set()  # outputs with consumers that traces do not show
        fetched: set[tuple[str, PlanOutput]] = set()
        for device, part in self._plan.parts.items():
            fetched.update((device, x) for x in part.fetches)
            for x, consumers in part.consumers().items():
                if any((device, node) not in seen for node in consumers):
                    unseen.add((device, x))
        last: dict[tuple[int, int], int] = {}
        latest: dict[tuple[str, PlanOutput], tuple[int, int]] = {}
        for i, event in enumerate(self._events):
            for x in event.node.inputs:
                producer = latest.get((event.device, x))
                if producer is not None:
                    last[producer] = i
            for slot, output in enumerate(event.node.outputs):
                key = event.device, output
                if key in unseen and key in latest:
                    last[latest[key]] = i
                latest[key] = (i, slot)
        for key, producer in latest.items():
            if key in unseen or key in fetched:
                last[producer] = len(self._events)
        return last

    def _run(self, i: int, event: Event) -> int:
        total = 0
        for slot, (output, buffer) in enumerate(zip(event.node.outputs, event.outputs)):
            if buffer is not None and self._is_of_the_step(event.node, buffer):
                until = self._last.get((i, slot), i)
                if buffer.address in self._live:
                    before, value = self._live[buffer.address]
                    self._live[buffer.address] = max(before, until), value
                else:
                    kind, line = _type_text(output, buffer.shape), _line_text(event.node)
                    value = HeldValue(output.name, kind, buffer.allocated, line)
                    self._live[buffer.address] = until, value
                    total += buffer.allocated
        alive = sum(value.size for _, value in self._live.values())
        if alive > self._peak:
            self._peak, self._at, self._held = alive, event.node.name, list(self._live.values())
        self._live = {address: each for address, each in self._live.items() if each[0] > i}
        return total

    def _is_of_the_step(self, node: PlanNode, buffer: Buffer) -> bool:
        if not buffer.address or buffer.address in self._fed or buffer.address in self._state:
            return False
        if node.declaration.role == "read" or any(x.dtype.is_ref for x in node.outputs):
            self._state[buffer.address] = buffer.allocated
            return False
        return True
