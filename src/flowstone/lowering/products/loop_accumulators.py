"""Loop accumulators: a loop that adds up matrix products, as the gradient of a recurrence by its weights
does, multiplies their stacked operands afterwards instead.

    Enter(0) → Merge → Switch → Add(·, MatMul(X, D)) → NextIteration;  Switch:0 → Exit

becomes the same loop over a handle (`product_sums.py`), whose total follows the Exit. As in `sums.py`, a
product must be larger than its operands.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.frames import is_head
from flowstone.rewriting.analyses.loop_variables import LoopVariable, loop_variables
from flowstone.rewriting.matching import Op, Pattern, Surroundings, Value
from flowstone.rewriting.patterns import remove_unneeded, substitute

__all__ = ["Accumulator", "accumulator", "stack_accumulators"]

_CALLS = 0.25  # that a pass over a product of unknown operands has to take


class Accumulator(NamedTuple):
    """A loop's variable that is a sum of products."""

    variable: LoopVariable
    product: PlanNode
    add: PlanNode
    exit: PlanNode

    @property
    def begins_with_zero(self) -> bool:
        """Whether its first value is known to be zero."""
        initial = self.variable.enter.inputs[0].op
        return bool(initial.is_constant and not np.any(initial.attributes["value"]))


def stack_accumulators(subgraph: Subgraph) -> None:
    """Replaces sums of products in loops by one product of stacked operands afterwards."""
    if not any(is_head(node) for node in subgraph.nodes):
        return
    consumers = subgraph.consumers()
    around, variables = Surroundings(consumers), loop_variables(subgraph, consumers)
    waited = {control for node in subgraph.nodes for control in node.control_inputs} | set(subgraph.targets)
    fetched = set(subgraph.fetches)
    before: dict[PlanNode, list[PlanNode]] = {}  # nodes of the loop: what takes their places
    replaced: dict[PlanOutput, PlanOutput] = {}
    replacements: dict[PlanNode, list[PlanNode]] = {}  # of nodes that others wait for
    for variable in variables:
        found = accumulator(variable, around)
        if found is None or any(node in waited for node in variable[:4]):
            continue
        inside = (*variable[:4], found.product, found.add)
        if any(x in fetched for node in inside for x in node.outputs) or not _saves_work(found):
            continue
        replacements.update(_replace(subgraph, found, before, replaced))
        subgraph.log.append(("stack_accumulators", found.add.name, "multiplies stacked operands"))
    substitute(subgraph, before, replaced, replacements)
    if before:
        remove_unneeded(subgraph)


class _Sum(NamedTuple):
    """A product added to what was before."""

    product: PlanOutput
    before: PlanOutput
    root: PlanNode


_PRODUCT = Op("MatMul", Value(), Value(), name="product", alone=True)
_SUM = Pattern(Op("Add|AddN|AddV2", _PRODUCT, Value("before")), _Sum)


def accumulator(variable: LoopVariable, around: Surroundings) -> Accumulator | None:
    """The variable as a sum of products, if nothing else takes what it is in between."""
    consumers_of, add = around.consumers, variable.next_value.op
    found = _SUM.match(add, around, before=variable.value)
    if found is None or variable.exit is None or found.product.dtype.base_dtype.is_complex:
        return None
    if consumers_of[variable.value] != [add] or consumers_of[variable.merge.outputs[0]] != [variable.switch]:
        return None
    if consumers_of[add.outputs[0]] != [variable.next]:
        return None
    return Accumulator(variable, found.product.op, add, variable.exit)


def _saves_work(found: Accumulator) -> bool:
    sizes: list[Any] = [found.product.static_shape(0), found.product.static_shape(1)]
    result: Any = found.product.outputs[0].dims
    if result is None or None in result or found.variable.enter.static_shape(0) != result:
        return False
    if None in sizes:  # the step will see; the sum multiplies as soon as the operands are larger
        return machine.current().repays(math.prod(result), _CALLS)
    return bool(sum(math.prod(dims) for dims in sizes) < math.prod(result))


def _replace(
    subgraph: Subgraph,
    found: Accumulator,
    places: dict[PlanNode, list[PlanNode]],
    replaced: dict[PlanOutput, PlanOutput],
) -> dict[PlanNode, list[PlanNode]]:
    """Puts the new nodes in place; returns what those who waited for the old ones wait for now."""
    dtype = found.product.dtype(0)
    old = found.variable
    initial = old.enter.inputs[0]

    def node(
        op_type: str, inputs: list[PlanOutput], like: PlanNode, attributes: dict[str, Any], suffix: str = ""
    ) -> PlanNode:
        sizes = (len(inputs),) if op_type == "Merge" else None
        new = subgraph.new_node(registry[op_type], inputs, attributes, like, sizes, like.name + suffix)
        places.setdefault(like, []).append(new)
        new.control_inputs = list(like.control_inputs)
        return new

    transposes = {key: found.product.attributes[key] for key in ("transpose_a", "transpose_b")}
    handle = node("_ProductSum", [initial], old.merge, {"T": dtype, **transposes}, "/products")
    resource = {"T": dtypes.resource}
    enter = node("Enter", [handle.outputs[0]], old.merge, {**old.enter.attributes, **resource})
    handle.control_inputs = enter.control_inputs = list(old.enter.control_inputs)
    merge = node("Merge", [enter.outputs[0]] * 2, old.merge, {"N": 2, **resource})
    switch = node("Switch", [merge.outputs[0], old.switch.inputs[1]], old.switch, resource)
    operands = list(found.product.inputs)
    added = node("_ProductSumAdd", [switch.outputs[1], *operands], found.add, {"T": dtype})
    added.control_inputs += found.product.control_inputs
    following = node("NextIteration", [added.outputs[0]], old.next, resource)
    merge.inputs[1] = following.outputs[0]
    leaving = node("Exit", [switch.outputs[0]], found.exit, resource)
    attributes = {"T": dtype, "shape": found.product.outputs[0].dims, "from_zero": found.begins_with_zero}
    total = node("_ProductSumTotal", [leaving.outputs[0]], found.exit, attributes, "/total")
    places[found.product] = []
    added.control_inputs = list(dict.fromkeys([*added.control_inputs, *found.product.control_inputs]))
    replaced[found.exit.outputs[0]] = total.outputs[0]
    sources = dict.fromkeys([*(x.op for x in operands), *found.product.control_inputs])
    return {found.product: list(sources), found.add: [added], found.exit: [total]}
