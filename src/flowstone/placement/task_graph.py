"""A placement problem in packed form: tasks, the tensors between them, and what each costs on each device.

The greedy placement and the simulation of a cluster walk these lists again and again, so they hold plain
integers and floats. Task i is node i of the subgraph, in topological order. Tensors are numbered over all
tasks; the control edge of each task is one more tensor, of no size. Edges back into a loop are left out: each
node of a loop is one task, whose time is that of `ASSUMED_ITERATIONS` iterations.

Memory: a tensor's *storage* is the tensor in whose buffer it lies, which is another one if the op passes on
its input's memory. The memory that state holds between steps is the `resident` memory of its group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.tensors.node import Node
from flowstone.placement.cost_model import CostModel
from flowstone.placement.device_constraints import Constraints
from flowstone.placement.devices import Link, Links, PlacementDevice, default_link
from flowstone.placement.operation_cost import Work, state_size, work

ASSUMED_ITERATIONS = 10


@dataclass
class TaskGraph:
    """Tasks to place; see the module.

    Attributes:
        devices: the devices, and `links[source][target]` between them.
        times: microseconds of each task on each device, ``times[device][task]``.
        inputs: the tensors that each task takes, control edges included.
        outputs: the tensors that each task makes, the last one its control edge.
        producer, size: of each tensor, the task that makes it and the bytes that a transfer of it moves.
        storage, buffer: of each tensor, the one in whose buffer it lies, and the bytes of its own buffer
            where it is made (0 for what lies elsewhere or in state).
        group: of each task; tasks of a group share a device.
        feasible, resident: of each group, the devices that it may use, preferred first, and the bytes that
            its state holds.
        kept: tensors in memory until the end of the step (fetches).
        light: tasks that cost nothing and depend only on such tasks: they go to the device of a consumer.
        follows: control-flow primitives -> the task whose device they share where they may.
        frame: tasks inside a loop -> the outermost loop's number; a loop stays together where it may.
    """

    devices: Sequence[PlacementDevice]
    links: list[list[Link]]
    times: list[list[float]]
    inputs: list[tuple[int, ...]]
    outputs: list[range]
    producer: list[int]
    size: list[int]
    storage: list[int]
    buffer: list[int]
    group: list[int]
    feasible: list[tuple[int, ...]]
    resident: list[int]
    kept: frozenset[int] = frozenset()
    light: list[bool] = field(default_factory=list)
    follows: dict[int, int] = field(default_factory=dict)
    frame: dict[int, int] = field(default_factory=dict)
    consumers: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.light = self.light or [False] * len(self.inputs)
        self.consumers = [[] for _ in self.size]
        for task, inputs in enumerate(self.inputs):
            for tensor in inputs:
                self.consumers[tensor].append(task)

    @property
    def has_limits(self) -> bool:
        """Whether any device's memory is limited."""
        return any(device.memory_limit is not None for device in self.devices)

    def expand(self, device_of_group: Sequence[int]) -> list[int]:
        """The device of each task, given each group's."""
        return [device_of_group[g] for g in self.group]


def link_table(devices: Sequence[PlacementDevice], links: Links = default_link) -> list[list[Link]]:
    """``table[source][target]``; a device reaches itself at once."""
    here = Link(0.0, 0.0)
    return [[here if a is b else links(a, b) for b in devices] for a in devices]


def task_graph(
    subgraph: Subgraph,
    devices: Sequence[PlacementDevice],
    constraints: Constraints,
    costs: CostModel,
    links: Links | None = None,
) -> TaskGraph:
    """The placement problem of a subgraph. `links`: between devices; those of `costs` if None."""
    packing = _Packing(subgraph, costs)
    resident = [0] * len(constraints.feasible)
    for i, size in packing.resident.items():
        resident[constraints.group[i]] += size
    frame = _frames(subgraph.nodes, packing) if packing.has_loops else {}
    times = costs.times_us(subgraph.nodes, packing.works, devices)
    if frame:
        times = [_repeated(each, frame) for each in times]
    return TaskGraph(
        devices, link_table(devices, links or costs.link), times, packing.inputs, packing.outputs,
        packing.producer, packing.size, packing.storage, packing.buffer, constraints.group,
        constraints.feasible, resident,
        frozenset(packing.first[x.op] + x.value_index for x in subgraph.fetches),
        packing.light, packing.follows, frame,
    )  # fmt: skip


