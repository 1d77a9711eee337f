"""Convolutions on a host with few results a position, as products (`spread_convolutions.py`).

    %2 = Conv2DBackpropInput(sizes, W, %0)    becomes    %2 = _SpreadConv2D(%0, W)
    %2 = _BiasedConv2D(%0, W, b)              becomes    %2 = _SpreadConv2D(%0, W, b) reversed

and the gradient with respect to the filter of the second, `_SpreadConv2DBackpropFilter`;
the first of any stride, so transposed convolutions, too, the second of stride 1, float32 and padding that is
the same before and behind: otherwise zeros of the padding are multiplied by the filter, of which infinities
make NaN. Dilated windows, groups of channels and channels that come first stay as they are; all do with
``FLOWSTONE_PASSES=-spread_convolutions``.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.types import dtypes
from flowstone.lowering.convolutions.spread_convolutions import Spreading, gradient_pays, pays
from flowstone.lowering.convolutions.winograd import BY_FILTER, BY_INPUT, TYPES, Shapes, shapes_of
from flowstone.ops.networks.convolution_geometry import Geometry
from flowstone.rewriting.patterns import Replacement, rewrite

_KINDS = dict.fromkeys(TYPES, (dtypes.float32,)) | {BY_INPUT: (dtypes.float32, dtypes.float64)}


def spread_convolutions(subgraph: Subgraph) -> None:
    """Replaces convolutions to few channels, and gradients with respect to images of few channels."""
    if not any(node.type in TYPES for node in subgraph.nodes):
        return

    def rule(node: PlanNode) -> Replacement | None:
        if node.type not in TYPES or node.dtype(2 if node.type == BY_INPUT else 0) not in _KINDS[node.type]:
            return None
        shapes = shapes_of(node)
        spreading = None if shapes is None else _spreading(node, shapes)
        if spreading is None:
            return None
        if not (gradient_pays(spreading) if node.type == BY_FILTER else pays(spreading, node.dtype(1))):
            return None
        if node.type == BY_FILTER:
            given: dict[str, Any] = {"T": dtypes.float32, **spreading._asdict()}
            operands = [node.inputs[0], node.inputs[2]]
            by_filter = subgraph.new_node(registry["_SpreadConv2DBackpropFilter"], operands, given, like=node)
            return Replacement(list(by_filter.outputs), "few results a position", (by_filter,))
        backward = node.type == BY_INPUT
        inputs = [node.inputs[2], node.inputs[1]] if backward else list(node.inputs)
        attributes: dict[str, Any] = {
            "T": node.dtype(1),
            **spreading._asdict(),
            "reversed": not backward,
            "NB": len(inputs) - 2,
            "activation": node.attributes.get("activation", ""),
        }
        new = subgraph.new_node(
            registry["_SpreadConv2D"], inputs, attributes, like=node, group_sizes=(1, 1, len(inputs) - 2)
        )
        return Replacement(list(new.outputs), "few results a position", (new,))

    rewrite(subgraph, "spread_convolutions", rule)


def _spreading(node: PlanNode, shapes: Shapes) -> Spreading | None:
    """None where the convolution is of another kind."""
    found = Geometry(node)
    images, kernel, results = shapes
    backward = node.type == BY_INPUT
    if not found.last or set(found.dilations) != {1} or (not backward and set(found.strides) != {1}):
        return None
    counts, before, after = found.solve(images[1:3], kernel[:2])
    if (images[0], *counts, kernel[3]) != results or images[3] != kernel[2]:
        return None
    taps = (kernel[0], kernel[1])
    if any(n >= k for sides in (before, after) for n, k in zip(sides, taps)):
        return None
    if backward:
        return Spreading(results, images, taps, (found.strides[0], found.strides[1]), (before[0], before[1]))
    if tuple(before) != tuple(after):
        return None
    return Spreading(images, results, taps, (1, 1), (taps[0] - 1 - before[0], taps[1] - 1 - before[1]))
