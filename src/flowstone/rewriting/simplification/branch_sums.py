"""Sums of values of branches: two merges, each of zeros where the other has a value, become one merge.

The gradient with respect to what both branches of a conditional take is such a sum.
"""

from __future__ import annotations

import itertools
from typing import Any

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.branches import MERGES, SWITCHES, Liveness
from flowstone.rewriting.analyses.frames import is_head
from flowstone.rewriting.matching import Surroundings
from flowstone.rewriting.patterns import Replacement, rewrite


def merge_sums(subgraph: Subgraph) -> None:
    """Replaces sums of merges, of which nobody else takes any, by one merge."""
    if any(node.type in MERGES for node in subgraph.nodes):
        rewrite(subgraph, "sum_directly", _Merges(subgraph).merged)


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
