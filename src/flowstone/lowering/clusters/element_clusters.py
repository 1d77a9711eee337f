"""Clusters: element-wise nodes on one shape that feed each other become one node, one pass over memory.

    %2 = AddV2(%0, %1) : float32[20,200]
    %3 = Tanh(%2) : float32[20,200]
    %5 = Mul(%3, %4) : float32[20,200]

becomes

    %3 = _Cluster(%0, %1, %2) operations='AddV2+Tanh+Mul' : float32[20,200]

Nodes join while nobody else has taken what the cluster computes: then no path leads out of it and back. They
are looked at in an order in which element-wise nodes come as early as they can. All are in one loop and one
branch, wait for nothing, and take nothing that shares memory with a state that the step changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from flowstone.framework.shape import Dims, num_elements
from flowstone.framework.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.lowering.clusters.cluster_kernel import TYPES, Members, cluster_op
from flowstone.native import kernels
from flowstone.native.clusters import Array, Cluster, Step
from flowstone.native.elements import ELEMENTS, suits
from flowstone.rewriting.analyses.arrivals import arrivals, is_in_pieces
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.frames import NEXT_ITERATIONS, Frames
from flowstone.rewriting.analyses.state_versions import References, changed_by
from flowstone.rewriting.patterns import remove_unneeded, substitute_in_order

_MOST_STEPS = 64
_MOST_ARRAYS = 24  # inputs and outputs
_WORTH = 8  # of an operation alone, in additions: exponential functions are several times ATen's
_POWERS = {2.0: "Square", 0.5: "Sqrt", -0.5: "Rsqrt", -1.0: "Reciprocal"}


def join_clusters(subgraph: Subgraph) -> None:
    """Replaces element-wise nodes that feed each other by clusters, where those can be compiled."""
    if not kernels.is_on():
        return
    found = _Finder(subgraph)
    if len(found.keys) < 1:
        return
    for order in (_eager_order(subgraph.nodes, found.keys), subgraph.nodes):
        clusters = [each for each in found.clusters(order) if each.is_worth_it()]
        if not clusters or _put_in(subgraph, clusters):
            break
    remove_unneeded(subgraph)


class _Group:
    """Nodes that may become one."""

    def __init__(self) -> None:
        self.nodes: list[PlanNode] = []
        self.is_open = True

    def is_worth_it(self) -> bool:
        costs = [ELEMENTS[_operation(node)[0]].cost for node in self.nodes]
        return sum(cost > 0 for cost in costs) > 1 or max(costs) >= _WORTH


class _Finder:
    """Finds groups; `keys`: the nodes that may be members, with what members of one group have in common."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.fetched = set(subgraph.fetches)
        self.consumers = subgraph.consumers()
        references = References(memory=True)
        changed = {state for node in subgraph.nodes for state in changed_by(node, references)}
        liveness, frames = subgraph.analysis(Liveness), subgraph.analysis(Frames)
        coming = arrivals(subgraph) if is_in_pieces(subgraph) else None
        targets = set(subgraph.targets)
        self.keys: dict[PlanNode, Any] = {}
        for node in subgraph.nodes:
            if node in targets or not _may_join(node):
                continue
            if changed and any(not changed.isdisjoint(references[x]) for x in node.inputs):
                continue
            late = 0 if coming is None else coming(node)
            self.keys[node] = (
                node.outputs[0].dims,
                liveness.node(node),
                frames.home(node),
                late,
                node.device,
            )

    def clusters(self, order: Iterable[PlanNode]) -> list[_Group]:
        """The groups that nodes form when they are looked at in this order."""
        groups: list[_Group] = []
        group_of: dict[PlanNode, _Group] = {}
        for node in order:
            sources = {group_of[x.op]: None for x in node.inputs if x.op in group_of}
            chosen = self._joined(node, [each for each in sources if each.is_open], group_of)
            for each in sources:
                if each is not chosen and each.nodes:
                    each.is_open = False
            for control in node.control_inputs:
                if control in group_of:
                    group_of[control].is_open = False
            if node in self.keys:
                if chosen is None:
                    chosen = _Group()
                    groups.append(chosen)
                chosen.nodes.append(node)
                group_of[node] = chosen
        return [each for each in groups if each.nodes]

    def _joined(
        self, node: PlanNode, candidates: Sequence[_Group], group_of: dict[PlanNode, _Group]
    ) -> _Group | None:
        """The open group that the node belongs to: those of its inputs, made one."""
        key = self.keys.get(node)
        if key is None:
            return None
        result: _Group | None = None
        for each in candidates:
            if self.keys[each.nodes[0]] != key:
                continue
            if result is None:
                result = each if self._has_room([*each.nodes, node]) else None
            elif self._has_room([*result.nodes, *each.nodes, node]):
                result.nodes += each.nodes
                for member in each.nodes:
                    group_of[member] = result
                each.nodes = []
        return result

    def _has_room(self, nodes: Sequence[PlanNode]) -> bool:
        if len(nodes) > _MOST_STEPS:
            return False
        inputs, outputs = _borders(nodes, self.consumers, self.fetched)
        return len(inputs) + len(outputs) <= _MOST_ARRAYS


