"""Fusion: several nodes as one kernel that makes one pass over the data.

- A matrix product or convolution, the addition of a bias to its columns or channels, and the activation after
  that; or the addition of a matrix to a product that BLAS makes.
- The mean or the sum of the soft-max cross entropies of a batch, over few classes: the losses of the
  examples, which nobody else wants, are never made.
"""

from __future__ import annotations

from flowstone.framework.node import Output
from flowstone.framework.operation import registry
from flowstone.framework.subgraph import PlanNode, Subgraph
from flowstone.ops.matrices import accumulates
from flowstone.ops.softmax import FEW_CLASSES
from flowstone.rewriting.branches import Liveness
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite, substitute

_MOST_EXAMPLES = 4096  # so many terms at once are added as exactly as in two stages


_FUSED = {"MatMul": "_FusedMatMul", "Conv2D": "_BiasedConv2D"}
_ACTIVATIONS = frozenset(("Relu", "Tanh", "Sigmoid"))


def fuse_biases(subgraph: Subgraph) -> None:
    """Gives a product or convolution whose only taker adds a vector to its columns or channels that vector,
    and the activation after it."""
    if not any(node.type in _FUSED for node in subgraph.nodes):
        return
    consumers = subgraph.consumers()
    wanted = set(subgraph.fetches)

    def is_alone(x: Output) -> bool:
        return len(consumers.get(x, ())) == 1 and x not in wanted

    def rule(node: PlanNode) -> Replacement | None:
        if node.type in _ACTIVATIONS:
            inner = node._inputs[0]._op
            if inner not in added or inner.attributes["activation"] or not is_alone(added[inner]):
                return None
            declaration = inner.declaration
            inputs, attributes = inner._inputs, {**inner.attributes, "activation": node.type}
            controls, reason = inner._control_inputs, "the activation of nothing else"
        else:
            found = _product_and_bias(node)
            if found is None or not is_alone(found[0]):
                return None
            product, bias = found[0]._op, found[1]
            is_matrix = bias._dims == found[0]._dims
            declaration = registry["_AddedMatMul" if is_matrix else _FUSED[product.type]]
            inputs = [*product._inputs, bias]
            known = declaration.attributes.keys() | {"T"}
            attributes = {key: value for key, value in product.attributes.items() if key in known}
            if not is_matrix:
                attributes["activation"] = ""
            what = "a product to a matrix" if is_matrix else "a vector to the rows of a product"
            controls, reason = product._control_inputs, f"adds {what}"
        new = subgraph.new_node(declaration, list(inputs), attributes, like=node)
        new._control_inputs = list(controls)
        if "activation" in attributes:
            added[new] = node._outputs[0]
        return Replacement([new._outputs[0]], reason, (new,))

    added: dict[PlanNode, Output] = {}  # fused nodes, and the sums that they stand for
    rewrite(subgraph, "fuse_biases", rule)
    remove_unneeded(subgraph)


def _product_and_bias(node: PlanNode) -> tuple[Output, Output] | None:
    """The output of the product, and the vector, of a node that adds the latter to the rows of the former; or
    the matrix that it adds, where the product can be added up there."""
    if node.type not in ("Add", "AddV2", "AddN", "BiasAdd") or len(node._inputs) != 2:
        return None
    for x, other in (node._inputs, node._inputs[::-1]):
        product = x._op
        if product.type not in _FUSED or not x.dtype.is_floating or x._dims is None:
            continue
        layout = product.attributes.get("data_format", "NHWC")
        channels = x._dims[1 if layout == "NCHW" else -1]
        if (
            other._dims == x._dims
            and None not in x._dims
            and product.type == "MatMul"
            and accumulates(product)
        ):
            return x, other
        if node.type == "AddN" or layout != node.attributes.get("data_format", "NHWC"):
            continue
        if channels is not None and other._dims == (channels,):
            return x, other
    return None


_TOTALS = {
    "SoftmaxCrossEntropyWithLogits": "_SoftmaxCrossEntropyTotal",
    "SparseSoftmaxCrossEntropyWithLogits": "_SparseSoftmaxCrossEntropyTotal",
}


def fuse_losses(subgraph: Subgraph) -> None:
    """Gives a soft-max cross entropy whose losses are only averaged or summed its average or sum."""
    candidates = [node for node in subgraph.nodes if _has_few_classes(node)]
    if not candidates:
        return
    liveness = Liveness(subgraph)
    consumers = subgraph.consumers()
    places: dict[PlanNode, list[PlanNode]] = {}
    stand_ins: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[Output, Output] = {}
    for node in candidates:
        loss, backprop = node._outputs
        takers = consumers.get(loss, [])
        if len(takers) != 1 or loss in subgraph.fetches or not _is_total(takers[0]):
            continue
        total = takers[0]
        if liveness.node(total) != liveness.node(node):
            continue
        divisor = loss._dims[0] if total.type == "Mean" else 1
        fused = subgraph.new_node(
            registry[_TOTALS[node.type]],
            list(node._inputs),
            {**node.attributes, "T": loss.dtype, "divisor": divisor},
            like=node,
        )
        fused._control_inputs = list(node._control_inputs)
        places[node], places[total] = [fused], []
        stand_ins[node] = stand_ins[total] = [fused]
        replaced[total._outputs[0]], replaced[backprop] = fused._outputs
        subgraph.log.append(("fuse_losses", node.name, f"only {total.name} takes the losses"))
    substitute(subgraph, places, replaced, stand_ins)


def _has_few_classes(node: PlanNode) -> bool:
    if node.type not in _TOTALS:
        return False
    logits, labels = node.static_shape(0), node.static_shape(1)
    if logits is None or labels is None or logits[: len(labels)] != labels:
        return False
    if node.dtype(0).name not in ("float32", "float64"):
        return False
    return logits[0] <= _MOST_EXAMPLES and logits[1] <= FEW_CLASSES and logits[0] > 0


def _is_total(node: PlanNode) -> bool:
    """Whether it averages or sums a vector and waits for nothing else."""
    return node.type in ("Mean", "Sum") and node._outputs[0]._dims == () and not node._control_inputs
