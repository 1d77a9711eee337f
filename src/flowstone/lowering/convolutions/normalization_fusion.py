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

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, PlanOutput, Subgraph
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.rewriting.matching import Either, Op, Pattern, Rules, Surroundings, Value
from flowstone.rewriting.patterns import Replacement, remove_unneeded, rewrite
from flowstone.rewriting.simplification.constant_folding import fold_constants


class _Site(NamedTuple):
    """A convolution, the bias that is added to its result, if any, and the `result`, which the root
    normalises or scales."""

    convolution: PlanNode
    result: PlanOutput
    root: PlanNode
    bias: PlanOutput | None = None

    @property
    def factor(self) -> PlanOutput:
        """What the root multiplies the result by."""
        x, y = self.root.inputs
        return y if x is self.result else x

    @property
    def is_normalized(self) -> bool:
        """Whether the root normalises the channels, by numbers that are finite, and that pays."""
        layout, epsilon = self.root.attributes["data_format"], self.root.attributes["epsilon"]
        if self.convolution.attributes["data_format"] != layout:
            return False
        variance = self.root.constant(4)
        is_finite = variance is None or bool((variance + epsilon > 0).all())
        return is_finite and _pays(self.convolution, self.root.inputs[1:])

    @property
    def is_scaled(self) -> bool:
        """Whether the factor is a vector over the channels, which come last, and that pays."""
        if self.result.dims is None or self.factor.dims != self.result.dims[-1:]:
            return False
        return self.convolution.attributes["data_format"] == "NHWC" and _pays(self.convolution, [self.factor])


def _have_one_layout(node: PlanNode) -> bool:
    layout = node.attributes["data_format"]
    return bool(node.inputs[0].op.attributes.get("data_format") == layout)


_CONVOLUTION = Op(
    "Conv2D|DepthwiseConv2dNative",
    Value(),
    Value(),
    node="convolution",
    alone=True,
    waits=False,
    where=lambda node: node.outputs[0].dtype is dtypes.float32,
)
_BIASED = Op("BiasAdd", _CONVOLUTION, Value("bias"), alone=True, waits=False, where=_have_one_layout)
_RESULT = Either(_BIASED, _CONVOLUTION, name="result")
_NORMALIZATION = Pattern(
    Op(
        "FusedBatchNorm|FusedBatchNormV2|FusedBatchNormV3",
        _RESULT,
        *[Value()] * 4,
        is_training=False,
    ),
    _Site,
    lambda found: found.is_normalized,
)
_SCALING = Pattern(Op("Mul", _RESULT, Value()), _Site, lambda found: found.is_scaled)


def fold_normalizations(subgraph: Subgraph) -> None:
    """Scales filters instead of the convolutions' results, where these have no other consumers."""
    if not any(node.type in _CONVOLUTION.types for node in subgraph.nodes):
        return
    before = len(subgraph.log)
    around = Surroundings(subgraph.consumers(), subgraph.fetches)
    folding = _Folding(subgraph, around)
    rules = Rules(around, (_NORMALIZATION, folding.normalized), (_SCALING, folding.scaled))
    rewrite(subgraph, "fold_normalizations", rules)
    if len(subgraph.log) > before:
        remove_unneeded(subgraph)
        fold_constants(subgraph)
        remove_unneeded(subgraph)


class _Folding:
    """Makes what stands for the matches in a subgraph."""

    def __init__(self, subgraph: Subgraph, around: Surroundings) -> None:
        self.subgraph, self.around = subgraph, around
        self.added: list[PlanNode] = []

    def normalized(self, found: _Site) -> Replacement | None:
        """The replacement of a normalisation, of which nobody may want the moments."""
        node, self.added = found.root, []
        if any(self.around.consumers.get(x) or x in self.around.fetched for x in node.outputs[1:]):
            return None
        scale, offset, mean, variance = node.inputs[1:]
        epsilon = self._constant(node, np.array(node.attributes["epsilon"], np.float32), "epsilon")
        inverse = self._new(node, "Rsqrt", [self._new(node, "AddV2", [variance, epsilon])])
        factor = self._new(node, "Mul", [inverse, scale], "/factor")
        shift = mean if found.bias is None else self._new(node, "Sub", [mean, found.bias])
        bias = self._new(node, "Sub", [offset, self._new(node, "Mul", [shift, factor])], "/bias")
        return self._folded(found, factor, bias)

    def scaled(self, found: _Site) -> Replacement:
        """The replacement of a product with a vector over the channels."""
        node, bias, self.added = found.root, found.bias, []
        if bias is not None:
            bias = self._new(node, "Mul", [bias, found.factor], "/bias")
        return self._folded(found, found.factor, bias)

    def _folded(self, found: _Site, factor: PlanOutput, bias: PlanOutput | None) -> Replacement:
        node, convolution = found.root, found.convolution
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
    if all(x.op.is_constant for x in (convolution.inputs[1], *factors)):
        return all(np.isfinite(x.op.attributes["value"]).all() for x in factors)
    elements = math.prod(n for n in image if n is not None)
    is_large = None in image or elements >= machine.current().profile.scaled_images
    return is_large and math.prod(kernel) < elements
