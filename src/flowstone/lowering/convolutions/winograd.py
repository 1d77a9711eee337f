"""Convolutions on a host by Winograd's algorithm, where sizes say that it pays (`minimal_filtering.py`).

    %2 = _BiasedConv2D(%0, W, b)     becomes     %1 = _WinogradFilter(W)
                                                 %2 = _WinogradConv2D(%0, W, %1, b)

and the gradients with respect to the images and the filter likewise. A convolution and its gradient with
respect to the images share the sums over the filter. Windows that skip positions, groups of channels,
channels that come first and activations that oneDNN does not add stay as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.types import dtypes
from flowstone.lowering.convolutions.minimal_filtering import Sizes, pays, products
from flowstone.lowering.packing.packed_weights import Dims
from flowstone.ops.networks.convolution_geometry import Geometry
from flowstone.rewriting.patterns import Replacement, rewrite
from flowstone.rewriting.simplification.common_subexpression import merge_common_subexpressions

_FORWARD = frozenset(("Conv2D", "_BiasedConv2D"))
BY_INPUT, BY_FILTER = "Conv2DBackpropInput", "Conv2DBackpropFilter"
TYPES = _FORWARD | {BY_INPUT, BY_FILTER}
"""Convolutions and their gradients."""


class Shapes(NamedTuple):
    """Dims of a convolution's images, filter and results."""

    images: Dims
    kernel: Dims
    results: Dims


def convolve_by_winograd(subgraph: Subgraph) -> None:
    """Replaces convolutions, and their gradients, that gain by Winograd's algorithm."""
    if not any(node.type in TYPES for node in subgraph.nodes) or not subgraph.machine.has_onednn:
        return
    before = len(subgraph.log)
    trains = any(node.type == BY_FILTER for node in subgraph.nodes)

    def rule(node: PlanNode) -> Replacement | None:
        if node.type not in TYPES or node.dtype(1 if node.type == BY_INPUT else 0) is not dtypes.float32:
            return None
        shapes = shapes_of(node)
        attributes = None if shapes is None else _attributes(node, shapes, trains)
        if attributes is None:
            return None
        new = _nodes(subgraph, node, attributes)
        return Replacement(list(new[-1].outputs), "a third fewer multiplications", new)

    rewrite(subgraph, "convolve_by_winograd", rule)
    if len(subgraph.log) > before:
        merge_common_subexpressions(subgraph)


def shapes_of(node: PlanNode) -> Shapes | None:
    """None where they are not all known."""
    first, second = node.static_shape(0), node.static_shape(1)
    if node.type in _FORWARD:
        found = first, second, node.outputs[0].dims
    elif node.type == BY_INPUT:
        found = _constant_dims(node, 0), second, node.static_shape(2)
    else:
        found = first, _constant_dims(node, 1), node.static_shape(2)
    if any(dims is None or len(dims) != 4 or None in dims or 0 in dims for dims in found):
        return None
    return Shapes(*found)  # type: ignore[arg-type]


def _constant_dims(node: PlanNode, i: int) -> Dims | None:
    value = node.constant(i)
    return None if value is None else tuple(int(n) for n in value)


def _attributes(node: PlanNode, shapes: Shapes, sums_filter: bool) -> dict[str, Any] | None:
    """The attributes of the nodes that stand for this one; None where it stays as it is. `sums_filter`: its
    sums are made in every step.
    """
    geometry = Geometry(node)
    images, kernel, results = shapes
    plain = geometry.last and set(geometry.strides) == set(geometry.dilations) == {1}
    if not plain or node.attributes.get("activation", "") not in ("", "Relu"):
        return None
    counts, before, after = geometry.solve(images[1:3], kernel[:2])
    if (images[0], *counts, kernel[3]) != results or images[3] != kernel[2]:
        return None
    for axis, across in ((1, 1), (2, 0)):
        positions = results[0] * counts[0] * counts[1]
        sizes = Sizes(kernel[axis - 1], kernel[across], counts[axis - 1], positions, *kernel[2:])
        if before[across] == after[across] and pays(sizes, node.type == BY_FILTER, sums_filter):
            return {
                "T": dtypes.float32,
                "axis": axis,
                "taps": kernel[axis - 1],
                "across": kernel[across],
                "images": images,
                "results": results,
                "before": before[axis - 1],
                "margin": before[across],
            }
    return None


def _nodes(subgraph: Subgraph, node: PlanNode, attributes: dict[str, Any]) -> tuple[PlanNode, ...]:
    if node.type == BY_FILTER:
        x, _, dy = node.inputs
        return (subgraph.new_node(registry["_WinogradConv2DBackpropFilter"], [x, dy], attributes, like=node),)
    filters = subgraph.new_node(
        registry["_WinogradFilter"],
        [node.inputs[1]],
        {"T": dtypes.float32, "P": len(products(attributes["taps"])), "axis": attributes["axis"]},
        like=node,
        name=f"{node.name}/filter",
    )
    parts = filters.outputs
    attributes = {**attributes, "P": len(parts)}
    if node.type == BY_INPUT:
        new = subgraph.new_node(
            registry["_WinogradConv2DBackpropInput"],
            [node.inputs[1], *parts, node.inputs[2]],
            attributes,
            like=node,
            group_sizes=(1, len(parts), 1),
        )
        return filters, new
    bias = node.inputs[2:]
    new = subgraph.new_node(
        registry["_WinogradConv2D"],
        [*node.inputs[:2], *parts, *bias],
        {**attributes, "NB": len(bias), "activation": node.attributes.get("activation", "")},
        like=node,
        group_sizes=(1, 1, len(parts), len(bias)),
    )
    return filters, new
