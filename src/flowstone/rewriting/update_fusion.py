"""Fusion of updates: a weight gradient that only its own descent step takes goes straight into the weight.

    ApplyGradientDescent(var, alpha, MatMul(a, b))   becomes   _ApplyProduct(var, alpha, a, b)

The product is then computed where the update stands. Where it has many terms, a kernel that is much faster
than BLAS's (`ops/matrices.py`) and fits in a cache, it stays a node of its own, unless it is narrow.
"""

from __future__ import annotations

from flowstone.framework import dtypes
from flowstone.framework.node import Output
from flowstone.framework.operation import registry
from flowstone.framework.subgraph import PlanNode, Subgraph
from flowstone.ops.matrices import is_best_by_blas, is_narrow_for_onednn, rows_of_a_block
from flowstone.rewriting.branches import Liveness
from flowstone.rewriting.patterns import remove_unneeded, substitute

_FUSED = {
    "ApplyGradientDescent": "_ApplyProduct",
    "ResourceApplyGradientDescent": "_ResourceApplyProduct",
}


def fuse_updates(subgraph: Subgraph) -> None:
    """Lets descent steps accumulate the products that only they take."""
    updates = [node for node in subgraph.nodes if node.type in _FUSED]
    if not updates:
        return
    consumers = subgraph.consumers()
    liveness = Liveness(subgraph)
    position = {node: i for i, node in enumerate(subgraph.nodes)}
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[Output, Output] = {}
    for node in updates:
        gradient = node._inputs[2]
        product = gradient.op
        if not _is_fusible(product) or consumers[gradient] != [node] or gradient in subgraph.fetches:
            continue
        if node.attributes["use_locking"] or liveness.node(node) != liveness.node(product):
            continue
        changed = _source(node._inputs[0])
        if any(_source(x) is changed for x in product._inputs):
            continue  # it would be overwritten while it is read
        if _is_changed_between(subgraph, position, product, node):
            continue
        attributes = {key: product.attributes[key] for key in ("transpose_a", "transpose_b", "T")}
        inputs = [*node._inputs[:2], *product._inputs]
        new = subgraph.new_node(registry[_FUSED[node.type]], inputs, attributes, like=node)
        new._control_inputs = list(dict.fromkeys([*product._control_inputs, *node._control_inputs]))
        places[node] = [new]
        replaced.update(zip(node._outputs, new._outputs))
        subgraph.log.append(("fuse_updates", node.name, f"accumulates {product.name} in the variable"))
    if places:
        substitute(subgraph, places, replaced)
        remove_unneeded(subgraph)


def _is_fusible(product: PlanNode) -> bool:
    if product.type != "MatMul" or product.dtype(0) not in (dtypes.float32, dtypes.float64):
        return False
    a, b = product.static_shape(0), product.static_shape(1)
    if a is None or b is None:
        return False
    rows, terms = a[::-1] if product.attributes["transpose_a"] else a
    columns = b[0] if product.attributes["transpose_b"] else b[1]
    sizes = rows, terms, columns, product.dtype(0)
    return bool(is_best_by_blas(*sizes) or rows_of_a_block(*sizes) or is_narrow_for_onednn(*sizes))


def _is_changed_between(
    subgraph: Subgraph, position: dict[PlanNode, int], product: PlanNode, update: PlanNode
) -> bool:
    """Whether something that runs between the two changes state that an operand of the product may share."""
    if not any(_may_be_state(x) for x in product._inputs):
        return False
    between = subgraph.nodes[position[product] + 1 : position[update]]
    return any(node.declaration.mutates for node in between)


def _may_be_state(x: Output) -> bool:
    output = _source(x)._outputs[0]
    return bool(output.dtype.is_ref or output.dtype is dtypes.resource)


def _source(x: Output) -> PlanNode:
    """The node whose memory `x` shows: for a read of a variable, the variable's."""
    node: PlanNode = x.op
    while node._inputs and (node.declaration.aliases or node.type == "ReadVariableOp"):
        node = node._inputs[0].op
    return node