def _eager_order(nodes: Sequence[PlanNode], eager: Any) -> list[PlanNode]:
    """The nodes in an order of their edges in which the `eager` ones, and constants, come as early as they
    can.
    """
    eager = {*eager, *[node for node in nodes if node.is_constant]}
    place = {node: i for i, node in enumerate(nodes)}
    waiting: dict[PlanNode, int] = {}
    takers: dict[PlanNode, list[PlanNode]] = {}
    for node in nodes:
        sources = {source for source in node.sources() if place[source] < place[node]}
        waiting[node] = len(sources)
        for source in sources:
            takers.setdefault(source, []).append(node)
    result: list[PlanNode] = []
    ready: list[PlanNode] = []
    done: set[PlanNode] = set()

    def run(node: PlanNode) -> None:
        result.append(node)
        done.add(node)
        for taker in takers.get(node, ()):
            waiting[taker] -= 1
            if not waiting[taker] and taker in eager:
                ready.append(taker)

    for node in nodes:
        if not waiting[node] and node in eager:
            ready.append(node)
    for node in nodes:
        while ready:
            run(ready.pop())
        if node not in done:
            run(node)
    return result


# ---- members


def _may_join(node: PlanNode) -> bool:
    """Whether the node does to every element what the native tier can compile."""
    if node.type not in ELEMENTS or node.control_inputs or len(node.outputs) != 1:
        return False
    output = node.outputs[0]
    if output.dtype.is_ref or output.dtype not in TYPES or not num_elements(output.dims):
        return False
    if output.dims == () and not output.dtype.is_floating:
        return False  # counters and decisions of loops are Python's numbers
    dims = [x.dims for x in node.inputs]
    if any(each is None or None in each for each in dims):
        return False
    operation, attributes, count = _operation(node)
    types = [x.dtype.base_dtype for x in node.inputs[:count]]
    if any(each not in TYPES for each in types) or not suits(operation, [t.name for t in types], attributes):
        return False
    return _broadcasts(node, count)


def _broadcasts(node: PlanNode, count: int) -> bool:
    """Whether its inputs are broadcast to the output as NumPy does it."""
    dims = node.outputs[0].dims
    if node.type in ("BiasAdd", "BiasAddV1") and node.attributes.get("data_format", "NHWC") != "NHWC":
        return False
    if node.type == "Select" and node.inputs[0].dims not in ((), dims):
        return False  # which rows
    try:
        return np.broadcast_shapes(*[_known(x.dims) for x in node.inputs[:count]]) == dims
    except ValueError:
        return False


def _known(dims: Dims) -> tuple[int, ...]:
    """A static shape of a member, of which all sizes are known."""
    return tuple([n for n in dims or () if n is not None])


