"""Direct sums: replaces products with ones, sums of sums, and sums over counts, by one sum or mean.

- A product with a column of ones is the sum of each row, one with a row of ones the sum of each column.
- A product of a column and a row of ones repeats the column, one of a column of ones and a row the row.
- The sum or mean of all elements of a sum that nobody else takes, reshaped or not, is one sum.
- The sum of products with one number, which nobody else takes, is that number times the sum.
- The sum over the number of its terms is the mean, and DivNoNan by numbers that are not 0 a division.
- The sum over axes of size 1 is a reshape; gradients sum over those that both operands have.

Sums of values of branches are in `branch_sums.py`.

``nce_loss`` has the first in its losses and its logits, and the second in its gradients; ``tf.losses`` have
the last two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import num_elements
from flowstone.rewriting.matching import Number, Op, Pattern, Rules, Surroundings, Through, Value
from flowstone.rewriting.patterns import Replacement, rewrite
from flowstone.rewriting.simplification.branch_sums import merge_sums

_TYPES = (dtypes.float32, dtypes.float64)


class _Site(NamedTuple):
    """The product of x with ones, or the sum or mean of all elements of a sum of x."""

    x: PlanOutput
    root: PlanNode


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


class _Scaled(NamedTuple):
    """The sum of x times a number."""

    x: PlanOutput
    factor: Any
    product: PlanOutput
    root: PlanNode


class _Quotient(NamedTuple):
    """x over constants."""

    x: PlanOutput
    divisor: Any
    root: PlanNode


def _is_one_number(value: Any) -> bool:
    return value.size == 1 and bool(np.isfinite(value).all())


_SCALED = Pattern(
    Op("Sum", Op("Mul", Value("x"), Number("factor", _is_one_number), name="product", alone=True), Value()),
    _Scaled,
    where=lambda found: (
        found.x.dims is not None and found.x.dims == found.product.dims and _is_computed(found.root)
    ),
    waits=False,
)
_QUOTIENT = Pattern(
    Op("DivNoNan|RealDiv", Value("x"), Number("divisor", lambda value: bool((value != 0).all()))),
    _Quotient,
    where=lambda found: found.root.dtype(0) in _TYPES,
)


class _Single(NamedTuple):
    """The sum of x over axes."""

    x: PlanOutput
    axes: Any
    root: PlanNode


def _are_of_size_one(found: _Single) -> bool:
    shape, rank = found.x.static_shape, len(found.x.dims or ())
    return shape is not None and all(-rank <= i < rank and shape[i] == 1 for i in found.axes.ravel().tolist())


_SINGLE = Pattern(
    Op("Sum", Value("x", where=lambda x: not x.dtype.is_ref), Number("axes"), waits=False),
    _Single,
    where=_are_of_size_one,
)
_ENDS = frozenset[str]().union(*[each.types for each in (_ROWS, _TOTAL, _SCALED, _QUOTIENT)])


def sum_directly(subgraph: Subgraph) -> None:
    """Replaces products with ones, sums of sums, and sums over counts, by one sum or mean."""
    if any(node.type in _ENDS for node in subgraph.nodes):
        sums = _Sums(subgraph)
        rules = Rules(
            sums.around,
            (_ROWS, sums.along_rows),
            (_COLUMNS, sums.along_columns),
            (_SINGLE, sums.reshaped),
            (_TOTAL, sums.total),
            (_SCALED, sums.scaled),
            (_QUOTIENT, sums.mean),
        )
        rewrite(subgraph, "sum_directly", rules)
    merge_sums(subgraph)


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

    def reshaped(self, found: _Single) -> Replacement:
        """What the sum of single elements is."""
        shape = self._constant(found.root, list(found.root.outputs[0].dims or ()), "shape")
        attributes = {"T": found.x.dtype.base_dtype, "Tshape": dtypes.int32}
        new = self.subgraph.new_node(registry["Reshape"], [found.x, shape.outputs[0]], attributes, found.root)
        self._succeed(found.root, new)
        return Replacement([new.outputs[0]], "the axes have one element each", (shape, new))

    def scaled(self, found: _Scaled) -> Replacement:
        """What the sum of products with a number is."""
        node, dtype = found.root, found.x.dtype.base_dtype
        total = self.subgraph.new_node(
            node.declaration, [found.x, node.inputs[1]], dict(node.attributes), node
        )
        factor = self.subgraph.new_constant(found.factor.reshape(()), node, "factor")
        inputs = [total.outputs[0], factor.outputs[0]]
        product = self.subgraph.new_node(registry["Mul"], inputs, {"T": dtype}, node)
        self.consumers[total.outputs[0]] = [product]
        self._succeed(node, product)
        return Replacement([product.outputs[0]], "one product for all terms", (total, factor, product))

    def mean(self, found: _Quotient) -> Replacement | None:
        """What a sum over a count, or DivNoNan by constants, is."""
        node, x = found.root, found.x
        if x.op.type == "Sum" and self._is_mean(x, found.divisor):
            total = x.op
            new = self.subgraph.new_node(registry["Mean"], list(total.inputs), dict(total.attributes), node)
            new.control_inputs = list(total.control_inputs)
            return Replacement([new.outputs[0]], "a sum over the number of its terms", (new,))
        if node.type == "RealDiv":
            return None
        new = self.subgraph.new_node(registry["RealDiv"], list(node.inputs), dict(node.attributes), node)
        return Replacement([new.outputs[0]], "no divisor is 0", (new,))

    def _is_mean(self, total: PlanOutput, divisor: Any) -> bool:
        """Whether nobody else takes the sum, and the divisor is the number of terms of each."""
        terms, sums = num_elements(total.op.inputs[0].dims), num_elements(total.dims)
        if divisor.size != 1 or not terms or sums is None:
            return False
        return self.around.is_alone(total) and divisor.item() * sums == terms

    def _sum(self, node: PlanNode, x: PlanOutput, axes: Any, keep: bool, reason: str) -> Replacement:
        where = self._constant(node, axes, "axes")
        attributes = {"T": x.dtype.base_dtype, "Tidx": dtypes.int32, "keep_dims": keep}
        new = self.subgraph.new_node(registry["Sum"], [x, where.outputs[0]], attributes, node)
        self._succeed(node, new)
        return Replacement([new.outputs[0]], reason, (where, new))

    def _succeed(self, old: PlanNode, new: PlanNode) -> None:
        """Has whoever takes the output of `old` take that of `new`."""
        self.consumers[new.outputs[0]] = self.consumers.get(old.outputs[0], [])
        if old.outputs[0] in self.around.fetched:
            self.around.fetched.add(new.outputs[0])

    def _repeated(self, node: PlanNode, x: PlanOutput, dims: Any) -> Replacement:
        shape = self._constant(node, list(dims), "shape")
        attributes = {"T": x.dtype.base_dtype, "Tidx": dtypes.int32}
        new = self.subgraph.new_node(registry["BroadcastTo"], [x, shape.outputs[0]], attributes, node)
        return Replacement([new.outputs[0]], "repeats rows instead of multiplying by ones", (shape, new))

    def _constant(self, node: PlanNode, value: Any, name: str) -> PlanNode:
        return self.subgraph.new_constant(np.array(value, np.int32), node, name)
