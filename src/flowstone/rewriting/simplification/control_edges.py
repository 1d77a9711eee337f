"""Idle control edges: gradients and optimisers add many, and they keep other passes from moving nodes.

A node that waits for another has to only for what that one does, or follows: a change or a use of state, or
another effect. Where all of these come before the node anyway, through what it takes, the edge is dropped. So
it is where nothing from the node on can tell the order (`change_conflicts.py`), unless the step runs in
parts, of which one may come late.
Among conditionals and loops the edge stays if it says when the node is alive; a loop's variables count as
effects, since the iteration before may hold some, and so does its predicate: what waits for the body must not
run in the iteration that only finds the end. A node that takes nothing waits as it did: it may stand for a
group, and in a loop the edge alone says where it belongs. A pop of a loop's gradient that the next iteration
waits for, and that alone takes from its stack, is in order anyway: what only computes need not wait for it. A
constant of a branch or a body need not wait if all that take it are there anyway: they wait in its stead,
mostly idly. So it is no unit of its own in the executor (`runtime/execution/units.py`), nor is the pivot that
it waited for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.rewriting.analyses.branches import MERGES, TRUE, Liveness, conjunction
from flowstone.rewriting.analyses.frames import ENTERS, LOOP_TYPES, NEXT_ITERATIONS, Frames, is_head
from flowstone.rewriting.analyses.state_access import StateAccess
from flowstone.rewriting.patterns import remove_unneeded
from flowstone.rewriting.simplification.change_conflicts import ChangeConflicts

_POP, _STACK = "StackPopV2", "StackV2"  # gradients of loops make these


def drop_waits(subgraph: Subgraph) -> None:
    """Removes control edges that order nothing."""
    if not any(node.control_inputs for node in subgraph.nodes):
        return
    remove_unneeded(subgraph)  # what is not needed waits, and is waited for, in vain
    _free_constants(subgraph)
    access, liveness = subgraph.analysis(StateAccess), subgraph.analysis(Liveness)
    pops = _settled_pops(subgraph)
    numbers = {node: i for i, node in enumerate(n for n in subgraph.nodes if _matters(n, access))}
    conflicts: ChangeConflicts | None = None  # found when first asked for

    def is_told(left: int, anyway: int, node: PlanNode) -> bool:
        nonlocal conflicts
        if subgraph.in_pieces:
            return True
        conflicts = conflicts or ChangeConflicts(subgraph, numbers)
        return conflicts.exist(left, anyway, node)

    settled = 0  # pops that are in order anyway, as bits
    before: dict[PlanNode, int] = {}  # of each node, as a set of bits: what matters in it and before it
    for node in subgraph.nodes:
        seen = 0
        for x in node.inputs:
            seen |= before.get(x.op, 0)  # none yet for what a loop's iteration before hands on
        if node.control_inputs:
            is_free = node.type not in LOOP_TYPES and not _matters(node, access)
            anyway = settled if is_free else 0
            seen = _without_idle_waits(subgraph, node, (seen, anyway), before, liveness, is_told)
        number = numbers.get(node)
        if number is not None:
            seen |= 1 << number
            settled |= (node in pops) << number
        before[node] = seen
    remove_unneeded(subgraph)


def _free_constants(subgraph: Subgraph) -> None:
    """Lets consumers of a constant wait instead of it, where they are in its frame without it.

    Those who wait for one wait for what it waits for."""
    for node in subgraph.nodes:
        if any([control.is_constant and control.control_inputs for control in node.control_inputs]):
            waits = [y for x in node.control_inputs for y in (x.control_inputs if x.is_constant else [x])]
            node.control_inputs = list(dict.fromkeys(waits))
            subgraph.invalidate()
    held = {x.op for x in subgraph.fetches}.union(subgraph.targets)
    held.update(control for node in subgraph.nodes for control in node.control_inputs)
    tied = {n for n in subgraph.nodes if n.is_constant and n.control_inputs} - held
    if not tied:
        return
    frames, consumers = subgraph.analysis(Frames), subgraph.consumers()

    def is_there_anyway(consumer: PlanNode, constant: PlanNode) -> bool:
        if consumer.type in MERGES or consumer.type in LOOP_TYPES:
            return False
        others = (x.op for x in consumer.inputs if x.op not in tied)
        return any(frames.of.get(other) is frames.of.get(constant) for other in others)

    for constant in [node for node in subgraph.nodes if node in tied]:
        waiting = consumers.get(constant.outputs[0], [])
        if all(is_there_anyway(consumer, constant) for consumer in waiting):
            for consumer in waiting:
                waits = [*consumer.control_inputs, *constant.control_inputs]
                consumer.control_inputs = list(dict.fromkeys(waits))
            constant.control_inputs = []
            subgraph.invalidate()
            subgraph.log.append(("drop_waits", constant.name, "its consumers wait instead of the constant"))


def _without_idle_waits(
    subgraph: Subgraph,
    node: PlanNode,
    known: tuple[int, int],
    before: dict[PlanNode, int],
    liveness: Liveness,
    is_told: Callable[[int, int, PlanNode], bool],
) -> int:
    """Drops the node's idle control edges; returns what matters before the node. `known`: what comes before
    it through its inputs, and what it need not wait for. `is_told(left, others, node)`: whether anything from
    the node on can tell that something has not come before, where others have."""
    kept, (seen, anyway) = [], known
    may_drop = bool(node.inputs) and node.type not in MERGES
    together = functools.reduce(int.__or__, [before[control] for control in node.control_inputs])
    together &= ~(seen | anyway)
    is_any_told = together and may_drop and is_told(together, seen, node)
    for control in node.control_inputs:
        left = before[control] & ~(seen | anyway) if is_any_told else 0
        if may_drop and _says_nothing(node, control, liveness) and not (left and is_told(left, seen, node)):
            continue
        kept.append(control)
        seen |= before[control]
    if len(kept) < len(node.control_inputs):
        count = len(node.control_inputs) - len(kept)
        subgraph.log.append(("drop_waits", node.name, f"{count} of its control edges order nothing"))
        node.control_inputs = kept
        subgraph.invalidate()
    return seen


def _settled_pops(subgraph: Subgraph) -> set[PlanNode]:
    """The pops that the next iteration waits for, directly or by a node that only waits, each the only one in
    its loop to take from its stack; with those that bring the stacks there."""
    pops = [node for node in subgraph.nodes if node.type == _POP]
    if not pops:
        return set()
    awaited: set[PlanNode] = set()
    for node in subgraph.nodes:
        if node.type in NEXT_ITERATIONS:
            awaited.update(node.control_inputs)
            for control in node.control_inputs:
                awaited.update(() if control.inputs else control.control_inputs)
    consumers = subgraph.consumers()
    settled: set[PlanNode] = set()
    for pop in pops:
        enter = pop.inputs[0].op
        if pop in awaited and enter.type in ENTERS and consumers.get(pop.inputs[0]) == [pop]:
            stack = enter.inputs[0].op
            settled.update([pop, enter, *[stack] * (stack.type == _STACK)])
    return settled


def _says_nothing(node: PlanNode, control: PlanNode, liveness: Liveness) -> bool:
    """Whether the node is alive only where the control is, even without the edge."""
    if liveness.trivial or liveness.node(control) == TRUE:
        return True
    alive = TRUE
    for x in node.inputs:
        alive = conjunction(alive, liveness.output(x))
    return conjunction(alive, liveness.node(control)) == alive


def _matters(node: PlanNode, access: StateAccess) -> bool:
    """Whether effects or state must stay on their side of the node."""
    declaration = node.declaration
    if is_head(node) or node.declaration.role == "loop_condition":
        return True
    return node in access.reads or not declaration.is_pure or bool(declaration.reads)
