"""Layers with few outputs in machine code, where the same step descends by their weights' gradient.

    %4 = _FusedMatMul(%0, %2, %3)                     becomes   %4 = _NarrowLayer(%0, %2, %3)
    %7 = _ApplyProduct(%2, %6, %0, %5) transpose_a=True

Such a step keeps the weights column by column (`updates/product_updates.py`), as the code reads them
(`native/products/narrow_products.py`): on one thread 17 µs instead of 60 for 100 examples of 784 features and
10 outputs.
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, Call, Input
from flowstone.framework.declarations.operation import op
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.native.clusters import kernels
from flowstone.native.codegen import host
from flowstone.native.products.narrow_products import Sizes, layer
from flowstone.ops.algebra.matrices import ACTIVATED
from flowstone.ops.numbers.elementwise import FLOATS
from flowstone.rewriting.patterns import remove_unneeded, substitute

__all__ = ["compile_narrow_layers", "is_compiled"]

_MOST_WORK = 2_000_000  # products of two numbers: one thread is as fast as a team that wakes up
_UPDATES = ("_ApplyProduct", "_ResourceApplyProduct")

narrow_layer_op = op(
    "_NarrowLayer",
    "x: T, weights: T, bias: T -> product: T",
    "transpose_a: bool = false ; transpose_b: bool = false ; activation: string = ''",
    T=FLOATS,
    cost=work.product,
    multiplies="product",
)
narrow_layer_op.not_differentiable()


@narrow_layer_op.infer
def _(node: Any) -> Any:
    return (node.dims(0)[0], node.dims(1)[1])


@narrow_layer_op.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    (rows, terms), columns = node.static_shape(0), node.static_shape(1)[1]
    activate = ACTIVATED[node.attributes["activation"]]

    def otherwise(x: Any, weights: Any, bias: Any) -> Any:
        return activate(torch.addmm(bias, x, weights))

    rectifies = node.attributes["activation"] == "Relu"
    return Call(layer(Sizes(rows, terms, columns), rectifies, otherwise), Input(0), Input(1), Input(2))


def is_compiled(x: PlanOutput, rows: int, terms: int, columns: int) -> bool:
    """Whether machine code multiplies x [rows, terms] by weights of few columns."""
    if not kernels.is_on() or not host.variable_offset() or x.dtype.base_dtype is not dtypes.float32:
        return False
    if not machine.current().prefers_columns(terms, columns):
        return False
    return 0 < rows * terms * columns <= _MOST_WORK


def compile_narrow_layers(subgraph: Subgraph) -> None:
    """Replaces layers whose weights the step keeps column by column."""
    held = {_held(node.inputs[0]) for node in subgraph.nodes if node.type in _UPDATES}
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for node in subgraph.nodes if held else ():
        if node.type == "_FusedMatMul" and _held(node.inputs[1]) in held and _suits(node):
            new = subgraph.new_node(narrow_layer_op, list(node.inputs), dict(node.attributes), like=node)
            new.control_inputs = list(node.control_inputs)
            places[node] = [new]
            replaced.update(zip(node.outputs, new.outputs))
            subgraph.log.append(("compile_narrow_layers", node.name, "few outputs, weights by columns"))
    if places:
        substitute(subgraph, places, replaced)
        remove_unneeded(subgraph)


def _held(x: PlanOutput) -> PlanOutput:
    """The variable that a value is of: itself, or its handle."""
    return x.op.inputs[0] if x.op.type == "ReadVariableOp" else x


def _suits(node: PlanNode) -> bool:
    x, weights = node.static_shape(0), node.static_shape(1)
    if x is None or weights is None or node.attributes["activation"] not in ("", "Relu"):
        return False
    if node.attributes["transpose_a"] or node.attributes["transpose_b"]:
        return False
    return is_compiled(node.inputs[0], x[0], x[1], weights[1])
