"""Effects of loops: what has an effect in every iteration of a loop goes on to have it in every one.

A node is in a loop by what it takes and waits for (`analyses/frames.py`). Where a pass finds that all of this
is constant, the node would leave the loop. A random number that is drawn, an array that is made or a line
that is printed must not, nor what enters a loop inside. So each pass that changes a graph is followed by
`hold`: a node that has left its loop waits for a variable of the loop from then on, in the body or, where it
was, before the predicate. What has no effect is computed by each loop that takes it: only an Enter leads
into one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES
from flowstone.rewriting.analyses.frames import (
    ENTERS,
    LOOP_TYPES,
    Frame,
    Frames,
    is_head,
    is_loop_switch,
    order_by_frames,
)

_NONE: frozenset[str] = frozenset()
_FLOW = LOOP_TYPES | MERGES | SWITCHES


class Home(NamedTuple):
    """The loop that a node is in: its frame's name and depth, and whether the node is in the body."""

    frame: str
    depth: int
    in_body: bool


class LoopEffects:
    """The nodes with effects that are in loops, and the `homes` where they are."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.homes: dict[PlanNode, Home] = {}
        frames = self._frames = subgraph.analysis(Frames)
        if not frames.exist:
            return
        of = frames.of
        bodies: dict[PlanNode, frozenset[str]] = {}  # the loops whose predicates a node comes after
        for node in subgraph.nodes:
            after: frozenset[str] = _NONE
            for x in node.inputs:
                before = bodies.get(x.op, _NONE)
                if before is not after:
                    after |= before
            for control in node.control_inputs:
                before = bodies.get(control, _NONE)
                if before is not after:
                    after |= before
            frame = of[node]
            if frame is not None and node.type in ENTERS:
                frame = frame.parent
            if frame is not None:
                if is_loop_switch(node):
                    after |= {frame.name}
                elif node.type in ENTERS or not (node.declaration.is_pure or node.type in _FLOW):
                    self.homes[node] = Home(frame.name, frame.depth, frame.name in after)
            if after:
                bodies[node] = after

    def without(self, gone: Collection[PlanNode]) -> LoopEffects | None:
        """What is left when nodes that no other takes go; None if it must be found anew."""
        if not self._frames.stay(gone):
            return None
        rest = LoopEffects.__new__(LoopEffects)
        rest._frames = self._frames
        rest.homes = {node: home for node, home in self.homes.items() if node not in gone}
        return rest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoopEffects) and self.homes == other.homes


def hold(subgraph: Subgraph, before: LoopEffects) -> None:
    """Brings nodes back into the loops that they were in `before` a pass, and have left."""
    frames = subgraph.analysis(Frames)
    if not frames.exist:
        return
    tied = False
    for node in [each for each in subgraph.nodes if each in before.homes]:
        home = before.homes[node]
        frame = _around(frames, node)
        if frame is None or frame.depth < home.depth:
            variable = _variable(subgraph, frames, home)
            if variable is not None:
                _tie(subgraph, node, variable, home.in_body)
                tied = True
    if tied:
        order_by_frames(subgraph)
    _repeat(subgraph)


def _repeat(subgraph: Subgraph) -> None:
    """Has loops compute for themselves what they take from outside without an Enter."""
    frames = subgraph.analysis(Frames)
    copies: dict[tuple[PlanNode, str], PlanNode] = {}
    nodes: list[PlanNode] = []
    for node in subgraph.nodes:
        home = _around(frames, node) if node.type in ENTERS else frames.home(node)
        if home is not None and any([frames.of.get(x.op) is not home for x in node.inputs]):
            node.inputs[:] = [_inside(subgraph, x, home, (frames, copies, nodes)) for x in node.inputs]
        nodes.append(node)
    if copies:
        subgraph.nodes = nodes
        order_by_frames(subgraph)


def _inside(
    subgraph: Subgraph,
    x: PlanOutput,
    home: Frame,
    known: tuple[Frames, dict[tuple[PlanNode, str], PlanNode], list[PlanNode]],
) -> PlanOutput:
    """The same as `x`, computed in the loop `home`."""
    frames, copies, nodes = known
    node, frame = x.op, frames.of.get(x.op)
    if node.is_constant or node.type in _FLOW or (frame is not None and frame.depth >= home.depth):
        return x
    if not node.declaration.is_pure or node.is_feed or not node.inputs:
        return x
    if (node, home.name) not in copies:
        inputs = [_inside(subgraph, y, home, known) for y in node.inputs]
        variable = _variable(subgraph, frames, Home(home.name, home.depth, False))
        if variable is None:
            return x
        copy = subgraph.new_node(
            node.declaration, inputs, node.attributes, node, group_sizes=tuple(node.group_sizes)
        )
        copy.control_inputs = list(node.control_inputs)
        nodes.append(_waiting(subgraph, copy, variable.outputs[0]))
        nodes.append(copy)
        copies[node, home.name] = copy
        subgraph.log.append(("hold_effects", node.name, "is computed in a loop"))
    return copies[node, home.name].outputs[x.value_index]


def _around(frames: Frames, node: PlanNode) -> Frame | None:
    """The frame that the node runs in; for an Enter the one that it leads away from."""
    frame = frames.of.get(node)
    return frame.parent if frame is not None and node.type in ENTERS else frame


def _variable(subgraph: Subgraph, frames: Frames, home: Home) -> PlanNode | None:
    """A Switch of the loop's body, or a Merge of its head; None if the loop is gone."""
    asked = is_loop_switch if home.in_body else is_head
    for node in subgraph.nodes:
        frame = frames.of.get(node)
        if frame is not None and frame.name == home.frame and asked(node):
            if not node.outputs[0].dtype.is_ref:
                return node
    return None


def _tie(subgraph: Subgraph, node: PlanNode, variable: PlanNode, in_body: bool) -> None:
    """Has the node wait for the variable's value in an iteration."""
    pivot = _waiting(subgraph, node, variable.outputs[1 if in_body else 0])
    nodes = list(subgraph.nodes)
    nodes.insert(nodes.index(node), pivot)
    subgraph.nodes = nodes
    subgraph.log.append(("hold_effects", node.name, "stays in its loop"))


def _waiting(subgraph: Subgraph, node: PlanNode, value: PlanOutput) -> PlanNode:
    """An Identity of the value, which the node waits for from now on."""
    pivot = subgraph.new_node(registry["Identity"], [value], {"T": value.dtype}, like=node)
    node.control_inputs = [*node.control_inputs, pivot]
    return pivot
