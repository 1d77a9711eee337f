"""Regions of a subgraph become nodes: one `_Program` each, in the place of its last member.

Plans say of each which nodes it stands for, and how many loops and branches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.lowering.programs.program_kernel import drawing_program_op, program_op
from flowstone.lowering.programs.program_members import Packed, ProgramMembers
from flowstone.rewriting.analyses.branches import MERGES
from flowstone.rewriting.analyses.frames import order_by_edges, order_by_frames
from flowstone.rewriting.patterns import substitute_in_order

__all__ = ["put_in"]


def put_in(subgraph: Subgraph, regions: Sequence[ProgramMembers], pass_name: str) -> bool:
    """Puts programs, in an order of their edges, in the places of their last members, or else of the first
    ones behind all changes of state that they come after; whether all nodes still read what they read. If
    not, nothing is changed."""
    return any(_put(subgraph, regions, pass_name, early) for early in (False, True))


def _put(subgraph: Subgraph, regions: Sequence[ProgramMembers], pass_name: str, early: bool) -> bool:
    number = {node: i for i, node in enumerate(subgraph.nodes)}
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    replacements: dict[PlanNode, list[PlanNode]] = {}
    new_nodes = []
    packs: dict[Packed, PlanOutput] = {}
    takers, fetched, functions = subgraph.consumers(), set(subgraph.fetches), dict[Any, Any]()
    for members in regions:
        members.functions = functions
        new = _node(subgraph, members, [packs[each] for each in members.packed_inputs])
        packs.update(zip(members.packed_outputs, new.outputs[len(members.outputs) :]))
        inside = _taken_away(members, takers, fetched)
        waits = (x for node in members.nodes for x in node.control_inputs if x not in inside)
        new.control_inputs = list(dict.fromkeys(waits))
        for node in inside:
            is_free = node.is_constant and not node.control_inputs  # those who wait for it wait for nothing
            places[node], replacements[node] = [], [] if is_free else [new]
        old = [node for node in members.nodes if node in inside]
        place = old[-1]
        if early:
            last = max([number[node] for node in _changes_before(new) if node in number], default=-1)
            behind = [node for node in old if number[node] > last]
            place = min(behind, key=number.__getitem__, default=place)
        places[place] = [new]
        replaced.update(zip(members.outputs, new.outputs))
        new_nodes.append((new, members))

    def arrange() -> None:
        for new, _ in new_nodes:
            for x in new.inputs:
                if x.op.is_constant:  # which waited for a loop or branch that is no more
                    x.op.control_inputs = []
        subgraph.nodes = order_by_edges(subgraph.nodes)  # frames are told in an order of the edges
        order_by_frames(subgraph)
        subgraph.nodes = order_by_edges(subgraph.nodes)

    if not substitute_in_order(subgraph, places, replaced, replacements, arrange, whole=True):
        return False
    for new, members in new_nodes:
        subgraph.log.append((pass_name, new.name, _described(members)))
    return True


def _changes_before(node: PlanNode) -> list[PlanNode]:
    """The nodes with effects, or changes of state, that lead to a node."""
    found, stack = set[PlanNode](), list(node.sources())
    while stack:
        top = stack.pop()
        if top not in found:
            found.add(top)
            stack += top.sources()
    return [each for each in found if not each.declaration.is_pure and each.inputs]


def _described(members: ProgramMembers) -> str:
    loops = len({m.attributes["frame_name"] for m in members.nodes if m.declaration.role == "enter"})
    branches = sum(node.type in MERGES for node in members.nodes) - sum(
        x.op.declaration.role == "next_iteration" for m in members.nodes for x in m.inputs
    )
    parts = f", {loops} loops and {branches} merges of branches" if loops or branches else ""
    return f"{len(members.nodes)} nodes{parts} as machine code"


def _taken_away(
    members: ProgramMembers, takers: Mapping[PlanOutput, Sequence[PlanNode]], fetched: set[PlanOutput]
) -> set[PlanNode]:
    """The members but for constants that others take, too."""
    inside = set(members.nodes)

    def is_kept(x: PlanOutput) -> bool:
        return x in fetched or any(node not in inside for node in takers.get(x, ()))

    return {node for node in inside if not node.is_constant or not is_kept(node.outputs[0])}


def _node(subgraph: Subgraph, members: ProgramMembers, packs: Sequence[PlanOutput]) -> PlanNode:
    inputs = [*members.inputs, *packs]
    attributes: dict[str, Any] = {
        "Tin": [x.dtype.base_dtype for x in inputs],
        "Tout": [x.dtype for x in (*members.outputs, *[pack[0] for pack in members.packed_outputs])],
        "operations": repr(members.program)[:200],
        "members": members,
    }
    if members.drawing:
        attributes["effects"] = [node.origin.name for node in members.drawing]
    last = next(node for node in reversed(members.nodes) if node.outputs)
    kind = drawing_program_op if members.drawing else program_op
    return subgraph.new_node(kind, inputs, attributes, like=last, group_sizes=(len(inputs),))
