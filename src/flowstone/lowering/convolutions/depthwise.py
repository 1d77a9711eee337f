"""Convolutions channel by channel on a host, as machine code (`depthwise_convolutions.py`).

    %2 = DepthwiseConv2dNative(%0, W)    becomes    %2 = _DepthwiseConv2D(%0, W)

and the gradients with respect to the images and the filter likewise, where sizes say that it pays. Filters
with several results a channel and channels that come first stay as they are; so does everything where there
is no machine code, and with ``FLOWSTONE_PASSES=-convolve_channels``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowstone.framework.declarations.operation import registry
from flowstone.framework.graphs.subgraph import PlanNode, Subgraph
from flowstone.framework.types import dtypes
from flowstone.lowering.convolutions.depthwise_convolutions import pays
from flowstone.native.clusters import kernels
from flowstone.native.networks.depthwise_kernels import Channels
from flowstone.ops.networks.convolution_geometry import Geometry
from flowstone.rewriting.patterns import Replacement, rewrite


class _Kind(NamedTuple):
    """What stands for a node: the op, the operands it takes, and what it gives (`pays`)."""

    op: str
    operands: tuple[int, int]
    what: str


_KINDS = {
    "DepthwiseConv2dNative": _Kind("_DepthwiseConv2D", (0, 1), "results"),
    "DepthwiseConv2dNativeBackpropInput": _Kind("_DepthwiseConv2DBackpropInput", (1, 2), "images"),
    "DepthwiseConv2dNativeBackpropFilter": _Kind("_DepthwiseConv2DBackpropFilter", (0, 2), "filter"),
}


def convolve_channels(subgraph: Subgraph) -> None:
    """Replaces depthwise convolutions, and their gradients, that gain by machine code."""
    if not kernels.is_on() or not any(node.type in _KINDS for node in subgraph.nodes):
        return

    def rule(node: PlanNode) -> Replacement | None:
        kind = _KINDS.get(node.type)
        if kind is None or node.dtype(kind.operands[0]) is not dtypes.float32:
            return None
        channels = _channels(node, kind)
        if channels is None or not pays(channels, kind.what):
            return None
        inputs = [node.inputs[i] for i in kind.operands]
        attributes: dict[str, Any] = {"T": dtypes.float32, **channels._asdict()}
        new = subgraph.new_node(registry[kind.op], inputs, attributes, like=node)
        return Replacement(list(new.outputs), "channel by channel", (new,))

    rewrite(subgraph, "convolve_channels", rule)


def _channels(node: PlanNode, kind: _Kind) -> Channels | None:
    """None where shapes are not known, or the convolution is of another kind."""
    images = _given(node, 0) if kind.what == "images" else node.static_shape(0)
    kernel = _given(node, 1) if kind.what == "filter" else node.static_shape(1)
    results = node.outputs[0].dims if kind.what == "results" else node.static_shape(2)
    if any(dims is None or len(dims) != 4 or None in dims or 0 in dims for dims in (images, kernel, results)):
        return None
    geometry = Geometry(node)
    assert images is not None and kernel is not None and results is not None
    if not geometry.last or kernel[3] != 1 or kernel[2] != images[3]:
        return None
    counts, before, after = geometry.solve(images[1:3], kernel[:2])
    if (images[0], *counts, images[3]) != tuple(results):
        return None
    pairs = [tuple(pair) for pair in (kernel[:2], geometry.strides, geometry.dilations, before)]
    if any(stride > 1 < dilation for stride, dilation in zip(pairs[1], pairs[2])):
        return None
    reach = [(taps - 1) * dilation for taps, dilation in zip(pairs[0], pairs[2])]
    if any(max(sides) > most for sides, most in zip(zip(before, after), reach)):
        return None
    return Channels(tuple(images), tuple(results), *pairs)  # type: ignore[arg-type]


def _given(node: PlanNode, i: int) -> tuple[int, ...] | None:
    value = node.constant(i)
    return None if value is None else tuple(int(n) for n in value)
