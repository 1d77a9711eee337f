"""Fusion of losses: the mean or sum of the soft-max cross entropies of a batch, over few classes, at once.

The losses of the examples, which nobody else wants, are never made. The gradient with respect to the logits,
the second result, is made as it is wanted:

- times a number, where it is only multiplied by that: 1/n, for the mean of n losses;
- with an example a column, which is how it is computed, where only products and sums over the examples take
  it. These then take a transpose, which costs them nothing.

    %3 = SparseSoftmaxCrossEntropyWithLogits(%0, %1) : float32[6], float32[6,5]
    %4 = Mean(%3, %2) : float32[]
    %6 = Mul(%3:1, %5) : float32[6,5]
    %8 = MatMul(%7, %6) transpose_a=True : float32[4,5]

becomes

    %2 = _SparseSoftmaxCrossEntropyTotal(%0, %1) divisor=6 scale=… transposed=True : float32[], float32[5,6]
    %4 = MatMul(%3, %2:1) transpose_a=True transpose_b=True : float32[4,5]
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.types import dtypes
from flowstone.ops.networks.cross_entropies import FEW_CLASSES
from flowstone.rewriting.analyses.branches import Liveness
from flowstone.rewriting.matching import Number, Op, Pattern, Surroundings, Value
from flowstone.rewriting.patterns import substitute

_TOTALS = {
    "SoftmaxCrossEntropyWithLogits": "_SoftmaxCrossEntropyTotal",
    "SparseSoftmaxCrossEntropyWithLogits": "_SparseSoftmaxCrossEntropyTotal",
}
_PRODUCTS = ("MatMul", "_AddedMatMul")
_MOST_EXAMPLES = 4096  # so many terms at once are added as exactly as in two stages


class _Total(NamedTuple):
    """The mean or sum of the losses of few classes, which nobody else takes."""

    entropy: PlanNode
    root: PlanNode


class _Scaled(NamedTuple):
    """The gradient with respect to the logits times a number, where nobody else takes it."""

    backprop: PlanOutput
    factor: Any
    root: PlanNode


def _has_few_classes(node: PlanNode) -> bool:
    logits, labels = node.static_shape(0), node.static_shape(1)
    if logits is None or labels is None or logits[: len(labels)] != labels:
        return False
    if node.dtype(0).name not in ("float32", "float64"):
        return False
    return logits[0] <= _MOST_EXAMPLES and logits[1] <= FEW_CLASSES and logits[0] > 0


def _is_one_number(factor: Any) -> bool:
    """Whether all elements are the same finite number, which is not zero."""
    number = factor.flat[0] if factor.size else 0
    return bool(number and math.isfinite(number) and (factor == number).all())


_ENTROPIES = "|".join(_TOTALS)
_LOSSES = Op(_ENTROPIES, Value(), Value(), node="entropy", part=0, alone=True, where=_has_few_classes)
_TOTAL = Pattern(
    Op("Mean|Sum", _LOSSES, Value(), waits=False, where=lambda node: node.outputs[0].dims == ()), _Total
)
_BACKPROP = Op(_ENTROPIES, Value(), Value(), name="backprop", part=1, alone=True)
_SCALED = Pattern(
    Op("Mul", _BACKPROP, Number("factor", _is_one_number), waits=False),
    _Scaled,
    lambda found: found.root.outputs[0].dims == found.backprop.dims,
)


def fuse_losses(subgraph: Subgraph) -> None:
    """Fuses a soft-max cross entropy with the mean or sum that alone consumes its losses."""
    if not any(node.type in _TOTALS for node in subgraph.nodes):
        return
    around = Surroundings(subgraph.consumers(), subgraph.fetches)
    totals = {found.entropy: found.root for found in _TOTAL.find(subgraph.nodes, around)}
    if totals:
        fusion = _Fusion(subgraph, around)
        for node in subgraph.nodes:
            if node in totals:
                fusion.add(node, totals[node])
        fusion.finish()


class _Fusion:
    """What is to stand for which nodes and outputs of a subgraph, as `substitute` wants it."""

    def __init__(self, subgraph: Subgraph, around: Surroundings) -> None:
        self.subgraph, self.around, self.liveness = subgraph, around, subgraph.analysis(Liveness)
        self.scaled = {found.backprop: found for found in _SCALED.find(subgraph.nodes, around)}
        self.places: dict[PlanNode, list[PlanNode]] = {}
        self.replacements: dict[PlanNode, list[PlanNode]] = {}
        self.replaced: dict[PlanOutput, PlanOutput] = {}

    def finish(self) -> None:
        """Changes the subgraph."""
        substitute(self.subgraph, self.places, self.replaced, self.replacements)

    def add(self, node: PlanNode, total: PlanNode) -> None:
        """Fuses a cross entropy with the total of its losses and what takes the gradient, if it can be."""
        loss, backprop = node.outputs
        if self.liveness.node(total) != self.liveness.node(node):
            return
        divisor = (loss.dims or (None,))[0] if total.type == "Mean" else 1
        scaled = self.scaled.get(backprop)
        if scaled is not None and self.liveness.node(scaled.root) == self.liveness.node(node):
            product, scale = scaled.root, float(scaled.factor.flat[0])
            gradient = product.outputs[0]
        else:
            product, scale, gradient = None, 1.0, backprop
        transposed = self._may_be_transposed(gradient)
        own = {"divisor": divisor, "scale": scale, "transposed": transposed}
        attributes = {**node.attributes, "T": loss.dtype, **own}
        kind = registry[_TOTALS[node.type]]
        fused = self.subgraph.new_node(kind, list(node.inputs), attributes, like=node)
        fused.control_inputs = list(node.control_inputs)
        self._put(node, [fused], [fused])
        self._put(total, [], [fused])
        if product is not None:
            self._put(product, [], [fused])
        self.replaced[total.outputs[0]], self.replaced[gradient] = fused.outputs
        if transposed:
            for consumer in dict.fromkeys(self.around.consumers.get(gradient, ())):
                self._take_transposed(consumer, gradient, fused.outputs[1])
        self._log(node, total, product, transposed)

    def _put(self, old: PlanNode, new: list[PlanNode], replacements: list[PlanNode]) -> None:
        self.places[old], self.replacements[old] = new, replacements

    def _log(self, node: PlanNode, total: PlanNode, product: PlanNode | None, transposed: bool) -> None:
        reason = f"only {total.name} takes the losses"
        if product is not None:
            reason += f", {product.name} the gradient"
        if transposed:
            reason += "; gradient with an example a column"
        self.subgraph.log.append(("fuse_losses", node.name, reason))

    def _may_be_transposed(self, gradient: PlanOutput) -> bool:
        consumers = self.around.consumers.get(gradient, [])
        if not consumers or gradient in self.around.fetched:
            return False
        return all(
            consumer not in self.places and _takes_transposes(consumer, gradient) for consumer in consumers
        )

    def _take_transposed(self, consumer: PlanNode, gradient: PlanOutput, transposed: PlanOutput) -> None:
        """Puts in the place of a consumer of the gradient one of its transpose."""
        inputs = [transposed if x is gradient else x for x in consumer.inputs]
        constants: list[PlanNode] = []
        if consumer.type in _PRODUCTS:
            declaration, attributes = consumer.declaration, dict(consumer.attributes)
            for i, key in enumerate(("transpose_a", "transpose_b")):
                attributes[key] = bool(attributes[key]) != (inputs[i] is transposed)
        else:
            axes = self.subgraph.new_constant(np.array([1], np.int32), consumer, "axes")
            declaration, constants = registry["Sum"], [axes]
            inputs = [transposed, axes.outputs[0]]
            attributes = {"T": transposed.dtype, "Tidx": dtypes.int32, "keep_dims": False}
        new = self.subgraph.new_node(declaration, inputs, attributes, like=consumer)
        new.control_inputs = list(consumer.control_inputs)
        self._put(consumer, [*constants, new], [new])
        self.replaced[consumer.outputs[0]] = new.outputs[0]


def _takes_transposes(node: PlanNode, matrix: PlanOutput) -> bool:
    """Whether it may as well take a matrix's transpose: a product, or the sum of each column."""
    if node.type in _PRODUCTS:
        return matrix not in node.inputs[2:]  # what is added to a product is taken as it is
    if node.type == "BiasAddGrad":
        return True
    if node.type != "Sum" or node.attributes["keep_dims"]:
        return False
    axes = node.constant(1)
    return axes is not None and axes.ravel().tolist() == [0]
