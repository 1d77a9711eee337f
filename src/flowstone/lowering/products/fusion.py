"""Fusion: several nodes as one kernel that makes one pass over the data.

A matrix product or convolution, the addition of a bias to its columns or channels, and the activation after
that; or the addition of a matrix to a product that BLAS makes.
"""

from __future__ import annotations

from flowstone.framework.operation import registry
from flowstone.framework.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.ops.algebra.matrices import accumulates
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite

_FUSED = {"MatMul": "_FusedMatMul", "Conv2D": "_BiasedConv2D"}
_ACTIVATIONS = frozenset(("Relu", "Tanh", "Sigmoid"))


def fuse_biases(subgraph: Subgraph) -> None:
    """Gives a product or convolution whose only taker adds a vector to its columns or channels that vector,
    and the activation after it."""
    if not any(node.type in _FUSED for node in subgraph.nodes):
        return
    consumers = subgraph.consumers()
    wanted = set(subgraph.fetches)

    def is_alone(x: PlanOutput) -> bool:
        return len(consumers.get(x, ())) == 1 and x not in wanted

    def rule(node: PlanNode) -> Replacement | None:
        if node.type in _ACTIVATIONS:
            inner = node.inputs[0].op
            if inner not in added or inner.attributes["activation"] or not is_alone(added[inner]):
                return None
            declaration = inner.declaration
            inputs, attributes = inner.inputs, {**inner.attributes, "activation": node.type}
            controls, reason = inner.control_inputs, "the activation of nothing else"
        else:
            found = _product_and_bias(node)
            if found is None or not is_alone(found[0]):
                return None
            product, bias = found[0].op, found[1]
            is_matrix = bias.dims == found[0].dims
            declaration = registry["_AddedMatMul" if is_matrix else _FUSED[product.type]]
            inputs = [*product.inputs, bias]
            known = declaration.attributes.keys() | {"T"}
            attributes = {key: value for key, value in product.attributes.items() if key in known}
            if not is_matrix:
                attributes["activation"] = ""
            what = "a product to a matrix" if is_matrix else "a vector to the rows of a product"
            controls, reason = product.control_inputs, f"adds {what}"
        new = subgraph.new_node(declaration, list(inputs), attributes, like=node)
        new.control_inputs = list(controls)
        if "activation" in attributes:
            added[new] = node.outputs[0]
        return Replacement([new.outputs[0]], reason, (new,))

    added: dict[PlanNode, PlanOutput] = {}  # fused nodes, and the sums that they stand for
    rewrite(subgraph, "fuse_biases", rule)
    remove_unneeded(subgraph)


def _product_and_bias(node: PlanNode) -> tuple[PlanOutput, PlanOutput] | None:
    """The output of the product, and the vector, of a node that adds the latter to the rows of the former; or
    the matrix that it adds, where the product can be added up there."""
    if node.type not in ("Add", "AddV2", "AddN", "BiasAdd") or len(node.inputs) != 2:
        return None
    for x, other in (node.inputs, node.inputs[::-1]):
        product = x.op
        if product.type not in _FUSED or not x.dtype.is_floating or x.dims is None:
            continue
        layout = product.attributes.get("data_format", "NHWC")
        channels = x.dims[1 if layout == "NCHW" else -1]
        if other.dims == x.dims and None not in x.dims and product.type == "MatMul" and accumulates(product):
            return x, other
        if node.type == "AddN" or layout != node.attributes.get("data_format", "NHWC"):
            continue
        if channels is not None and other.dims == (channels,):
            return x, other
    return None
