"""Clusters: element-wise nodes, reductions, programs on rows and products with a column become one node.

    %2 = AddV2(%0, %1) : float32[20,200]
    %3 = Tanh(%2) : float32[20,200]
    %5 = Mul(%3, %4) : float32[20,200]

becomes

    %3 = _Cluster(%0, %1, %2) operations='AddV2+Tanh+Mul' : float32[20,200]

`members.py` says which nodes are a cluster together. They join while nobody else has taken what the cluster
computes: then no path leads out of it and back. They are looked at in an order in which element-wise nodes
come as early as they can. All are in one loop and one branch, and wait for nothing. What takes memory of a
state that the step changes joins those that stand where the state is the same. In steps with loops, and in
those that are several functions, it stays where it is: it is a cluster alone, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.clusters.cluster_kernel import cluster_op
from flowstone.lowering.clusters.members import Facts, Members, borders, facts_of, members_of
from flowstone.lowering.clusters.node_steps import element_of, seen_as, sizes_of
from flowstone.native.clusters import kernels
from flowstone.native.numerics.elements import ELEMENTS, Element
from flowstone.rewriting.analyses.arrivals import arrivals, is_in_pieces
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.analyses.frames import Frames, order_by_edges
from flowstone.rewriting.analyses.state_access import UNKNOWN
from flowstone.rewriting.analyses.state_versions import References, StateVersions, changed_by
from flowstone.rewriting.patterns import remove_unneeded, restoring, substitute_in_order

_MOST_STEPS = 64
_MOST_ARRAYS = 24  # inputs and outputs
_UNEVEN = frozenset({"All", "Any", "Max", "Min", "Prod"})
_WORTH = 8  # of an operation alone, in additions: exponential functions are several times ATen's


def join_clusters(subgraph: Subgraph) -> None:
    """Replaces element-wise nodes that feed each other by clusters, where those can be compiled."""
    if not kernels.is_on():
        return
    for takes_states, is_eager in ((True, True), (False, True), (False, False)):
        found = _Finder(subgraph, takes_states)
        if not found.keys:
            return
        order = _eager_order(subgraph.nodes, found.keys) if is_eager else subgraph.nodes
        clusters = [each for each in found.clusters(order) if found.is_worth_it(each.nodes)]
        if not clusters or _put_in(subgraph, clusters, found):
            break
    remove_unneeded(subgraph)


def _wanted(subgraph: Subgraph) -> set[PlanOutput]:
    """What is computed though no node takes it: fetches, and the outputs of operations that are run."""
    return {*subgraph.fetches, *[x for node in subgraph.targets for x in node.outputs]}


class _Group:
    """Nodes that may become one; `dims`: their shape where all are element-wise on it, else None."""

    def __init__(self) -> None:
        self.nodes: list[PlanNode] = []
        self.dims: Any = None
        self.is_open = True


class _Finder:
    """Finds groups; `keys`: the nodes that may be members, with what members of one group have in common.
    `takes_states`: also of nodes that take memory of a state, in the `spans` of places where that stays."""

    def __init__(self, subgraph: Subgraph, takes_states: bool) -> None:
        self.fetched = _wanted(subgraph)
        self.place = {node: i for i, node in enumerate(subgraph.nodes)}
        self.consumers = subgraph.consumers()
        references = References(memory=True)
        changes: dict[Any, list[int]] = {}
        for i, node in enumerate(subgraph.nodes):
            for state in changed_by(node, references):
                changes.setdefault(state, []).append(i)
        liveness, frames = subgraph.analysis(Liveness), subgraph.analysis(Frames)
        coming = arrivals(subgraph) if is_in_pieces(subgraph) else None
        self.keys: dict[PlanNode, Any] = {}
        self.facts: dict[PlanNode, Facts] = {}
        self.spans: dict[PlanNode, tuple[int, int]] = {}
        are_plain = takes_states and coming is None and not frames.exist and UNKNOWN not in changes
        self._looked_at: dict[tuple[PlanNode, ...], Members | None] = {}
        for node in subgraph.nodes:
            facts = facts_of(node)
            if facts is None:
                continue
            taken = (
                [state for x in node.inputs for state in references[x] if state in changes] if changes else []
            )
            late = 0 if coming is None else coming(node)
            place = node if taken and (not are_plain or UNKNOWN in taken) else None
            if taken and place is None:
                self.spans[node] = self._span([i for state in taken for i in changes[state]], node)
            self.keys[node] = liveness.node(node), frames.home(node), late, node.device, facts.lead, place
            self.facts[node] = facts

    def _span(self, changes: Sequence[int], node: PlanNode) -> tuple[int, int]:
        """The places of the changes between which the node stands."""
        place = self.place[node]
        earlier, later = [i for i in changes if i < place], [i for i in changes if i >= place]
        return max(earlier, default=-1), min(later, default=len(self.place))

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
                    if self.facts[node].kind == "view" or not self.members([node]):
                        continue
                    chosen = _Group()
                    chosen.dims = self._dims(node)
                    groups.append(chosen)
                elif chosen.dims != self._dims(node):
                    chosen.dims = None
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
                result = each if self._fits([*each.nodes, node], each.dims, self._dims(node)) else None
            elif self._fits([*result.nodes, *each.nodes, node], result.dims, each.dims, self._dims(node)):
                result.nodes += each.nodes
                result.dims = result.dims if result.dims == each.dims else None
                for member in each.nodes:
                    group_of[member] = result
                each.nodes = []
        return result

    def _dims(self, node: PlanNode) -> Any:
        """The shape of an element-wise node that takes its inputs in their own shapes; None for others."""
        is_plain = self.facts[node].kind == "element" and all(
            [seen_as(x, node) == sizes_of(x.dims) for x in node.inputs[: element_of(node)[2]]]
        )
        return node.outputs[0].dims if is_plain else None

    def members(self, nodes: Sequence[PlanNode]) -> Members | None:
        """The nodes as a cluster; None if they are not one. The subgraph is still as it was."""
        ordered = tuple(sorted(nodes, key=self.place.__getitem__))
        if ordered not in self._looked_at:
            self._looked_at[ordered] = members_of(ordered, self.facts, self.consumers, self.fetched)
        return self._looked_at[ordered]

    def _fits(self, nodes: Sequence[PlanNode], *dims: Any) -> bool:
        """Whether the nodes are a cluster; `dims`: the shapes of their parts."""
        spans = [self.spans[node] for node in nodes if node in self.spans] if self.spans else []
        if len(nodes) > _MOST_STEPS or not all(
            [earlier < self.place[node] < later for earlier, later in spans for node in nodes]
        ):
            return False
        if dims[0] is not None and all(each == dims[0] for each in dims):
            inputs, outputs = borders(nodes, self.consumers, self.fetched)
            return bool(outputs) and len(inputs) + len(outputs) <= _MOST_ARRAYS
        found = self.members(nodes)
        return found is not None and len(found.inputs) + len(found.outputs) <= _MOST_ARRAYS

    def is_worth_it(self, nodes: Sequence[PlanNode]) -> bool:
        """Whether the nodes are faster as a cluster."""
        if len(nodes) == 1 and self._is_librarys(nodes[0]):
            return False
        costs = [self._cost(node) for node in nodes]
        return sum(cost > 0 for cost in costs) > 1 or max(costs) >= _WORTH

    def _is_librarys(self, node: PlanNode) -> bool:
        """Whether ATen has as fast a kernel for the node."""
        if self.facts[node].kind != "element":
            return False
        return node.inputs[-1].dtype.base_dtype.name in ELEMENTS[element_of(node)[0]].not_alone

    def _cost(self, node: PlanNode) -> int:
        kind = self.facts[node].kind
        if kind == "element":
            element = ELEMENTS[element_of(node)[0]]
            return _WORTH if element.alone or self._is_many(node, element) else element.cost
        if kind == "reduction":
            elements = num_elements(node.inputs[0].dims)
            is_tidy = elements is not None and elements <= machine.current().profile.native_reduction
            return _WORTH if is_tidy or self._is_by_columns(node) else 1
        return 0 if kind == "view" else _WORTH

    def _is_by_columns(self, node: PlanNode) -> bool:
        """Whether a reduction goes over leading axes and is none that ATen does by vectors there."""
        axes, rank = self.facts[node].axes, len(self.facts[node].dims or ())
        return node.type in _UNEVEN and rank - 1 not in axes

    def _is_many(self, node: PlanNode, element: Element) -> bool:
        """Whether a node has so many elements, of such types, that it is faster alone."""
        elements = num_elements(node.outputs[0].dims) or 0
        is_slow = node.inputs[-1].dtype.base_dtype.name in element.alone_if_many
        return is_slow and elements >= machine.current().profile.native_alone


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


# ---- replacement


def _put_in(subgraph: Subgraph, groups: Sequence[_Group], found: _Finder) -> bool:
    """Puts the clusters in the places of their last members; whether all nodes still read what they read."""
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    replacements: dict[PlanNode, list[PlanNode]] = {}
    versions = StateVersions(subgraph) if found.spans else None
    restore = restoring(subgraph)
    taken: dict[PlanNode, frozenset[Any]] = {}
    made = []
    for group in groups:
        members = found.members(group.nodes)
        assert members is not None
        new = _node(subgraph, members)
        for node in members.nodes:
            places[node], replacements[node] = [], [new]
        places[members.nodes[-1]] = [new]
        replaced.update(zip(members.outputs, new.outputs))
        made.append((members, new))
        if versions is not None:
            taken[new] = frozenset().union(*[versions.in_memory_for(node) for node in members.nodes])

    def arrange() -> None:
        subgraph.nodes = order_by_edges(subgraph.nodes)

    if not substitute_in_order(subgraph, places, replaced, replacements, arrange):
        return False
    if taken:
        after = StateVersions(subgraph)
        if any([after.in_memory_for(node) != taken[node] for node in subgraph.nodes if node in taken]):
            restore()
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
