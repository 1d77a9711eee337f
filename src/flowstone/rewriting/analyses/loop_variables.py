"""Loop variables: what a loop hands from one iteration to the next (white paper 4.4).

Enter(first value) → Merge → Switch → … → NextIteration → Merge;  Switch:0 → Exit

The Switch is not there where only the loop's condition reads the value, as in ``while error > tolerance``.
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.framework.graphs.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.frames import ENTERS, EXITS, NEXT_ITERATIONS, is_head, is_loop_switch


class LoopVariable(NamedTuple):
    """The nodes of one variable; `exit` is None where its last value is not used."""

    enter: PlanNode
    merge: PlanNode
    switch: PlanNode
    next: PlanNode
    exit: PlanNode | None

    @property
    def value(self) -> PlanOutput:
        """The variable in the loop's body."""
        value: PlanOutput = self.switch.outputs[1]
        return value

    @property
    def names(self) -> tuple[PlanOutput, ...]:
        """The outputs that are the variable's value in an iteration."""
        return (self.merge.outputs[0], *self.switch.outputs)

    @property
    def next_value(self) -> PlanOutput:
        """What it is in the iteration that follows."""
        value: PlanOutput = self.next.inputs[0]
        return value


class ConditionVariable(NamedTuple):
    """The nodes of a variable that only the loop's condition reads."""

    enter: PlanNode
    merge: PlanNode
    next: PlanNode
    exit: None = None

    @property
    def names(self) -> tuple[PlanOutput, ...]:
        """The outputs that are the variable's value in an iteration."""
        return (self.merge.outputs[0],)

    @property
    def next_value(self) -> PlanOutput:
        """What it is in the iteration that follows."""
        value: PlanOutput = self.next.inputs[0]
        return value


def loop_variables(subgraph: Subgraph, consumers: Consumers) -> list[LoopVariable]:
    """All variables of all loops of the usual form; two that begin alike may share their Enter.

    `consumers`: who takes each output.
    """
    found = (_variable(node, consumers) for node in subgraph.nodes if is_head(node))
    return [variable for variable in found if variable is not None]


def condition_variables(subgraph: Subgraph, consumers: Consumers) -> list[ConditionVariable]:
    """The variables of loops that only the condition reads; `consumers`: who takes each output."""
    found = []
    for head in subgraph.nodes:
        ends = _ends(head, consumers) if is_head(head) else None
        if ends is not None and not any(is_loop_switch(node) for node in consumers.get(head.outputs[0], ())):
            found.append(ConditionVariable(ends[0], head, ends[1]))
    return found


def _variable(head: PlanNode, consumers: Consumers) -> LoopVariable | None:
    ends = _ends(head, consumers)
    switches = [node for node in consumers.get(head.outputs[0], ()) if is_loop_switch(node)]
    if ends is None or len(switches) != 1:
        return None
    leaving = consumers.get(switches[0].outputs[0], [])
    if len(leaving) > 1 or any(node.type not in EXITS for node in leaving):
        return None
    enter, following = ends
    return LoopVariable(enter, head, switches[0], following, leaving[0] if leaving else None)


def _ends(head: PlanNode, consumers: Consumers) -> tuple[PlanNode, PlanNode] | None:
    """The Enter and the NextIteration that a head has, if these are all that it has and takes."""
    ends: dict[bool, PlanNode] = {x.op.type in NEXT_ITERATIONS: x.op for x in head.inputs}
    enter, following = ends.get(False), ends.get(True)
    if enter is None or following is None or enter.type not in ENTERS or consumers.get(head.outputs[1]):
        return None
    return enter, following


def entered(x: PlanOutput) -> PlanOutput | None:
    """What `x` is outside the loop, if it is a value that comes in unchanged for all iterations."""
    if x.op.type in ENTERS and x.op.attributes["is_constant"]:
        source: PlanOutput = x.op.inputs[0]
        return source
    return None


def constant_of(x: PlanOutput) -> float | None:
    """The number that `x` is known to be before the step, through Enters; None if it is no such scalar."""
    while x.op.type in ENTERS:
        x = x.op.inputs[0]
    value = x.op.attributes["value"] if x.op.is_constant else None
    if value is None or value.shape != () or value.dtype.kind not in "if":
        return None
    number: float = value.item()
    return number
