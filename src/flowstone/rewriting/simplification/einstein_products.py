"""Einstein sums of two operands that are products of matrices, as such products.

The letters of a sum are of four kinds: those of the *batch*, which both operands and the output have, *left*
and *right* ones, which one operand and the output have, and *terms*, which both operands have and the output
lacks. If there are terms, and no letters of other kinds, the sum is the product of [batch, left, terms] and
[batch, terms, right]: operands and result are transposed and reshaped, which are views wherever the axes
that become one are neighbours. The operand whose letters the output has first comes first.

    ij,jk->ki        MatMul(y', x')
    btij,btkj->btik  BatchMatMulV2(x, y')
    ...d,dhk->...hk  MatMul of [..., d] and [d, h k], reshaped

Other sums stay: products of two vectors alone, sums of repeated letters, of letters that one operand alone
has, of ``...`` that broadcast, and those whose shapes are not known as far as the reshapes need them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.ops.algebra.einstein_sums import explicit, split_equation
from flowstone.ops.algebra.matrices import SIGNED_TYPES
from flowstone.rewriting.patterns import Replacement, rewrite
from flowstone.rewriting.simplification.transposes import transpose

_Sizes = dict[str, "int | None"]


class _Operand(NamedTuple):
    """What is multiplied, with the label and the size of each axis."""

    x: PlanOutput
    sizes: _Sizes


class _Kinds(NamedTuple):
    """The labels of a product by their kinds."""

    batch: list[str]
    left: list[str]
    terms: list[str]
    right: list[str]


def multiply_einsums(subgraph: Subgraph) -> None:
    """Replaces Einstein sums of two operands by products of matrices, where they are such products."""
    if any(node.type == "Einsum" for node in subgraph.nodes):
        rewrite(subgraph, "multiply_einsums", _Products(subgraph))


class _Products:
    """The rule, which makes the nodes of each product."""

    def __init__(self, subgraph: Subgraph) -> None:
        self._subgraph, self._nodes = subgraph, list[PlanNode]()

    def __call__(self, node: PlanNode) -> Replacement | None:
        """The product that an Einstein sum is, or None."""
        if node.type != "Einsum" or len(node.inputs) != 2 or node.dtype(0) not in SIGNED_TYPES:
            return None
        labelled = _labelled(node)
        if labelled is None:
            return None
        first, second, out = labelled
        own = [label for label in out if not (label in first.sizes and label in second.sizes)]
        if own and own[0] in second.sizes:
            first, second = second, first
        kinds = _kinds(first.sizes, second.sizes, out)
        if kinds is None or not _is_known(kinds, first, second):
            return None
        self._nodes = []
        x = self._matrices(node, first, kinds.batch, kinds.left, kinds.terms)
        y = self._matrices(node, second, kinds.batch, kinds.terms, kinds.right)
        product = self._product(node, x, y, kinds, first, second)
        if not len(kinds.left) == len(kinds.right) == 1:
            sizes = first.sizes | second.sizes
            product = self._reshaped(
                node, product, [sizes[label] for label in (*kinds.batch, *kinds.left, *kinds.right)]
            )
        found = self._transposed(node, product, [*kinds.batch, *kinds.left, *kinds.right], out)
        return Replacement([found], "a product of matrices", tuple(self._nodes))

    def _matrices(
        self, node: PlanNode, operand: _Operand, batch: list[str], rows: list[str], columns: list[str]
    ) -> PlanOutput:
        """An operand as [batch, rows, columns], of which each is one axis."""
        sizes = operand.sizes
        x = self._transposed(node, operand.x, list(sizes), [*batch, *rows, *columns])
        if len(rows) == len(columns) == 1:
            return x
        sides = [_joined([sizes[label] for label in group]) for group in (rows, columns)]
        return self._reshaped(node, x, [*[sizes[label] for label in batch], *sides])

    def _product(
        self, node: PlanNode, x: PlanOutput, y: PlanOutput, kinds: _Kinds, first: _Operand, second: _Operand
    ) -> PlanOutput:
        name, ends = "MatMul", ("transpose_a", "transpose_b", "grad_a", "grad_b")
        if kinds.batch:
            is_equal = all(first.sizes[label] == second.sizes[label] is not None for label in kinds.batch)
            name, ends = (
                "BatchMatMulV2" if is_equal else "BatchMatMul",
                ("adj_x", "adj_y", "grad_x", "grad_y"),
            )
        attributes = {"T": node.dtype(0), **dict.fromkeys(ends, False)}
        new = self._subgraph.new_node(registry[name], [x, y], attributes, node)
        self._nodes.append(new)
        return new.outputs[0]

    def _transposed(self, node: PlanNode, x: PlanOutput, own: list[str], order: list[str]) -> PlanOutput:
        if own == order:
            return x
        axes = tuple(own.index(label) for label in order)
        self._nodes += transpose(self._subgraph, node, x, axes, node.name)
        return self._nodes[-1].outputs[0]

    def _reshaped(self, node: PlanNode, x: PlanOutput, sizes: list[int | None]) -> PlanOutput:
        shape = np.array([-1 if n is None else n for n in sizes], np.int32)
        constant = self._subgraph.new_constant(shape, node, "shape")
        attributes = {"T": x.dtype.base_dtype, "Tshape": dtypes.int32}
        new = self._subgraph.new_node(registry["Reshape"], [x, constant.outputs[0]], attributes, node)
        self._nodes += [constant, new]
        return new.outputs[0]


def _labelled(node: PlanNode) -> tuple[_Operand, _Operand, list[str]] | None:
    """Both operands with their labels, and the labels of the output; None if ranks are not known, a label
    occurs twice in an operand, or ``...`` may broadcast."""
    terms, output = split_equation(node.attributes["equation"])
    operands, dots = [], []
    for x, term in zip(node.inputs, terms):
        if x.dims is None:
            return None
        labels = explicit(term, len(x.dims))
        operands.append(_Operand(x, dict(zip(labels, x.dims))))
        dots.append([n for label, n in zip(labels, x.dims) if label[0] == "."])
        if len(operands[-1].sizes) < len(labels):
            return None
    if all(dots) and (dots[0] != dots[1] or None in dots[0]):
        return None
    letters = len(output.replace("...", ""))
    out = explicit(output, letters + max(map(len, dots)) * ("..." in output))
    return operands[0], operands[1], out


def _kinds(of_x: _Sizes, of_y: _Sizes, out: list[str]) -> _Kinds | None:
    """The labels by their kinds; None if there are others, or no terms. The terms come in the order that the
    operand with more elements has."""
    both = [label for label in of_x if label in of_y]
    if set(of_x) ^ set(of_y) != set(out) - set(both) or len(set(out)) < len(out):
        return None
    larger = max((of_x, of_y), key=lambda sizes: math.prod(n or 1 for n in sizes.values()))
    terms = [label for label in larger if label in both and label not in out]
    left, right = ([label for label in sizes if label not in both] for sizes in (of_x, of_y))
    return _Kinds([label for label in out if label in both], left, terms, right) if terms and out else None


def _is_known(kinds: _Kinds, first: _Operand, second: _Operand) -> bool:
    """Whether sizes are known as far as reshapes need them, and to see that those of the terms are equal."""
    x, y = first.sizes, second.sizes
    if len(kinds.terms) > 1 and None in [sizes[label] for sizes in (x, y) for label in kinds.terms]:
        return False
    return (
        _is_shape(
            [x[label] for label in (*kinds.batch, *kinds.left, *kinds.terms)],
            len(kinds.left),
            len(kinds.terms),
        )
        and _is_shape(
            [y[label] for label in (*kinds.batch, *kinds.terms, *kinds.right)],
            len(kinds.terms),
            len(kinds.right),
        )
        and _is_shape(
            [(x | y)[label] for label in (*kinds.batch, *kinds.left, *kinds.right)],
            len(kinds.left),
            len(kinds.right),
        )
    )


def _is_shape(sizes: list[int | None], rows: int, columns: int) -> bool:
    """Whether a Reshape can be told these sizes, where there are not one of rows and of columns each."""
    return rows == columns == 1 or sizes.count(None) == 0 or (sizes.count(None) == 1 and 0 not in sizes)


def _joined(sizes: list[int | None]) -> int | None:
    known = [n for n in sizes if n is not None]
    return math.prod(known) if len(known) == len(sizes) else None
