"""Accumulated parts: a loop that adds up concatenations adds up their parts, which are concatenated after it.

    Enter(0) → Merge → Switch → Add(·, ConcatV2(a, b)) → NextIteration;  Switch:0 → Exit

becomes such a variable for `a`, one for `b`, and a ConcatV2 of their Exits; likewise with Pack. Gradients are
so by a variable that the body reads and splits, as the cells of `tf.keras` do with kernels and biases; other
passes then find sums of matrix products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.frames import is_head
from flowstone.rewriting.analyses.loop_variables import LoopVariable, loop_variables
from flowstone.rewriting.patterns import remove_unneeded, substitute

__all__ = ["accumulate_parts"]

_JOINING = {"ConcatV2": 1, "Pack": 0}  # how many inputs are no parts: the axis


class _Joined(NamedTuple):
    """A loop's variable that is a sum of joined parts."""

    variable: LoopVariable
    add: PlanNode
    join: PlanNode

    @property
    def parts(self) -> list[PlanOutput]:
        return self.join.inputs[: len(self.join.inputs) - _JOINING[self.join.type]]


def accumulate_parts(subgraph: Subgraph) -> None:
    """Replaces sums of joined parts in loops by sums of the parts."""
    if not any(is_head(node) for node in subgraph.nodes):
        return
    while found := _find(subgraph):  # parts may be joined in turn
        places: dict[PlanNode, list[PlanNode]] = {}
        replaced: dict[PlanOutput, PlanOutput] = {}
        for each in found:
            _replace(subgraph, each, places, replaced)
        subgraph.invalidate()
        is_admitted = substitute(subgraph, places, replaced)
        for each in found:
            if each.add not in subgraph.nodes:
                subgraph.log.append(("accumulate_parts", each.add.name, f"adds up {len(each.parts)} parts"))
        remove_unneeded(subgraph)
        if not is_admitted:
            break


def _find(subgraph: Subgraph) -> list[_Joined]:
    consumers = subgraph.consumers()
    waited = {control for node in subgraph.nodes for control in node.control_inputs} | set(subgraph.targets)
    fetched = set(subgraph.fetches)

    def is_alone(x: PlanOutput, consumer: PlanNode) -> bool:
        return consumers.get(x) == [consumer] and x not in fetched and x.op not in waited

    def joined(variable: LoopVariable) -> _Joined | None:
        add, initial = variable.next_value.op, variable.enter.inputs[0].op
        if (
            variable.exit is None
            or not add.declaration.adds
            or len(add.inputs) != 2
            or variable.exit in waited
        ):
            return None
        other = next((x for x in add.inputs if x is not variable.value), None)
        if other is None or other.op.type not in _JOINING or not is_alone(other, add):
            return None
        found = _Joined(variable, add, other.op)
        links = (
            (variable.value, add),
            (add.outputs[0], variable.next),
            (variable.merge.outputs[0], variable.switch),
        )
        if not all(is_alone(*link) for link in links) or variable.next in waited:
            return None
        if not initial.is_constant or np.any(initial.attributes["value"]):
            return None
        if other.dims is None or other.dims != variable.enter.outputs[0].dims or None in other.dims:
            return None
        known = all(part.dims is not None and None not in part.dims for part in found.parts)
        if not known or (_JOINING[found.join.type] and not found.join.inputs[-1].op.is_constant):
            return None
        return found

    return [found for each in loop_variables(subgraph, consumers) if (found := joined(each)) is not None]


def _replace(
    subgraph: Subgraph,
    found: _Joined,
    places: dict[PlanNode, list[PlanNode]],
    replaced: dict[PlanOutput, PlanOutput],
) -> None:
    old, join = found.variable, found.join
    assert old.exit is not None
    kind = {"T": join.dtype(0)}

    def node(op_type: str, inputs: list[PlanOutput], like: PlanNode, attributes: dict[str, Any]) -> PlanNode:
        sizes = (len(inputs),) if op_type == "Merge" else None
        new = subgraph.new_node(registry[op_type], inputs, attributes, like, sizes)
        new.control_inputs = list(like.control_inputs)
        places.setdefault(like, [like] if like is old.enter else []).append(new)
        return new

    leaving = []
    for part in found.parts:
        zeros = subgraph.new_constant(np.zeros(part.dims, part.dtype.as_numpy_dtype), old.enter, "zeros")
        places.setdefault(old.enter, [old.enter]).append(zeros)
        enter = node("Enter", [zeros.outputs[0]], old.enter, {**old.enter.attributes, **kind})
        merge = node("Merge", [enter.outputs[0]] * 2, old.merge, {"N": 2, **kind})
        switch = node("Switch", [merge.outputs[0], old.switch.inputs[1]], old.switch, kind)
        added = node("AddV2", [switch.outputs[1], part], found.add, kind)
        added.control_inputs += join.control_inputs
        following = node("NextIteration", [added.outputs[0]], old.next, kind)
        merge.inputs[1] = following.outputs[0]
        leaving.append(node("Exit", [switch.outputs[0]], old.exit, kind).outputs[0])
    places[join] = []
    count = len(leaving)
    axis = [] if not _JOINING[join.type] else [join.inputs[-1].op]
    constants = [subgraph.new_constant(each.attributes["value"], old.exit, "axis") for each in axis]
    inputs = [*leaving, *(each.outputs[0] for each in constants)]
    sizes = (count, *(1 for _ in constants))
    whole = subgraph.new_node(join.declaration, inputs, join.attributes, old.exit, sizes)
    places[old.exit] += [*constants, whole]
    replaced[old.exit.outputs[0]] = whole.outputs[0]
