"""When Receives start: as late as the step allows (white paper 5.2).

A Receive depends on nothing on its own device. Without further control edges all start with the step, and
what they receive occupies memory until it is used. The paper schedules them by an as-soon-as-possible and
as-late-as-possible (ASAP/ALAP) calculation over the critical paths and inserts control edges that delay each
until just before its result is needed.

`delay_receives` takes all parts together, with an edge from each Send to its Receive. By the cost model, a
node's ASAP time is the longest path from the start to it; its ALAP time is the makespan less the longest path
from it to the end. A Receive gets a control edge from a node of its device: the one that ends last, but
before the Receive must begin, if all nodes start at their ALAP times. In the order of ALAP times all edges
lead forwards, the added ones too. So there is no cycle, and the critical path does not grow.

A Receive is delayed if it makes a copy (CPU devices share memory, so none is made between them), runs once in
every step, and receives at least `SMALLEST` bytes. The node that it waits for runs once in every step, too.

`simulate_parts` gives the times and the memory of the parts in the cluster simulator, where a Receive is a
task of its device that makes its tensor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flowstone.framework.declarations.kernel import CPU
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.partition.send_receive import RECEIVES, SENDS
from flowstone.placement.cluster_simulator import Simulation, simulate
from flowstone.placement.cost_model import CostModel
from flowstone.placement.devices import Links, default_link
from flowstone.placement.operation_cost import tensor_size
from flowstone.placement.task_graph import placed_task_graph
from flowstone.rewriting.analyses.frames import NEXT_ITERATIONS

SMALLEST = 4096  # bytes: smaller tensors may wait in memory


class Window(NamedTuple):
    """When a node can start at the earliest and must at the latest, and how long it takes; microseconds."""

    asap_us: float
    alap_us: float
    length_us: float


def way(node: PlanNode) -> tuple[str, str, str]:
    """The key that a Send and its Receive have in common."""
    attributes = node.attributes
    return attributes["tensor_name"], attributes["send_device"], attributes["recv_device"]


def windows(
    nodes: Mapping[Any, Iterable[PlanNode]], costs: CostModel | None = None, links: Links = default_link
) -> dict[PlanNode, Window]:
    """The window of every node of the parts, `nodes` by device, in the order of ALAP times."""
    device_of = {node: device for device, those in nodes.items() for node in those}
    sources = _sources(device_of)
    order = _in_order(sources)
    model = costs or CostModel()
    by_name = {device.name: device for device in nodes}
    lengths: dict[PlanNode, float] = {}
    asap: dict[PlanNode, float] = {}
    for node in order:
        if node.declaration.role in RECEIVES:
            sender = by_name.get(node.attributes["send_device"], device_of[node])
            lengths[node] = links(sender, device_of[node]).time_us(tensor_size(node.outputs[0]))
        else:
            lengths[node] = model.time_us(node, device_of[node])
        asap[node] = max((asap[source] + lengths[source] for source in sources[node]), default=0.0)
    end = max((asap[node] + lengths[node] for node in order), default=0.0)
    latest_end = dict.fromkeys(order, end)
    for node in reversed(order):
        begin = latest_end[node] - lengths[node]
        for source in sources[node]:
            latest_end[source] = min(latest_end[source], begin)
    place = {node: i for i, node in enumerate(order)}
    alap = {node: latest_end[node] - lengths[node] for node in order}
    return {
        node: Window(asap[node], alap[node], lengths[node])
        for node in sorted(order, key=lambda node: (alap[node], place[node]))
    }


def delay_receives(
    nodes: Mapping[Any, Iterable[PlanNode]],
    steady: Collection[PlanNode],
    costs: CostModel | None = None,
    links: Links = default_link,
) -> int:
    """Adds control edges to Receives on devices other than CPUs; returns how many.

    `nodes`: by device. `steady`: those that run exactly once in every step.
    """
    if all(device.device_type == CPU for device in nodes) or len(nodes) < 2:
        return 0
    device_of = {node: device for device, those in nodes.items() for node in those}
    found = windows(nodes, costs, links)
    sent_from = {way(node): node.inputs[0].op for node in device_of if node.declaration.role in SENDS}
    added = 0
    last: dict[Any, list[tuple[float, PlanNode]]] = {device: [] for device in nodes}
    for node, window in found.items():
        before = last[device_of[node]]
        if _may_be_delayed(node, device_of[node], sent_from.get(_origin(node)), steady):
            trigger = _latest(before, window.alap_us)
            if trigger is not None:
                node.control_inputs.append(trigger)
                added += 1
        if node in steady and not (node.is_feed or node.is_constant):
            before.append((window.alap_us + window.length_us, node))
    return added


def _origin(node: PlanNode) -> Any:
    return way(node) if node.declaration.role in RECEIVES else None


def _may_be_delayed(
    node: PlanNode, device: Any, source: PlanNode | None, steady: Collection[PlanNode]
) -> bool:
    return (
        node.declaration.role in RECEIVES
        and device.device_type != CPU
        and not node.control_inputs
        and (source is None or source in steady or source.type == "Cast")
        and tensor_size(node.outputs[0]) >= SMALLEST
    )


def _latest(before: Sequence[tuple[float, PlanNode]], start: float) -> PlanNode | None:
    """Of the nodes so far, the one that ends last, but not after `start`."""
    found: tuple[float, PlanNode] | None = None
    for end, node in before:
        if end <= start and (found is None or end >= found[0]):
            found = (end, node)
    return None if found is None else found[1]


def _sources(device_of: Mapping[PlanNode, Any]) -> dict[PlanNode, list[PlanNode]]:
    """What each node takes or waits for, across devices; edges back into a loop are left out."""
    sends = {way(node): node for node in device_of if node.declaration.role in SENDS}
    found = {}
    for node in device_of:
        sources = dict.fromkeys(x.op for x in node.inputs if x.op.type not in NEXT_ITERATIONS)
        sources.update(dict.fromkeys(node.control_inputs))
        if node.declaration.role in RECEIVES:
            sources[sends[way(node)]] = None
        found[node] = [source for source in sources if source in device_of]
    return found


def _in_order(sources: Mapping[PlanNode, Sequence[PlanNode]]) -> list[PlanNode]:
    """The nodes in topological order."""
    waiting = {node: len(those) for node, those in sources.items()}
    dependants: dict[PlanNode, list[PlanNode]] = {}
    for node, those in sources.items():
        for source in those:
            dependants.setdefault(source, []).append(node)
    order = [node for node, count in waiting.items() if not count]
    for node in order:
        for dependant in dependants.get(node, ()):
            waiting[dependant] -= 1
            if not waiting[dependant]:
                order.append(dependant)
    return order


def simulate_parts(
    parts: Iterable[tuple[Any, Subgraph]], costs: CostModel | None = None, links: Links = default_link
) -> Simulation:
    """The simulated step of (device, subgraph) pairs; devices are numbered by their names."""
    parts = list(parts)
    device_of = {node: device for device, subgraph in parts for node in subgraph.nodes}
    sends = {way(node): node for node in device_of if node.declaration.role in SENDS}
    controls = {node: list(node.control_inputs) for node in device_of if node.declaration.role in RECEIVES}
    nodes = _in_order(_sources(device_of))
    try:
        for node in controls:
            node.control_inputs.append(sends[way(node)])
        fetches = [x for _, subgraph in parts for x in subgraph.fetches]
        tasks, chosen = placed_task_graph(Subgraph(nodes, [], fetches, []), device_of, costs, links)
        return simulate(tasks, chosen)
    finally:
        for node, before in controls.items():
            node.control_inputs = before
