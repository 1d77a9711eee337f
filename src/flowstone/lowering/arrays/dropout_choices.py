"""Dropout choices: chooses by the difference between random number and rate, without making a mask.

    SelectV2(GreaterEqual(RandomUniform, rate), x, 0)   →   _KeptByMargin(x, Sub(RandomUniform, rate))

A subtraction costs less than a comparison, and the choice a third of what it costs by a mask
(`margins.py`). The gradient chooses by the same margin; in loops it goes through the stack that the mask
went through. Random numbers are never NaN, and a difference is negative exactly where the first number is the
smaller one, so every bit of the result is the same. A rate that is NaN, which no number reaches, counts as
infinite.

TensorFlow 2 writes dropout so, and Flowstone did in graphs that were kept; what TensorFlow 1.15 multiplies by
a mask is left to clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import Consumers, PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import num_elements
from flowstone.ops.arrays.choosing import is_zero
from flowstone.rewriting.loops.loop_stacks import Stack, find_stack
from flowstone.rewriting.patterns import substitute

_MOST = 1 << 22  # elements; a margin takes four times the memory of a mask
_CHOICES = frozenset({"Select", "SelectV2"})


class _Dropout(NamedTuple):
    """A comparison, the choices by it, and the stacks that it is pushed to, with the choices by what is
    popped."""

    comparison: PlanNode
    choices: list[PlanNode]
    stacks: list[Stack]


def choose_by_margins(subgraph: Subgraph) -> None:
    """Replaces the comparisons of dropout and the choices by them."""
    comparisons = [node for node in subgraph.nodes if _is_of_random_numbers(node)]
    if not comparisons:
        return
    consumers, fetched = subgraph.consumers(), set(subgraph.fetches)
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for node in comparisons:
        found = _dropout(node, consumers, fetched)
        if found is not None:
            _replace(subgraph, found, consumers, places, replaced)
            subgraph.log.append(("choose_by_margins", node.name, "chooses by a difference instead of a mask"))
    substitute(subgraph, places, replaced)


def _is_of_random_numbers(node: PlanNode) -> bool:
    if node.type != "GreaterEqual" or node.inputs[0].op.type != "RandomUniform":
        return False
    dims = node.outputs[0].dims
    size = num_elements(dims)
    if node.dtype(0) is not dtypes.float32 or node.inputs[1].dims != () or size is None:
        return False
    return node.inputs[0].dims == dims and size <= _MOST


def _dropout(node: PlanNode, consumers: Consumers, fetched: set[PlanOutput]) -> _Dropout | None:
    condition = node.outputs[0]
    if condition in fetched:
        return None
    found = _Dropout(node, [], [])
    for consumer in consumers.get(condition, ()):
        if consumer.type == "StackPushV2":
            stack = find_stack(_creation(consumer), consumers)
            if stack is None or stack.pushes != [consumer]:
                return None
            popped = [x for pop in stack.pops for x in pop.outputs]
            if fetched.intersection(popped) or not all(
                _is_choice(each, x, condition.dims) for x in popped for each in consumers.get(x, ())
            ):
                return None
            found.stacks.append(stack)
        elif _is_choice(consumer, condition, condition.dims):
            found.choices.append(consumer)
        else:
            return None
    return found


def _creation(push: PlanNode) -> PlanNode:
    handle: PlanNode = push.inputs[0].op
    while handle.inputs and handle.type != "StackV2":
        handle = handle.inputs[0].op
    return handle


def _is_choice(node: PlanNode, condition: PlanOutput, dims: object) -> bool:
    """Whether it chooses between something of these dimensions and zero."""
    if node.type not in _CHOICES or node.inputs[0] is not condition or condition in node.inputs[1:]:
        return False
    return node.inputs[1].dims == dims == node.outputs[0].dims and is_zero(node, 2)


def _replace(
    subgraph: Subgraph,
    found: _Dropout,
    consumers: Consumers,
    places: dict[PlanNode, list[PlanNode]],
    replaced: dict[PlanOutput, PlanOutput],
) -> None:
    def put(
        op_type: str, inputs: list[PlanOutput], attributes: dict[str, object], old: PlanNode
    ) -> PlanOutput:
        new = subgraph.new_node(registry[op_type], inputs, attributes, old)
        new.control_inputs = list(old.control_inputs)
        places[old] = [new]
        output: PlanOutput = new.outputs[0]
        replaced[old.outputs[0]] = output
        return output

    kind = {"T": dtypes.float32}
    random, rate = found.comparison.inputs
    guards, rate = _reachable(subgraph, found.comparison, rate)
    margin = put("Sub", [random, rate], {**kind}, found.comparison)
    places[found.comparison] = [*guards, margin.op]
    for node in found.choices:
        put("_KeptByMargin", [node.inputs[1], margin], {**kind}, node)
    for stack in found.stacks:
        elements = {"elem_type": dtypes.float32}
        put("StackV2", list(stack.creation.inputs), {**stack.creation.attributes, **elements}, stack.creation)
        (push,) = stack.pushes
        put("StackPushV2", [push.inputs[0], margin], {**push.attributes, **kind}, push)
        for pop in stack.pops:
            old = pop.outputs[0]
            popped = put("StackPopV2", list(pop.inputs), {**pop.attributes, **elements}, pop)
            popped.dims = margin.dims
            for node in consumers.get(old, ()):
                put("_KeptByMargin", [node.inputs[1], popped], {**kind}, node)


def _reachable(subgraph: Subgraph, like: PlanNode, rate: PlanOutput) -> tuple[list[PlanNode], PlanOutput]:
    """Infinity if the rate is NaN, else the rate, and the nodes that choose."""
    value = like.constant(1)
    if value is not None and not np.isnan(value):
        return [], rate
    infinity = subgraph.new_constant(np.array(np.inf, np.float32), like, "infinity")
    kind = {"T": dtypes.float32}
    is_nan = subgraph.new_node(registry["IsNan"], [rate], {**kind}, like, name=f"{like.name}/is_nan")
    inputs = [is_nan.outputs[0], infinity.outputs[0], rate]
    chosen = subgraph.new_node(registry["Select"], inputs, {**kind}, like, name=f"{like.name}/rate")
    return [infinity, is_nan, chosen], chosen.outputs[0]
