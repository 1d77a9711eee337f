"""Normalisation fusion: folds a normalisation by known moments into the convolution before it.

    FusedBatchNorm(Conv2D(x, w) [+ b], scale, offset, mean, variance), not in training, becomes
    BiasAdd(Conv2D(x, w * s), offset + (b - mean) * s)   with   s = scale / sqrt(variance + epsilon)

and ``Conv2D(x, w) [+ b]`` times a vector over the channels, which `tf.nn.batch_normalization` makes, likewise
``Conv2D(x, w * s) [+ b * s]``; the bias then goes the way of all biases (`fusion.py`). Where weights and
moments are constants, the new ones are constants as well; else they are made at each step, and the image must
be large and have more elements than the filter. What is saved is a pass over the image that makes another:
for 1x1 convolutions half of the time.

Of numbers that are all finite the results differ by rounding. Constants that make an infinite s are left
alone; a variable that has become infinite gives NaN where some of the program's results are infinities.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework import dtypes, machine
from flowstone.framework.operation import registry
from flowstone.framework.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite
from flowstone.rewriting.simplification.constant_folding import fold_constants

_NORMALIZATIONS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
_CONVOLUTIONS = frozenset({"Conv2D", "DepthwiseConv2dNative"})


class _Source(NamedTuple):
    """A convolution, and the bias that is added to it, if any."""

    convolution: PlanNode
    bias: PlanOutput | None


def fold_normalizations(subgraph: Subgraph) -> None:
    """Scales filters instead of the convolutions' results, where these have no other consumers."""
    if not any(node.type in _CONVOLUTIONS for node in subgraph.nodes):
        return
    before = len(subgraph.log)
    rewrite(subgraph, "fold_normalizations", _Rule(subgraph))
    if len(subgraph.log) > before:
        remove_unneeded(subgraph)
        fold_constants(subgraph)
        remove_unneeded(subgraph)


class _Rule:
    """The rule, over a subgraph whose consumers it knows."""

    def __init__(self, subgraph: Subgraph) -> None:
        self.subgraph = subgraph
        self.consumers = subgraph.consumers()
        self.fetched = set(subgraph.fetches)
        self.added: list[PlanNode] = []

    def __call__(self, node: PlanNode) -> Replacement | None:
        """The replacement of `node`, or None."""
        self.added = []
        if node.type in _NORMALIZATIONS:
            return self._normalized(node)
        return self._scaled(node) if node.type == "Mul" else None

    def _normalized(self, node: PlanNode) -> Replacement | None:
        if node.attributes["is_training"] or any(self._is_wanted(x) for x in node.outputs[1:]):
            return None
        source = self._source(node, node.inputs[0], node.inputs[1:])
        layout = node.attributes["data_format"]
        if source is None or source.convolution.attributes["data_format"] != layout:
            return None
        scale, offset, mean, variance = node.inputs[1:]
        known = node.constant(4)
        if known is not None and not (known + node.attributes["epsilon"] > 0).all():
            return None
        epsilon = self._constant(node, np.array(node.attributes["epsilon"], np.float32), "epsilon")
        inverse = self._new(node, "Rsqrt", [self._new(node, "AddV2", [variance, epsilon])])
        factor = self._new(node, "Mul", [inverse, scale], "/factor")
        shift = mean if source.bias is None else self._new(node, "Sub", [mean, source.bias])
        bias = self._new(node, "Sub", [offset, self._new(node, "Mul", [shift, factor])], "/bias")
        return self._folded(node, source, factor, bias)

    def _scaled(self, node: PlanNode) -> Replacement | None:
        for x, factor in (node.inputs, node.inputs[::-1]):
            source = self._source(node, x, [factor])
            if source is None or x.dims is None or factor.dims != (x.dims[-1],):
                continue
            if source.convolution.attributes["data_format"] != "NHWC" or factor.op is source.convolution:
                continue
            bias = None if source.bias is None else self._new(node, "Mul", [source.bias, factor], "/bias")
            return self._folded(node, source, factor, bias)
        return None

    def _folded(
        self, node: PlanNode, source: _Source, factor: PlanOutput, bias: PlanOutput | None
    ) -> Replacement:
        convolution = source.convolution
        x, kernel = convolution.inputs
        if convolution.type != "Conv2D":  # channel i * multiplier + j is that of filter [:, :, i, j]
            _, _, *channels = convolution.static_shape(1) or ()
            shape = self._constant(node, np.array(channels, np.int32), "shape")
            attributes = {"T": factor.dtype.base_dtype, "Tshape": dtypes.int32}
            factor = self._add("Reshape", [factor, shape], attributes, node, "/factor")
        scaled = self._new(node, "Mul", [kernel, factor], "/filter")
        y = self._add(convolution.type, [x, scaled], convolution.attributes, convolution)
        if bias is not None:
            attributes = {"T": y.dtype, "data_format": convolution.attributes["data_format"]}
            y = self._add("BiasAdd", [y, bias], attributes, node)
        return Replacement([y], f"scales the filter of {convolution.name}", tuple(self.added))

    # ---- what is found

    def _is_wanted(self, x: PlanOutput) -> bool:
        return bool(self.consumers.get(x)) or x in self.fetched

    def _source(self, node: PlanNode, x: PlanOutput, factors: list[PlanOutput]) -> _Source | None:
        """The convolution whose result, perhaps with a bias, is `x`, if only `node` asks for it and a filter
        scaled by `factors` is worth its making."""
        bias, last = None, node
        if x.op.type == "BiasAdd" and self._is_only_for(node, x):
            last = x.op
            x, bias = last.inputs
        convolution: PlanNode = x.op
        if convolution.type not in _CONVOLUTIONS or not self._is_only_for(last, x):
            return None
        if bias is not None and last.attributes["data_format"] != convolution.attributes["data_format"]:
            return None
        if x.dtype is not dtypes.float32 or not _pays(convolution, factors):
            return None
        return _Source(convolution, bias)

    def _is_only_for(self, node: PlanNode, x: PlanOutput) -> bool:
        """Whether nobody else takes `x`."""
        return self.consumers.get(x) == [node] and x not in self.fetched and not x.op.control_inputs

    # ---- what is made

    def _add(
        self,
        kind: str,
        inputs: list[PlanOutput],
        attributes: dict[str, Any],
        like: PlanNode,
        suffix: str = "",
    ) -> PlanOutput:
        new = self.subgraph.new_node(registry[kind], inputs, attributes, like, name=like.name + suffix)
        self.added.append(new)
        output: PlanOutput = new.outputs[0]
        return output

    def _new(self, like: PlanNode, kind: str, inputs: list[PlanOutput], suffix: str = "") -> PlanOutput:
        """An element-wise op."""
        return self._add(kind, inputs, {"T": inputs[-1].dtype.base_dtype}, like, suffix)

    def _constant(self, like: PlanNode, value: Any, name: str) -> PlanOutput:
        attributes = {"value": value, "dtype": dtypes.as_dtype(value.dtype)}
        return self._add("Const", [], attributes, like, f"/{name}")


def _pays(convolution: PlanNode, factors: list[PlanOutput]) -> bool:
    """Whether scaling the filter costs less than scaling the image."""
    kernel, image = convolution.static_shape(1), convolution.outputs[0].dims
    if kernel is None or image is None:
        return False
    if all(x.op.type == "Const" for x in (convolution.inputs[1], *factors)):
        return all(np.isfinite(x.op.attributes["value"]).all() for x in factors)
    elements = math.prod(n for n in image if n is not None)
    is_large = None in image or elements >= machine.current().profile.scaled_images
    return is_large and math.prod(kernel) < elements
