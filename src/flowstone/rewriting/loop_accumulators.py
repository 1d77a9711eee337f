"""Loop accumulators: a loop that adds up matrix products, as the gradient of a recurrence by its weights
does, multiplies their stacked operands afterwards instead.

    Enter(0) → Merge → Switch → Add(·, MatMul(X, D)) → NextIteration;  Switch:0 → Exit

becomes the same loop over a handle (`ops/product_sums.py`), whose total follows the Exit. As in `sums.py`, a
product must be larger than its operands.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework import dtypes
from flowstone.framework.node import Output
from flowstone.framework.operation import registry
from flowstone.framework.subgraph import PlanNode, Subgraph
from flowstone.rewriting.frames import ENTERS, EXITS, NEXT_ITERATIONS, is_head, is_loop_switch
from flowstone.rewriting.patterns import substitute

_LARGE = 1024  # elements of a product of unknown operands


class _Accumulator(NamedTuple):
    """The nodes of a loop's variable that is a sum of products."""

    enter: PlanNode
    merge: PlanNode
    switch: PlanNode
    product: PlanNode
    add: PlanNode
    next: PlanNode
    exit: PlanNode


def stack_accumulators(subgraph: Subgraph) -> None:
    """Gives loops that add up products a handle to add to."""
    if not any(is_head(node) for node in subgraph.nodes):
        return
    consumers = subgraph.consumers()
    waited = {control for node in subgraph.nodes for control in node._control_inputs} | set(subgraph.targets)
    fetched = set(subgraph.fetches)
    before: dict[PlanNode, list[PlanNode]] = {}  # nodes of the loop: what takes their places
    replaced: dict[Output, Output] = {}
    stand_ins: dict[PlanNode, list[PlanNode]] = {}  # of nodes that others wait for
    for head in subgraph.nodes:
        found = _accumulator(head, consumers) if is_head(head) else None
        if found is None or any(node in waited for node in (*found[:3], found.next)):
            continue
        if any(x in fetched for node in found[:-1] for x in node._outputs) or not _saves_work(found):
            continue
        stand_ins.update(_replace(subgraph, found, before, replaced))
        subgraph.log.append(("stack_accumulators", found.add.name, "multiplies stacked operands"))
    substitute(subgraph, before, replaced, stand_ins)


def _accumulator(head: PlanNode, consumers: dict[Output, list[PlanNode]]) -> _Accumulator | None:
    def only_taker(x: Output) -> PlanNode | None:
        takers = consumers.get(x, [])
        return takers[0] if len(takers) == 1 else None

    ends: dict[bool, PlanNode] = {x.op.type in NEXT_ITERATIONS: x.op for x in head._inputs}
    enter, following = ends.get(False), ends.get(True)
    switch = only_taker(head._outputs[0])
    if enter is None or following is None or enter.type not in ENTERS or consumers.get(head._outputs[1]):
        return None
    if switch is None or not is_loop_switch(switch) or len(consumers[enter._outputs[0]]) != 1:
        return None
    exit_node, add = only_taker(switch._outputs[0]), only_taker(switch._outputs[1])
    if exit_node is None or exit_node.type not in EXITS or add is None:
        return None
    if (
        add.type not in ("Add", "AddV2", "AddN")
        or len(add._inputs) != 2
        or following._inputs[0].op is not add
    ):
        return None
    product: PlanNode = next(x.op for x in add._inputs if x is not switch._outputs[1])
    takers = [only_taker(product._outputs[0]), only_taker(add._outputs[0])]
    if product.type != "MatMul" or takers != [add, following] or product.dtype(0).is_complex:
        return None
    return _Accumulator(enter, head, switch, product, add, following, exit_node)


def _saves_work(found: _Accumulator) -> bool:
    sizes: list[Any] = [found.product.static_shape(0), found.product.static_shape(1)]
    result: Any = found.product._outputs[0]._dims
    if result is None or None in result or found.enter.static_shape(0) != result:
        return False
    if None in sizes:  # the step will see; the sum multiplies as soon as the operands are larger
        return bool(math.prod(result) >= _LARGE)
    return bool(sum(math.prod(dims) for dims in sizes) < math.prod(result))


def _replace(
    subgraph: Subgraph,
    found: _Accumulator,
    places: dict[PlanNode, list[PlanNode]],
    replaced: dict[Output, Output],
) -> dict[PlanNode, list[PlanNode]]:
    """Puts the new nodes in place; returns what those who waited for the old ones wait for now."""
    dtype = found.product.dtype(0)
    initial = found.enter._inputs[0]

    def node(
        op_type: str, inputs: list[Output], like: PlanNode, attributes: dict[str, Any], suffix: str = ""
    ) -> PlanNode:
        sizes = (len(inputs),) if op_type == "Merge" else None
        new = subgraph.new_node(registry[op_type], inputs, attributes, like, sizes, like.name + suffix)
        places.setdefault(like, []).append(new)
        new._control_inputs = list(like._control_inputs)
        return new

    transposes = {key: found.product.attributes[key] for key in ("transpose_a", "transpose_b")}
    handle = node("_ProductSum", [initial], found.enter, {"T": dtype, **transposes}, "/products")
    resource = {"T": dtypes.resource}
    enter = node("Enter", [handle._outputs[0]], found.enter, {**found.enter.attributes, **resource})
    merge = node("Merge", [enter._outputs[0]] * 2, found.merge, {"N": 2, **resource})
    switch = node("Switch", [merge._outputs[0], found.switch._inputs[1]], found.switch, resource)
    operands = list(found.product._inputs)
    added = node("_ProductSumAdd", [switch._outputs[1], *operands], found.add, {"T": dtype})
    added._control_inputs += found.product._control_inputs
    following = node("NextIteration", [added._outputs[0]], found.next, resource)
    merge._inputs[1] = following._outputs[0]
    leaving = node("Exit", [switch._outputs[0]], found.exit, resource)
    value = initial.op.attributes["value"] if initial.op.type == "Const" else None
    from_zero = value is not None and not np.any(value)
    attributes = {"T": dtype, "shape": found.product._outputs[0]._dims, "from_zero": from_zero}
    total = node("_ProductSumTotal", [leaving._outputs[0]], found.exit, attributes, "/total")
    places[found.product] = []
    added._control_inputs = list(dict.fromkeys([*added._control_inputs, *found.product._control_inputs]))
    replaced[found.exit._outputs[0]] = total._outputs[0]
    sources = dict.fromkeys([*(x.op for x in operands), *found.product._control_inputs])
    return {found.product: list(sources), found.add: [added], found.exit: [total]}
