"""Who reads and who changes state, and the order among these that no rewrite may change.

A state is what a reference or a handle stands for, known by its name (`container`, `shared_name`) or by the
node that makes it. A value that shares memory with a state (`x/read` of a variable) counts as reading it
wherever it is used. Nodes with effects of another kind (random numbers, queues, printing) keep the order of
the subgraph among themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph

UNKNOWN = ("", None)  # a state that came from outside: it may be any


def input_positions(node: PlanNode, arguments: Iterable[int]) -> list[int]:
    """The input positions of these declared arguments; a list argument stands for all its inputs."""
    if not node.declaration.has_lists:
        return sorted(arguments)
    chosen = set(arguments)
    positions: list[int] = []
    at = 0
    for argument, size in enumerate(node.group_sizes):
        if argument in chosen:
            positions += range(at, at + size)
        at += size
    return positions


class StateAccess:
    """What each node of a subgraph does to state.

    Fields: `reads` and `writes`, names of states by node (nodes that touch none are left out); `effects`, the
    nodes whose effect is not a declared change of named state.
    """

    def __init__(self, subgraph: Subgraph) -> None:
        self.reads: dict[PlanNode, frozenset[Any]] = {}
        self.writes: dict[PlanNode, frozenset[Any]] = {}
        self.effects: list[PlanNode] = []
        self._of: dict[PlanOutput, frozenset[Any]] = {}
        for node in subgraph.nodes:
            self._visit(node)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StateAccess):
            return False
        return (self.reads, self.writes, self.effects) == (other.reads, other.writes, other.effects)

    def _visit(self, node: PlanNode) -> None:
        of, declaration = self._of, node.declaration
        touched = frozenset().union(*[of[x] for x in node.inputs if x in of]) if of else frozenset()
        if touched:
            self.reads[node] = touched
        if not declaration.is_pure and not declaration.reads:
            self._note_effect(node, touched)
        aliased = input_positions(node, declaration.aliases) if declaration.aliases else ()
        for output in node.outputs:
            if aliased:
                states = frozenset().union(*[of.get(node.inputs[i], frozenset()) for i in aliased])
            elif output.dtype.is_ref or output.dtype.name == "resource":
                states = frozenset([state_name(node)])
            else:
                continue
            if states:
                of[output] = states

    def _note_effect(self, node: PlanNode, touched: frozenset[Any]) -> None:
        mutates = node.declaration.mutates
        changed = touched
        if mutates:
            inputs = [node.inputs[i] for i in input_positions(node, mutates)]
            changed = frozenset().union(*[self._of.get(x, frozenset()) for x in inputs])
        if changed:
            self.writes[node] = changed
        is_handle = not node.inputs and any(
            x.dtype.is_ref or x.dtype.name == "resource" for x in node.outputs
        )
        if not (mutates and changed) and not is_handle and not node.is_feed:
            self.effects.append(node)


def state_name(node: PlanNode) -> Any:
    """What the state of a handle or reference that the node makes is known by."""
    attributes = node.attributes
    if "shared_name" in attributes:
        return attributes.get("container", ""), attributes["shared_name"] or node.name
    if node.is_feed or node.inputs:
        return UNKNOWN
    return "step", node.name


def order_edges(nodes: list[PlanNode]) -> list[tuple[PlanNode, PlanNode]]:
    """Pairs (earlier, later) that keep every change of a state where it is among the uses of that state, and
    other effects in their order.
    """
    access = StateAccess(Subgraph(nodes, [], [], []))
    edges = list(zip(access.effects, access.effects[1:]))
    if not access.writes:
        return edges
    written = frozenset().union(*access.writes.values())
    everything = UNKNOWN in written or any(UNKNOWN in states for states in access.reads.values())
    last_change: dict[Any, PlanNode] = {}
    uses: dict[Any, list[PlanNode]] = {}
    for node in nodes:
        states = access.reads.get(node)
        if states is None:
            continue
        changes = access.writes.get(node, frozenset())
        if everything:  # one that may be any stands for all
            states, changes = frozenset([UNKNOWN]), changes and frozenset([UNKNOWN])
        for state in states if everything else states & written:
            if state in last_change:
                edges.append((last_change[state], node))
            if state in changes:
                edges += [(use, node) for use in uses.pop(state, ())]
                last_change[state] = node
            else:
                uses.setdefault(state, []).append(node)
    return edges