def placed_task_graph(
    subgraph: Subgraph,
    placement: Mapping[PlanNode, PlacementDevice],
    costs: CostModel | None = None,
    links: Links | None = None,
) -> tuple[TaskGraph, list[int]]:
    """The problem that a placement solves, with each node as a group of its own, and each group's device.

    The devices are those that the placement uses, sorted by name.
    """
    used = {device.name: device for device in placement.values()}
    devices = [used[name] for name in sorted(used)]
    index = {device.name: d for d, device in enumerate(devices)}
    chosen = [index[placement[node].name] for node in subgraph.nodes]
    constraints = Constraints(list(range(len(chosen))), [(d,) for d in chosen])
    return task_graph(subgraph, devices, constraints, costs or CostModel(), links), chosen


class _Packing:
    """One walk over the nodes, which numbers tensors and collects what `TaskGraph` holds of each."""

    def __init__(self, subgraph: Subgraph, costs: CostModel) -> None:
        self.costs = costs
        self.first: dict[Node, int] = {}  # node -> its first tensor
        self.works: list[Work] = []
        self.inputs: list[tuple[int, ...]] = []
        self.outputs: list[range] = []
        self.producer: list[int] = []
        self.size: list[int] = []
        self.storage: list[int] = []
        self.buffer: list[int] = []
        self.light: list[bool] = []
        self.resident: dict[int, int] = {}
        self.follows: dict[int, int] = {}
        self.has_loops = False
        for i, node in enumerate(subgraph.nodes):
            self._add(i, node)

    def _add(self, i: int, node: PlanNode) -> None:
        first = self.first
        # a source that has no number yet comes later: this is an edge back into a loop
        inputs = [first[x.op] + x.value_index for x in node.inputs if x.op in first]
        data = len(inputs)
        for control in node.control_inputs:
            if control in first:
                inputs.append(first[control] + len(control.outputs))
        free = node.declaration.is_free
        self.works.append(_NOTHING if free else work(node))
        self.light.append(free and all([self.light[self.producer[t]] for t in inputs]))
        if node.declaration.in_control_flow:
            self.has_loops = True
            if data:
                self.follows[i] = self.producer[inputs[0]]
        self._add_outputs(i, node, inputs[:data], free)
        self.inputs.append(tuple(dict.fromkeys(inputs)) if len(inputs) > 1 else tuple(inputs))

    def _add_outputs(self, i: int, node: PlanNode, data: list[int], free: bool) -> None:
        start = len(self.size)
        self.first[node] = start
        self.outputs.append(range(start, start + len(node.outputs) + 1))
        held = node.declaration.holds_state
        if held:
            self.resident[i] = state_size(node)
        shares = bool(data) and (free or node.declaration.is_view)
        for x in node.outputs:
            size = self.costs.output_size(x)
            self.size.append(size)
            self.buffer.append(0 if held or shares else size)
            self.storage.append(self.storage[data[0]] if shares else len(self.storage))
        self.size.append(0)
        self.buffer.append(0)
        self.storage.append(len(self.storage))
        self.producer += [i] * (len(node.outputs) + 1)


_NOTHING = Work(0.0, 0)


def _frames(nodes: Sequence[PlanNode], packing: _Packing) -> dict[int, int]:
    """task -> number of the outermost loop that it is in."""
    inside: dict[int, tuple[int, int]] = {}  # task -> (loop, depth)
    loops: dict[str, int] = {}
    for i, node in enumerate(nodes):
        sources = [inside[p] for t in packing.inputs[i] if (p := packing.producer[t]) in inside]
        loop, depth = max(sources, key=lambda each: each[1], default=(-1, 0))
        if node.declaration.role == "exit":
            depth -= 1
        elif node.declaration.role == "enter":
            if depth == 0:
                loop = loops.setdefault(node.attributes["frame_name"], len(loops))
            depth += 1
        if depth > 0:
            inside[i] = (loop, depth)
    return {i: loop for i, (loop, _) in inside.items()}


def _repeated(times: list[float], frame: dict[int, int]) -> list[float]:
    times = list(times)
    for i in frame:
        times[i] *= ASSUMED_ITERATIONS
    return times
