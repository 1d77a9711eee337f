"""Convolutions on a host in tiles, where sizes say that it pays (`tiled_convolutions.py`).

    %2 = _BiasedConv2D(%0, W, b)     becomes     %1 = _TiledFilter(W)
                                                 %2 = _TiledConv2D(%0, W, %1, b)

and the gradients with respect to the images and the filter likewise; so transposed convolutions, too. Windows
that skip more than every other position, groups of channels, channels that come first and activations other
than Relu stay as they are; so does everything where there is no machine code, and with
``FLOWSTONE_PASSES=-convolve_in_tiles``.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.types import dtypes
from flowstone.lowering.convolutions.direct import direct_products
from flowstone.lowering.convolutions.tiled_convolutions import Convolution, pays
from flowstone.lowering.convolutions.winograd import BY_FILTER, BY_INPUT, TYPES, Shapes, shapes_of
from flowstone.native.clusters import kernels
from flowstone.ops.networks import convolution_geometry
from flowstone.rewriting.patterns import Replacement, rewrite

_WHAT = {BY_INPUT: "images", BY_FILTER: "filter"}


def convolve_in_tiles(subgraph: Subgraph) -> None:
    """Replaces convolutions, and their gradients, that gain by tiles."""
    if not kernels.is_on() or not any(node.type in TYPES for node in subgraph.nodes):
        return

    def rule(node: PlanNode) -> Replacement | None:
        if node.type not in TYPES or node.dtype(1 if node.type == BY_INPUT else 0) is not dtypes.float32:
            return None
        shapes = shapes_of(node)
        convolution = None if shapes is None else _convolution(node, shapes)
        what = _WHAT.get(node.type, "results")
        if convolution is None or not pays(convolution, what, direct_products(node)):
            return None
        new = _nodes(subgraph, node, convolution)
        return Replacement(list(new[-1].outputs), "36 products for a tile", new)

    rewrite(subgraph, "convolve_in_tiles", rule)


def _convolution(node: PlanNode, shapes: Shapes) -> Convolution | None:
    """None where the convolution is of another kind."""
    found = convolution_geometry.Geometry(node)
    images, kernel, results = shapes
    stride, *others = set(found.strides)
    plain = found.last and not others and stride in (1, 2) and set(found.dilations) == {1}
    if not plain or kernel[0] != kernel[1] or node.attributes.get("activation", "") not in ("", "Relu"):
        return None
    counts, before, after = found.solve(images[1:3], kernel[:2])
    if (images[0], *counts, kernel[3]) != results or images[3] != kernel[2]:
        return None
    if max(*before, *after) >= kernel[0]:
        return None
    return Convolution(images, results, kernel[0], before[0], before[1], stride)


def _nodes(subgraph: Subgraph, node: PlanNode, convolution: Convolution) -> tuple[PlanNode, ...]:
    attributes: dict[str, Any] = {"T": dtypes.float32, **convolution._asdict()}
    if node.type == BY_FILTER:
        x, _, dy = node.inputs
        return (subgraph.new_node(registry["_TiledConv2DBackpropFilter"], [x, dy], attributes, like=node),)
    if node.type == BY_INPUT:
        inputs = node.inputs[1:]
        return (subgraph.new_node(registry["_TiledConv2DBackpropInput"], inputs, attributes, like=node),)
    filters = subgraph.new_node(
        registry["_TiledFilter"],
        [node.inputs[1]],
        {"T": dtypes.float32, "stride": convolution.stride},
        like=node,
        name=f"{node.name}/filter",
    )
    bias = node.inputs[2:]
    new = subgraph.new_node(
        registry["_TiledConv2D"],
        [*node.inputs[:2], filters.outputs[0], *bias],
        {**attributes, "NB": len(bias), "activation": node.attributes.get("activation", "")},
        like=node,
        group_sizes=(1, 1, 1, len(bias)),
    )
    return filters, new
