"""Fusion of updates: computes a weight's gradient into the weight, if only its descent step consumes it.

    ApplyGradientDescent(var, alpha, MatMul(a, b))      becomes   _ApplyProduct(var, alpha, a, b)
    ApplyGradientDescent(var, alpha, Sum(matrix, [0]))  becomes   _ApplySum(var, alpha, matrix) axis=0

The product is then computed where the update stands. Where it has many terms, a kernel that is much faster
than BLAS's (`ops/algebra/matrices.py`) and fits in a cache, it stays a node of its own, unless it is narrow.
The sum of the rows or columns of a matrix, a bias's gradient, is a product with ones to BLAS: one call of 1.3
µs for two that take 2.5 for [100, 10], 2.5 for 3.7 for [128, 256]; from 2**16 elements on the sum is the
faster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.matching import Either, Number, Op, Pattern, Surroundings, Value
from flowstone.rewriting.patterns import remove_unneeded, substitute

_FUSED = {"ApplyGradientDescent": "_", "ResourceApplyGradientDescent": "_Resource"}  # prefixes
_TYPES = (dtypes.float32, dtypes.float64)


def _is_fusible(product: PlanNode) -> bool:
    """Whether BLAS accumulates a product of these sizes as fast as any kernel makes it."""
    a, b = product.static_shape(0), product.static_shape(1)
    if product.dtype(0) not in _TYPES or a is None or b is None:
        return False
    rows, terms = a[::-1] if product.attributes["transpose_a"] else a
    columns = b[0] if product.attributes["transpose_b"] else b[1]
    host, sizes = machine.current(), (rows, terms, columns)
    if product.dtype(0) is not dtypes.float32 or host.accumulates_by_blas(*sizes):
        return True
    return bool(host.rows_of_a_block(*sizes)) or host.adds_narrow_products(*sizes)


def _is_small_matrix(x: PlanOutput) -> bool:
    dims = x.static_shape
    if dims is None or len(dims) != 2 or x.dtype.base_dtype not in _TYPES:
        return False
    return 0 < dims[0] * dims[1] < machine.current().elements(16)


class _Update(NamedTuple):
    """A step of descent by a product, or by the sum of a matrix along `axes`."""

    gradient: PlanOutput
    root: PlanNode
    axes: Any = None


_PRODUCT = Op("MatMul", Value(), Value(), name="gradient", alone=True, where=_is_fusible)
_SUM = Op(
    "Sum",
    Value(where=_is_small_matrix),
    Number("axes", lambda axes: axes.size == 1),
    name="gradient",
    alone=True,
    keep_dims=False,
)
_UPDATE = Pattern(Op("|".join(_FUSED), Value(), Value(), Either(_PRODUCT, _SUM), use_locking=False), _Update)


def fuse_updates(subgraph: Subgraph) -> None:
    """Fuses descent steps with the products and sums that only they consume."""
    if not any(node.type in _FUSED for node in subgraph.nodes):
        return
    around = Surroundings(subgraph.consumers(), subgraph.fetches)
    liveness = subgraph.analysis(Liveness)
    places: dict[PlanNode, list[PlanNode]] = {}
    replaced: dict[PlanOutput, PlanOutput] = {}
    for found in _UPDATE.find(subgraph.nodes, around):
        node, product = found.root, found.gradient.op
        if liveness.node(node) != liveness.node(product):
            continue
        kind, operands, attributes = _accumulated(product, found.axes)
        inputs = [*node.inputs[:2], *operands]
        new = subgraph.new_node(registry[_FUSED[node.type] + kind], inputs, attributes, like=node)
        new.control_inputs = list(dict.fromkeys([*product.control_inputs, *node.control_inputs]))
        places[node] = [new]
        replaced.update(zip(node.outputs, new.outputs))
        subgraph.log.append(("fuse_updates", node.name, f"accumulates {product.name} in the variable"))
    if places:
        substitute(subgraph, places, replaced)
        remove_unneeded(subgraph)


def _accumulated(product: PlanNode, axes: Any) -> tuple[str, list[PlanOutput], dict[str, Any]]:
    """The kind, the operands and the attributes of the node that accumulates a product or a sum."""
    if product.type == "MatMul":
        attributes = {key: product.attributes[key] for key in ("transpose_a", "transpose_b", "T")}
        return "ApplyProduct", list(product.inputs), attributes
    return "ApplySum", product.inputs[:1], {"T": product.dtype(0), "axis": int(axes.flat[0]) % 2}
