"""Direct sums: replaces products with ones, and sums of sums, by one sum.

- A product with a column of ones is the sum of each row, one with a row of ones the sum of each column.
- A product of a column and a row of ones repeats the column, one of a column of ones and a row the row.
- The sum or mean of all elements of a sum that nobody else takes, reshaped or not, is one sum.
- A sum of two merges that nobody else takes, each of zeros in the branch where the other has a value, is a
  merge of the values.

``nce_loss`` has the first in its losses and its logits, and the second in its gradients. The gradient by what
both branches of a conditional take is the last.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework import dtypes
from flowstone.framework.operation import registry
from flowstone.framework.shape import num_elements
from flowstone.framework.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES, Liveness
from flowstone.rewriting.analyses.frames import is_head
from flowstone.rewriting.matching import Op, Pattern, Rules, Surroundings, Through, Value
from flowstone.rewriting.patterns import Replacement, rewrite

_TYPES = (dtypes.float32, dtypes.float64)


class _Site(NamedTuple):
    """The product of x with ones, or the sum or mean of all elements of a sum of x."""

    x: PlanOutput
    root: PlanNode


def _are_zeros(x: PlanOutput) -> bool:
    node = x.op
    while node.type in SWITCHES:
        node = node.inputs[0].op
    if node.is_constant:
        return not node.attributes["value"].any()
    return node.type == "ZerosLike" or (node.type == "Fill" and _is_zero(node.constant(1)))


def _is_zero(value: Any) -> bool:
    return value is not None and not value.any()


def _are_ones(x: PlanOutput) -> bool:
    node = x.op
    if not node.is_constant or node.control_inputs or 1 not in (x.dims or ()):
        return False
    return bool((node.attributes["value"] == 1).all())


def _is_computed(node: PlanNode) -> bool:
    return node.dtype(0) in _TYPES and node.outputs[0].static_shape is not None


def _is_total(node: PlanNode) -> bool:
    """Whether it adds or averages all elements of a tensor of known shape."""
    return _is_computed(node) and node.outputs[0].dims == () and bool(num_elements(node.inputs[0].dims))


_X = Value("x", where=lambda x: x.static_shape is not None)
_ONES = Value(where=_are_ones)
_ROWS = Pattern(Op("MatMul", _X, _ONES, transpose_a=False, where=_is_computed), _Site)
_COLUMNS = Pattern(Op("MatMul", _ONES, _X, transpose_b=False, where=_is_computed), _Site)
_SUM = Op("Sum", _X, Value(), waits=False)
_TOTAL = Pattern(
    Op("Sum|Mean", Through("Reshape|ExpandDims|Squeeze", _SUM), Value(), where=_is_total), _Site, closed=True
)


def sum_directly(subgraph: Subgraph) -> None:
    """Replaces products with ones, and sums of sums, by one sum."""
    if any(node.type in _ROWS.types or node.type in _TOTAL.types for node in subgraph.nodes):
        sums = _Sums(subgraph)
        rules = Rules(
            sums.around, (_ROWS, sums.along_rows), (_COLUMNS, sums.along_columns), (_TOTAL, sums.total)
        )
        rewrite(subgraph, "sum_directly", rules)
    if any(node.type in MERGES for node in subgraph.nodes):
        merges = _Merges(subgraph)
        rewrite(subgraph, "sum_directly", merges.merged)


class _Sums:
    """Makes the sums, and keeps the surroundings: who takes each output, also of new ones."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph, self.consumers = subgraph, dict(subgraph.consumers())
        self.around = Surroundings(self.consumers, subgraph.fetches)

    def along_rows(self, found: _Site) -> Replacement | None:
        """What a product of rows with ones is."""
        return self._product(found, 1)

    def along_columns(self, found: _Site) -> Replacement | None:
        """What a product of ones with columns is."""
        return self._product(found, 0)

    def _product(self, found: _Site, axis: int) -> Replacement | None:
        node, x = found.root, found.x
        dims, shape = node.outputs[0].static_shape or (), x.static_shape or ()
        if dims[axis] == 1 and shape[axis]:
            return self._sum(node, x, [axis], True, "the product with ones is a sum")
        return self._repeated(node, x, dims) if shape[axis] == 1 else None

    def total(self, found: _Site) -> Replacement:
        """What the sum or mean of a sum is."""
        node, x = found.root, found.x
        axes = list(range(len(x.dims or ())))
        one = self._sum(node, x, axes, False, "one sum for two")
        if node.type == "Sum":
            return one
        value = np.array(num_elements(node.inputs[0].dims), x.dtype.base_dtype.as_numpy_dtype)
        divisor = self.subgraph.new_constant(value, node, "count")
        inputs = [one.outputs[0], divisor.outputs[0]]
        mean = self.subgraph.new_node(registry["RealDiv"], inputs, {"T": x.dtype.base_dtype}, node)
        return Replacement([mean.outputs[0]], "one sum for two", (*one.nodes, divisor, mean))

    def _sum(self, node: PlanNode, x: PlanOutput, axes: Any, keep: bool, reason: str) -> Replacement:
        where = self._constant(node, axes, "axes")
        attributes = {"T": x.dtype.base_dtype, "Tidx": dtypes.int32, "keep_dims": keep}
        new = self.subgraph.new_node(registry["Sum"], [x, where.outputs[0]], attributes, node)
        old, output = node.outputs[0], new.outputs[0]
        self.consumers[output] = self.consumers.get(old, [])
        if old in self.around.fetched:
            self.around.fetched.add(output)
        return Replacement([output], reason, (where, new))

    def _repeated(self, node: PlanNode, x: PlanOutput, dims: Any) -> Replacement:
        shape = self._constant(node, list(dims), "shape")
        attributes = {"T": x.dtype.base_dtype, "Tidx": dtypes.int32}
        new = self.subgraph.new_node(registry["BroadcastTo"], [x, shape.outputs[0]], attributes, node)
        return Replacement([new.outputs[0]], "repeats rows instead of multiplying by ones", (shape, new))

    def _constant(self, node: PlanNode, value: Any, name: str) -> PlanNode:
        return self.subgraph.new_constant(np.array(value, np.int32), node, name)


