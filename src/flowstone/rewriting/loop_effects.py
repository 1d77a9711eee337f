"""Effects of loops: what has an effect in every iteration of a loop goes on to have it in every one.

A node is in a loop by what it takes and waits for (`analyses/frames.py`). Where a pass finds that all of this
is constant, a node without effect may leave the loop, for what it gives is the same. A random number, an
array that is made or a line that is printed must not. So each pass is followed by `hold`: a node that has
left its loop waits for a variable of the loop from then on, in the body or, where it was, before the
predicate.
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.framework.operation import registry
from flowstone.framework.subgraph import PlanNode, Subgraph
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES
from flowstone.rewriting.analyses.frames import LOOP_TYPES, Frames, is_head, is_loop_switch, order_by_frames

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
        frames = subgraph.analysis(Frames)
        if not frames.exist:
            return
        bodies: dict[PlanNode, frozenset[str]] = {}  # the loops whose predicates a node comes after
        for node in subgraph.nodes:
            bodies[node] = frozenset().union(*[bodies[x] for x in node.sources() if x in bodies])
            frame = frames.of[node]
            if frame is None:
                continue
            if is_loop_switch(node):
                bodies[node] |= {frame.name}
            elif not node.declaration.is_pure and node.type not in _FLOW:
                self.homes[node] = Home(frame.name, frame.depth, frame.name in bodies[node])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoopEffects) and self.homes == other.homes


def hold(subgraph: Subgraph, before: LoopEffects) -> None:
    """Brings nodes back into the loops that they were in `before` a pass, and have left."""
    if not before.homes:
        return
    frames, tied = subgraph.analysis(Frames), False
    for node in list(subgraph.nodes):
        home = before.homes.get(node)
        if home is None:
            continue
        frame = frames.of.get(node)
        if frame is None or frame.depth < home.depth:
            variable = _variable(subgraph, frames, home)
            if variable is not None:
                _tie(subgraph, node, variable, home.in_body)
                tied = True
    if tied:
        order_by_frames(subgraph)


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
    value = variable.outputs[1 if in_body else 0]
    pivot = subgraph.new_node(registry["Identity"], [value], {"T": value.dtype}, like=node)
    node.control_inputs = [*node.control_inputs, pivot]
    nodes = list(subgraph.nodes)
    nodes.insert(nodes.index(node), pivot)
    subgraph.nodes = nodes
    subgraph.log.append(("hold_effects", node.name, "stays in its loop"))
