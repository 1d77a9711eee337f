"""Counted loops: their number of iterations, and what they and their gradients do in one iteration.

    t ← 0;  while t < T:  …;  t ← t + 1

T being known before the step. The gradient's loop counts the same number down to one and pops from stacks
what the loop itself pushed; where each stack is pushed to once and popped from once, that is the same value
of the same iteration. So both bodies can be written as one iteration without stacks, in which rewrites of
loops look for what they know (`lstm_loop_layers.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from flowstone.framework.graphs.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.branches import TRUE, Liveness
from flowstone.rewriting.analyses.frames import ENTERS, EXITS, Frame, Frames
from flowstone.rewriting.analyses.loop_variables import LoopVariable, constant_of, entered, loop_variables

_STORING = frozenset({"read", "write", "push", "pop"})
_WAITED_FOR = frozenset({"trigger", "no_op"})  # roles


class Loop(NamedTuple):
    """A loop outside of others, with all its nodes, Exits among them, and its variables."""

    frame: Frame
    nodes: list[PlanNode]
    variables: list[LoopVariable]

    def counters(self) -> list[LoopVariable]:
        """The variables that count iterations from zero."""
        return [each for each in self.variables if _counts(each)]


class Loops:
    """The innermost loops of a subgraph that are in no other (`by_frame`), and who takes each output."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph, self.consumers = subgraph, subgraph.consumers()
        self.frames, self.liveness = subgraph.analysis(Frames), subgraph.analysis(Liveness)
        homes: dict[Frame, list[PlanNode]] = {}
        for node in subgraph.nodes:
            frame = self.frames.home(node)
            if frame is not None:
                homes.setdefault(frame, []).append(node)
        inner = {frame.parent for frame in homes}
        variables: dict[Frame, list[LoopVariable]] = {}
        for each in loop_variables(subgraph, self.consumers):
            variables.setdefault(self.frames.of[each.merge], []).append(each)  # type: ignore[arg-type]
        self.by_frame = {
            frame: Loop(frame, nodes, variables[frame])
            for frame, nodes in homes.items()
            if frame.parent is None and frame not in inner and frame in variables
        }


def is_complete(loop: Loop, loops: Loops) -> bool:
    """Whether all heads are variables', the loop runs in every step, and nobody outside takes anything but
    what leaves by Exits."""
    inner = set(loop.nodes)
    roles = [node.declaration.role for node in loop.nodes]
    if not roles.count("merge") == roles.count("switch") == len(loop.variables):
        return False
    if any(node.type in ENTERS and loops.liveness.node(node) != TRUE for node in loop.nodes):
        return False
    exits = {each.exit for each in loop.variables}
    for node in loop.nodes:
        if node.type in EXITS:
            if node not in exits:
                return False
        elif any(consumer not in inner for x in node.outputs for consumer in loops.consumers.get(x, ())):
            return False
    fetched = {x.op for x in loops.subgraph.fetches}
    return not any(node in fetched and node not in exits for node in loop.nodes)


def _counts(variable: LoopVariable) -> bool:
    add = variable.next_value.op
    if variable.value.dtype not in (dtypes.int32, dtypes.int64) or add.type not in ("Add", "AddV2"):
        return False
    others = [x for x in add.inputs if x is not variable.value]
    return len(others) == 1 and constant_of(others[0]) == 1 and constant_of(variable.enter.outputs[0]) == 0


def steps_of(loop: Loop) -> int | None:
    """The number of iterations, if it is known: the least of the limits of counters."""
    limits = []
    counters = {each.merge.outputs[0] for each in loop.counters()}
    for node in conditions(loop):
        if node.type == "Less" and node.inputs[0] in counters:
            limits.append(constant_of(node.inputs[1]))
        elif node.type != "LogicalAnd":
            return None
    known = [int(limit) for limit in limits if limit is not None]
    return min(known) if known and len(known) == len(limits) else None