class _Merges:
    """Makes one merge of two, over a subgraph of whose nodes it knows when they run."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph, self.liveness = subgraph, subgraph.analysis(Liveness)
        self.known, self.around = frozenset(subgraph.nodes), Surroundings.of(subgraph)

    def merged(self, node: PlanNode) -> Replacement | None:
        """A sum with one merge for two of its terms, or that merge alone."""
        if not node.declaration.adds or node.outputs[0].static_shape is None or node.control_inputs:
            return None
        if node.dtype(0).base_dtype is dtypes.string:  # their sum is one after the other
            return None
        terms, made = list(node.inputs), []
        for x, y in itertools.combinations(node.inputs, 2):
            values = self._values(x, y) if x in terms and y in terms else None
            if values is not None:
                new = self.subgraph.new_node(x.op.declaration, values, x.op.attributes, node, (len(values),))
                made.append(new)
                terms.remove(y)
                terms[terms.index(x)] = new.outputs[0]
        if not made:
            return None
        if len(terms) > 1:
            attributes = {"N": len(terms), "T": node.dtype(0).base_dtype}
            made.append(self.subgraph.new_node(registry["AddN"], terms, attributes, node, (len(terms),)))
        return Replacement([made[-1].outputs[0]], "each term is zero where the other is not", tuple(made))

    def _values(self, x: PlanOutput, y: PlanOutput) -> list[PlanOutput] | None:
        """What the two merges have by branch, if it is zeros in one of them."""
        if not all(self._is_plain(each) for each in (x, y)) or len(x.op.inputs) != len(y.op.inputs):
            return None
        by_condition = {self.liveness.output(value): value for value in y.op.inputs}
        values: list[PlanOutput] = []
        for value in x.op.inputs:
            other = by_condition.get(self.liveness.output(value))
            if other is None or value.dims != other.dims or value.static_shape is None:
                return None
            if not (_are_zeros(value) or _are_zeros(other)):
                return None
            values.append(other if _are_zeros(value) else value)
        return values

    def _is_plain(self, x: PlanOutput) -> bool:
        """Whether it is the value of a merge of branches that this knows, which only one node takes."""
        node = x.op
        if node.type not in MERGES or is_head(node) or x.value_index or node.control_inputs:
            return False
        if not self.around.is_alone(x):
            return False
        return all(value.op in self.known for value in (x, *node.inputs))
