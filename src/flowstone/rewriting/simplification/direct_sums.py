"""Direct sums: replaces products with ones, and sums of sums, by one sum.

- A product with a column of ones is the sum of each row, one with a row of ones the sum of each column.
- A product of a column and a row of ones repeats the column, one of a column of ones and a row the row.
- The sum or mean of all elements of a sum that nobody else takes, reshaped or not, is one sum.

``nce_loss`` has the first in its losses and its logits, and the second in its gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework import dtypes
from flowstone.framework.operation import registry
from flowstone.framework.shape import num_elements
from flowstone.framework.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.patterns import Replacement, rewrite

_TYPES = (dtypes.float32, dtypes.float64)
_RESHAPES = frozenset({"Reshape", "ExpandDims", "Squeeze"})


def sum_directly(subgraph: Subgraph) -> None:
    """Replaces products with ones, and sums of sums, by one sum."""
    if any(node.type == "MatMul" or _is_total(node) for node in subgraph.nodes):
        rewrite(subgraph, "sum_directly", _Rules(subgraph))


class _Rules:
    """The rules, over a subgraph of whose outputs they know the `consumers`, and which are `fetched`."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph = subgraph
        self.consumers = {x: len(nodes) for x, nodes in subgraph.consumers().items()}
        self.fetched = set(subgraph.fetches)

    def __call__(self, node: PlanNode) -> Replacement | None:
        """The replacement of `node`, or None."""
        if node.type == "MatMul" and node.dtype(0) in _TYPES:
            return self._product(node)
        return self._total(node) if _is_total(node) else None

    def _product(self, node: PlanNode) -> Replacement | None:
        dims = node.outputs[0].static_shape
        if dims is None:
            return None
        for i, key in ((0, "transpose_a"), (1, "transpose_b")):
            x, axis = node.inputs[i], 1 - i
            if node.attributes[key] or not _is_ones(node.inputs[1 - i]):
                continue
            shape = x.static_shape
            if shape is None or node.static_shape(1 - i) is None:
                continue
            if dims[axis] == 1 and shape[axis]:
                return self._sum(node, x, [axis], True, "the product with ones is a sum")
            if shape[axis] == 1:
                return self._repeated(node, x, dims)
        return None

    def _sum(self, node: PlanNode, x: PlanOutput, axes: Any, keep: bool, reason: str) -> Replacement:
        where = self._constant(node, axes, "axes")
        attributes = {"T": x.dtype.base_dtype, "Tidx": dtypes.int32, "keep_dims": keep}
        new = self.subgraph.new_node(registry["Sum"], [x, where.outputs[0]], attributes, node)
        old, output = node.outputs[0], new.outputs[0]
        self.consumers[output] = self.consumers.get(old, 0)
        if old in self.fetched:
            self.fetched.add(output)
        return Replacement([output], reason, (where, new))

    def _repeated(self, node: PlanNode, x: PlanOutput, dims: Any) -> Replacement:
        shape = self._constant(node, list(dims), "shape")
        attributes = {"T": x.dtype.base_dtype, "Tidx": dtypes.int32}
        new = self.subgraph.new_node(registry["BroadcastTo"], [x, shape.outputs[0]], attributes, node)
        return Replacement([new.outputs[0]], "repeats rows instead of multiplying by ones", (shape, new))

    def _constant(self, node: PlanNode, value: Any, name: str) -> PlanNode:
        return self.subgraph.new_constant(np.array(value, np.int32), node, name)

    def _total(self, node: PlanNode) -> Replacement | None:
        x = node.inputs[0]
        count = num_elements(x.dims)
        inner = self._inner(x)
        if inner is None or not count:
            return None
        x = inner.inputs[0]
        if x.dims is None or None in x.dims:
            return None
        found = self._sum(node, x, list(range(len(x.dims))), False, "one sum for two")
        if node.type == "Sum":
            return found
        value = np.array(count, x.dtype.base_dtype.as_numpy_dtype)
        divisor = self.subgraph.new_constant(value, node, "count")
        inputs = [found.outputs[0], divisor.outputs[0]]
        mean = self.subgraph.new_node(registry["RealDiv"], inputs, {"T": x.dtype.base_dtype}, node)
        return Replacement([mean.outputs[0]], "one sum for two", (*found.nodes, divisor, mean))

    def _inner(self, x: PlanOutput) -> PlanNode | None:
        """The sum whose elements, in whatever shape, `x` alone shows."""
        while self.consumers.get(x) == 1 and x not in self.fetched and not x.op.control_inputs:
            node: PlanNode = x.op
            if node.type == "Sum":
                return node
            if node.type not in _RESHAPES:
                return None
            x = node.inputs[0]
        return None


def _is_total(node: PlanNode) -> bool:
    """Whether it adds or averages all elements of a tensor of known shape."""
    if node.type not in ("Sum", "Mean") or node.dtype(0) not in _TYPES or node.outputs[0].dims != ():
        return False
    return node.static_shape(0) is not None


def _is_ones(x: PlanOutput) -> bool:
    node = x.op
    if node.type != "Const" or node.control_inputs or 1 not in (x.dims or ()):
        return False
    return bool((node.attributes["value"] == 1).all())