def most_steps_of(loop: Loop) -> int | None:
    """A number of iterations that there are no more than, if one is known: of a loop that also asks for
    something else."""
    counters = {each.merge.outputs[0] for each in loop.counters()}
    asked = [x for x in conditions(loop) if x.type == "Less" and x.inputs[0] in counters]
    known = [limit for x in asked if (limit := constant_of(x.inputs[1])) is not None]
    return min(map(int, known)) if known else None


def storing(node: PlanNode) -> str:
    """What the node does with a stack or an array whose handle it takes: "read", "write", "push" or "pop";
    '' if it does something else, or takes a reference."""
    container = node.declaration.container
    return container if container in _STORING and node.dtype(0) is dtypes.resource else ""


def conditions(loop: Loop) -> list[PlanNode]:
    """What the predicate is made of, through conjunctions."""
    found: list[PlanNode] = [loop.variables[0].switch.inputs[1].op.inputs[0].op]
    for node in found:
        if node.type == "LogicalAnd":
            found += [x.op for x in node.inputs]
    return found


def arithmetic(loop: Loop) -> Iterable[PlanOutput]:
    """What counts iterations and compares their number."""
    yield from (each.next_value for each in loop.counters())
    yield from (node.outputs[0] for node in conditions(loop))


def countdown_of(forward: Loop, backward: Loop) -> LoopVariable | None:
    """The variable that counts the iterations of the loop itself down to one."""
    exits = {each.exit for each in forward.counters()}
    (predicate,) = conditions(backward)[:1]
    for each in backward.variables:
        if each.enter.inputs[0].op not in exits or predicate.type != "GreaterEqual":
            continue
        subtract = each.next_value.op
        counts = subtract.type == "Sub" and subtract.inputs[0] is each.value
        compared = predicate.inputs[0] is each.merge.outputs[0]
        if counts and compared and constant_of(subtract.inputs[1]) == constant_of(predicate.inputs[1]) == 1:
            return each
    return None


def pops_of(loop: Loop, consumers: Consumers) -> dict[PlanNode, PlanOutput] | None:
    """What is pushed, by the nodes that pop it; None if a stack has other users."""
    found: dict[PlanNode, PlanOutput] = {}
    for push in loop.nodes:
        if storing(push) != "push":
            continue
        handle = entered(push.inputs[0])
        if handle is None or consumers.get(push.outputs[0]):
            return None
        users = [user for enter in consumers[handle] for user in consumers.get(enter.outputs[0], ())]
        pops = [user for user in users if storing(user) == "pop"]
        if any(node.type not in ENTERS for node in consumers[handle]) or len(users) != 2 or len(pops) != 1:
            return None
        found[pops[0]] = push.inputs[1]
    return found


def same_constants(forward: list[PlanNode], backward: list[PlanNode]) -> dict[PlanOutput, PlanOutput]:
    """What is brought into the gradient's loop that is also brought into the loop itself."""
    here, there = ({x: entered(x) for node in nodes for x in node.outputs} for nodes in (backward, forward))
    by_source = {source: x for x, source in there.items() if source is not None}
    return {x: by_source[source] for x, source in here.items() if source is not None and source in by_source}


def copied(nodes: list[PlanNode], known: dict[PlanOutput, PlanOutput]) -> list[PlanNode]:
    """Copies of those that compute, taking what is `known` for their inputs; adds their outputs to that."""
    copies = []
    for node in nodes:
        declaration = node.declaration
        if declaration.in_control_flow or declaration.role in _WAITED_FOR or storing(node):
            continue
        inputs = [known.get(x, x) for x in node.inputs]
        sizes, attributes = node.group_sizes, node.attributes
        copy = PlanNode(declaration, node.name, inputs, attributes, sizes, [], node.device, node.order)
        for x in node.outputs:
            known[x] = copy.add_output(x.dtype, x.dims)
        copies.append(copy)
    return copies
