"""Weight packing: reads in packed form the weights that a plan does not change, variables and constants.

    %2 = _FusedMatMul(%0, W, b)     becomes     %1 = _PackedWeights(W)     for products of few rows
                                                %2 = _PackedMatMul(%0, %1, b)
    %1 = _WinogradFilter(W)         becomes     %1 = _PackedWeights(W)     and _TiledFilter as well
    %2 = _BiasedConv2D(%0, W, b)    becomes     %1 = _PackedWeights(W)     on hosts
                                                %2 = _BiasedConv2D(%0, %1, b) packed=True
    %1 = Conv2D(%0, W)              becomes     the same with a bias of zeros

So plans that train keep the weights once, and plans that only compute from them twice: packing costs as much
memory as the weights have, while nothing changes them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import resource
from flowstone.lowering.convolutions.fused_convolutions import packing
from flowstone.lowering.convolutions.winograd_convolutions import numbers_of
from flowstone.lowering.packing.packed_weights import Dims, may_be_packed
from flowstone.rewriting.analyses.state_access import UNKNOWN, StateAccess
from flowstone.rewriting.patterns import Replacement, Rule, remove_unneeded, rewrite

_PRODUCTS = frozenset(("MatMul", "_FusedMatMul"))
_CONVOLUTIONS = frozenset(("Conv2D", "_BiasedConv2D"))
_FILTERS = frozenset(("_WinogradFilter", "_TiledFilter"))
_READS = frozenset(("identity", "read"))  # roles
_PACKED = {
    ("variable", False): "_PackedWeights",
    ("variable", True): "_PackedResourceWeights",
    ("constant", False): "_PackedConstant",
}  # by the role of what holds the weights, and whether it is a handle


def pack_weights(subgraph: Subgraph) -> None:
    """Lets products of few rows, and convolutions by Winograd's algorithm, take packed weights, where these
    are variables that nothing here changes.
    """
    consumers = functools.cache(subgraph.consumers)

    def rule(node: PlanNode) -> Replacement | None:
        is_product = _gains(node)
        handle = _handle(node.inputs[1 if is_product else 0])
        if handle is None:
            return None
        if is_product:
            return _product(subgraph, node, handle)
        readers = [reader for x in node.outputs for reader in consumers().get(x, ())]
        if node.type == "_TiledFilter":
            read = _read(subgraph, node, handle, "tiles", (node.attributes["stride"],), 1)
            return Replacement(read.outputs, "a filter that nothing changes", (read,))
        if any(reader.type != "_WinogradConv2D" for reader in readers):
            return None
        read = _read(subgraph, node, handle, "winograd", numbers_of(readers[0]), len(node.outputs))
        return Replacement(read.outputs, "a filter that nothing changes", (read,))

    _pack(subgraph, "pack_weights", lambda node: _gains(node) or node.type in _FILTERS, rule)


def pack_filters(subgraph: Subgraph) -> None:
    """The same for convolutions that oneDNN makes, whose filters it would reorder in every step."""

    def rule(node: PlanNode) -> Replacement | None:
        numbers = packing(node)
        handle = None if numbers is None else _handle(node.inputs[1])
        if numbers is None or handle is None:
            return None
        read = _read(subgraph, node, handle, "filter", numbers, 1)
        zeros = [_zeros(subgraph, node)] if node.type == "Conv2D" else []
        bias = zeros[0].outputs[0] if zeros else node.inputs[2]
        inputs = [node.inputs[0], read.outputs[0], bias]
        attributes = {"activation": "", **node.attributes, "packed": True}
        new = subgraph.new_node(registry["_BiasedConv2D"], inputs, attributes, like=node)
        return Replacement(list(new.outputs), "a filter that nothing changes", (*zeros, read, new))

    _pack(subgraph, "pack_filters", lambda node: node.type in _CONVOLUTIONS, rule)


def _zeros(subgraph: Subgraph, node: PlanNode) -> PlanNode:
    """A bias of a convolution that has none."""
    (*_, channels) = node.static_shape(1) or (0,)
    attributes = {"value": np.zeros(channels, np.float32), "dtype": dtypes.float32}
    return subgraph.new_node(registry["Const"], [], attributes, like=node, name=f"{node.name}/bias")


def _pack(subgraph: Subgraph, name: str, may_gain: Callable[[PlanNode], bool], rule: Rule) -> None:
    """Applies the rule to nodes that may gain by it and read no state that a node here changes."""
    if not any(may_gain(node) for node in subgraph.nodes):
        return
    access = subgraph.analysis(StateAccess)
    written = frozenset().union(*access.writes.values())
    if UNKNOWN in written:
        return

    def where_it_stays(node: PlanNode) -> Replacement | None:
        if not may_gain(node) or access.reads.get(node, frozenset()) & written:
            return None
        return rule(node)

    rewrite(subgraph, name, where_it_stays)
    remove_unneeded(subgraph)


def _gains(node: PlanNode) -> bool:
    if node.type not in _PRODUCTS or node.attributes["transpose_a"]:
        return False
    a, b = node.static_shape(0), node.static_shape(1)
    if a is None or b is None:
        return False
    transposed = node.attributes["transpose_b"]
    terms, columns = b[::-1] if transposed else b
    if node.dtype(1) is not dtypes.float32:
        return False
    return machine.current().gains_by_packing(a[0], terms, columns, transposed)


def _handle(x: PlanOutput) -> PlanOutput | None:
    """The constant, or the reference or handle of the variable, that `x` is; None of something else, and of
    variables whose changes would not let a copy go.
    """
    while x.op.declaration.role in _READS:
        x = x.op.inputs[0]
    if x.op.is_constant:
        return x
    return x if x.op.declaration.role == "variable" and may_be_packed(x) else None


def _product(subgraph: Subgraph, node: PlanNode, handle: PlanOutput) -> Replacement:
    read = _read(subgraph, node, handle, "product", (int(node.attributes["transpose_b"]),), 1)
    bias = node.inputs[2:]
    product = subgraph.new_node(
        registry["_PackedMatMul"],
        [node.inputs[0], read.outputs[0], *bias],
        {"T": read.outputs[0].dtype, "NB": len(bias), "activation": node.attributes.get("activation", "")},
        like=node,
        group_sizes=(1, 1, len(bias)),
    )
    return Replacement([product.outputs[0]], "few rows, weights that nothing changes", (read, product))


def _read(
    subgraph: Subgraph, node: PlanNode, handle: PlanOutput, form: str, numbers: Dims, results: int
) -> PlanNode:
    """The node that reads the weights in this form."""
    dtype = "dtype" if handle.dtype is resource else "T"
    attributes: dict[str, Any] = {dtype: node.inputs[-1].dtype.base_dtype, "N": results}
    return subgraph.new_node(
        registry[_PACKED[handle.op.declaration.role, handle.dtype is resource]],
        [handle],
        {**attributes, "form": form, "numbers": numbers},
        like=node,
        name=node.name if node.type in _FILTERS else f"{node.name}/weights",
    )
