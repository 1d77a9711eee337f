"""Weights that a plan does not change are read packed by its products of few rows (`ops/packed_products.py`):
variables that no node of the plan changes, and constants.

    %2 = _FusedMatMul(%0, W, b)     becomes     %1 = _PackedWeights(W)
                                                %2 = _PackedMatMul(%0, %1, b)

So plans that train keep the weights once, and plans that only compute from them twice: packing costs as much
memory as the weights have, while nothing changes them.
"""

from __future__ import annotations

from flowstone.framework.dtypes import resource
from flowstone.framework.node import Output
from flowstone.framework.operation import registry
from flowstone.framework.subgraph import PlanNode, Subgraph
from flowstone.ops.packed_products import gains_by_packing
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite
from flowstone.rewriting.state_access import UNKNOWN, StateAccess

_PRODUCTS = frozenset(("MatMul", "_FusedMatMul"))
_READS = frozenset(("Identity", "ReadVariableOp"))
_PACKED = {
    "VariableV2": "_PackedWeights",
    "Variable": "_PackedWeights",
    "VarHandleOp": "_PackedResourceWeights",
    "Const": "_PackedConstant",
}


def pack_weights(subgraph: Subgraph) -> None:
    """Lets products of few rows take packed weights, where these are variables that nothing here changes."""
    if not any(_gains(node) for node in subgraph.nodes):
        return
    access = StateAccess(subgraph.nodes)
    written = frozenset().union(*access.writes.values())
    if UNKNOWN in written:
        return

    def rule(node: PlanNode) -> Replacement | None:
        if not _gains(node) or access.reads.get(node, frozenset()) & written:
            return None
        handle = _handle(node._inputs[1])
        if handle is None:
            return None
        dtype, turned = node._inputs[1]._dtype.base_dtype, node.attributes["transpose_b"]
        read = subgraph.new_node(
            registry[_PACKED[handle._op.type]],
            [handle],
            {"dtype" if handle._dtype is resource else "T": dtype, "turned": turned},
            like=node,
            name=f"{node.name}/weights",
        )
        bias = node._inputs[2:]
        product = subgraph.new_node(
            registry["_PackedMatMul"],
            [node._inputs[0], read._outputs[0], *bias],
            {"T": dtype, "NB": len(bias), "activation": node.attributes.get("activation", "")},
            like=node,
            group_sizes=(1, 1, len(bias)),
        )
        return Replacement([product._outputs[0]], "few rows, weights that stay", (read, product))

    rewrite(subgraph, "pack_weights", rule)
    remove_unneeded(subgraph)


def _gains(node: PlanNode) -> bool:
    if node.type not in _PRODUCTS or node.attributes["transpose_a"]:
        return False
    a, b = node.static_shape(0), node.static_shape(1)
    if a is None or b is None:
        return False
    turned = node.attributes["transpose_b"]
    terms, columns = b[::-1] if turned else b
    return gains_by_packing(a[0], terms, columns, node.dtype(1), turned)


def _handle(x: Output) -> Output | None:
    """The constant, or the reference or handle of the variable, that `x` is; None of something else."""
    while x._op.type in _READS:
        x = x._op._inputs[0]
    return x if x._op.type in _PACKED else None