def _operation(node: PlanNode) -> tuple[str, dict[str, Any], int]:
    """What a node does: the element's name, its attributes, and how many inputs that takes."""
    if node.type == "Pow" and (exponent := node.constant(1)) is not None and exponent.shape == ():
        name = _POWERS.get(float(exponent))
        if name is not None and node.inputs[0].dims == node.outputs[0].dims:
            return name, {}, 1
    attributes: dict[str, Any] = {
        key: node.attributes[key] for key in ("alpha", "DstT") if key in node.attributes
    }
    return node.type, attributes, len(node.inputs)


def _borders(
    nodes: Sequence[PlanNode], consumers: Any, fetched: set[PlanOutput]
) -> tuple[list[PlanOutput], list[PlanOutput]]:
    """What the nodes take of others, and what others take of them."""
    inside = set(nodes)
    inputs = dict.fromkeys(x for node in nodes for x in node.inputs if x.op not in inside)
    outputs = [
        x
        for x in (node.outputs[0] for node in nodes)
        if x in fetched or any(each not in inside for each in consumers.get(x, ()))
    ]
    return list(inputs), outputs


def _members(nodes: Sequence[PlanNode], consumers: Any, fetched: set[PlanOutput]) -> Members:
    """The nodes with their borders, as a cluster."""
    inputs, outputs = _borders(nodes, consumers, fetched)
    places = {x: i for i, x in enumerate(inputs)}
    steps = []
    for i, node in enumerate(nodes, len(inputs)):
        operation, attributes, count = _operation(node)
        operands = tuple([places[x] for x in node.inputs[:count]])
        result = node.outputs[0].dtype.name
        steps.append(Step(operation, operands, result, tuple(sorted(attributes.items()))))
        places[node.outputs[0]] = i
    arrays = tuple([Array(x.dtype.base_dtype.name, _known(x.dims)) for x in inputs])
    taken = tuple([places[x] for x in outputs])
    return Members(
        nodes, inputs, outputs, Cluster(_known(nodes[0].outputs[0].dims), arrays, tuple(steps), taken)
    )


# ---- replacement


def _put_in(subgraph: Subgraph, groups: Sequence[_Group]) -> bool:
    """Puts the clusters in the places of their last members; whether all nodes still read what they read."""
    consumers, fetched = subgraph.consumers(), set(subgraph.fetches)
    place = {node: i for i, node in enumerate(subgraph.nodes)}
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    replacements: dict[PlanNode, list[PlanNode]] = {}
    made = []
    for group in groups:
        members = _members(sorted(group.nodes, key=place.__getitem__), consumers, fetched)
        new = _node(subgraph, members)
        for node in members.nodes:
            places[node], replacements[node] = [], [new]
        places[members.nodes[-1]] = [new]
        replaced.update(zip(members.outputs, new.outputs))
        made.append((members, new))

    def arrange() -> None:
        subgraph.nodes = _in_order(subgraph.nodes)

    if not substitute_in_order(subgraph, places, replaced, replacements, arrange):
        return False
    for members, new in made:
        for node in members.nodes:
            subgraph.log.append(("join_clusters", node.name, f"one of {len(members.nodes)} in {new.name}"))
    return True


def _node(subgraph: Subgraph, members: Members) -> PlanNode:
    attributes = {
        "Tin": [x.dtype.base_dtype for x in members.inputs],
        "Tout": [x.dtype for x in members.outputs],
        "operations": repr(members.cluster),
        "members": members,
    }
    sizes = (len(members.inputs),)
    return subgraph.new_node(
        cluster_op, list(members.inputs), attributes, like=members.nodes[-1], group_sizes=sizes
    )


def _in_order(nodes: Sequence[PlanNode]) -> list[PlanNode]:
    """The nodes, each after what it takes, but for what comes from a loop's iteration before."""
    done: dict[PlanNode, None] = {}
    for node in nodes:
        stack = [node]
        while stack:
            top = stack[-1]
            waiting = [x for x in top.sources() if x not in done and x.type not in NEXT_ITERATIONS]
            if waiting:
                stack += reversed(waiting)
            else:
                done.setdefault(stack.pop())
    return list(done)
