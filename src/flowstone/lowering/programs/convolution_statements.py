"""Nodes that convolve small images, or compute a convolution's gradients, as statements.

Each is a sum of products over windows (`native/programs/window_code.py`): of the images with zeros around
them; of the gradient with zeros around and between, by the filter turned around; or of the images by the
gradient, a row of the result for each place in a window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from flowstone.framework.graphs.subgraph import PlanNode
from flowstone.lowering.programs.program_limits import Untranslatable, kind_of, static_dims, strides_of
from flowstone.lowering.programs.statement_parts import broadcast, copy, put_into, result_of
from flowstone.lowering.programs.translation import Translation
from flowstone.native.codegen.emitter import FLOATS
from flowstone.native.programs.window_code import joined_walk
from flowstone.ops.networks.convolution_geometry import Geometry

__all__ = ["CONVOLUTIONS"]

_MOST_PRODUCTS = 1 << 17  # above which libraries are faster


class _Windows:
    """How windows lie in images: the geometry of a node, the images' and the filter's shape."""

    def __init__(self, node: PlanNode, image: tuple[int, ...], kernel: tuple[int, ...]) -> None:
        geometry = Geometry(node)
        if not geometry.last:
            raise Untranslatable(node, "its channels do not come last")
        if image[-1] != kernel[-2]:
            raise Untranslatable(node, "it convolves groups of channels")
        self.image, self.kernel = image, kernel
        self.strides, self.dilations = geometry.strides, geometry.dilations
        self.lengths, self.sizes = image[1:-1], kernel[:-2]
        self.counts, self.before, self.after = geometry.solve(self.lengths, self.sizes)
        if math.prod(self.counts) * image[0] * math.prod(kernel) > _MOST_PRODUCTS:
            raise Untranslatable(node, "the convolution is large")

    @property
    def around(self) -> tuple[int, ...]:
        """The images' shape with their padding."""
        sizes = [sum(each) for each in zip(self.lengths, self.before, self.after)]
        return (self.image[0], *sizes, self.image[-1])

    def places(self) -> list[tuple[int, int]]:
        """The walk over the windows' places in padded images."""
        steps = strides_of(self.around)
        along = [(n, step * s) for n, step, s in zip(self.counts, steps[1:], self.strides)]
        return [(self.image[0], steps[0]), *along]

    def inside(self) -> list[tuple[int, int]]:
        """The walk through a window of a padded image."""
        steps = strides_of(self.around)
        along = [(n, step * d) for n, step, d in zip(self.sizes, steps[1:], self.dilations)]
        return [*along, (self.image[-1], 1)]

    def padded(self, t: Translation, x: int, dtype: str) -> int:
        """The images with zeros around them."""
        if self.around == self.image:
            return x
        zero = t.builder.constant(dtype, (), [0])
        return put_into(t, x, zero, self.around, (0, *self.before, 0))


def _float_of(node: PlanNode) -> str:
    dtype = kind_of(node, node.outputs[0])
    if dtype not in FLOATS:
        raise Untranslatable(node, f"machine code has no convolutions of {dtype}")
    return dtype


def _sums(
    t: Translation,
    operands: Sequence[int],
    result: tuple[str, tuple[int, ...]],
    rows: Sequence[tuple[int, int]],
    terms: Sequence[tuple[int, int]],
) -> int:
    n = result[1][-1]
    return t.add("Windows", operands, result, rows=joined_walk(rows), terms=joined_walk(terms), n=n)


def _convolution(t: Translation, node: PlanNode) -> list[int]:
    dtype, dims = _float_of(node), static_dims(node, node.outputs[0].dims)
    windows = _Windows(node, *(static_dims(node, x.dims) for x in node.inputs[:2]))
    operands = [windows.padded(t, t.of(node.inputs[0]), dtype), t.of(node.inputs[1])]
    return [_sums(t, operands, (dtype, dims), windows.places(), windows.inside())]


def _biased_convolution(t: Translation, node: PlanNode) -> list[int]:
    if node.attributes.get("packed"):
        raise Untranslatable(node, "its filter is packed for a library")
    dtype, dims = result_of(node)
    total = t.add(
        "Add", [*_convolution(t, node), broadcast(t, node, t.of(node.inputs[2]), dims)], (dtype, dims)
    )
    activation = node.attributes["activation"]
    return [t.add(activation, [total], (dtype, dims))] if activation else [total]


def _gradient_by_images(t: Translation, node: PlanNode) -> list[int]:
    """Each number of the images is in windows behind it: a convolution of the gradient, in which the strides
    leave zeros, by the filter turned around."""
    dtype, dims = _float_of(node), static_dims(node, node.outputs[0].dims)
    kernel = static_dims(node, node.inputs[1].dims)
    windows = _Windows(node, dims, kernel)
    reaches = [(n - 1) * d for n, d in zip(windows.sizes, windows.dilations)]
    first = [reach - before for reach, before in zip(reaches, windows.before)]
    around = (dims[0], *[n + reach for n, reach in zip(windows.lengths, reaches)], kernel[-1])
    ends = [f + (n - 1) * s + 1 for f, n, s in zip(first, windows.counts, windows.strides)]
    if min(first) < 0 or any(end > room for end, room in zip(ends, around[1:-1])):
        raise Untranslatable(node, "more is padded than a window reaches")
    gradient = t.of(node.inputs[2])
    if t.builder.values[gradient].dims != around:
        zero = t.builder.constant(dtype, (), [0])
        gradient = put_into(t, gradient, zero, around, (0, *first, 0), (1, *windows.strides, 1))
    rank = len(windows.sizes)
    turned = np.arange(math.prod(kernel)).reshape(kernel)[tuple([slice(None, None, -1)] * rank)]
    by = copy(t, node, t.of(node.inputs[1]), turned.swapaxes(-1, -2))
    steps = strides_of(around)
    rows = [(dims[0], steps[0]), *zip(windows.lengths, steps[1:])]
    inside = [(n, step * d) for n, step, d in zip(windows.sizes, steps[1:], windows.dilations)]
    return [_sums(t, [gradient, by], (dtype, dims), rows, [*inside, (kernel[-1], 1)])]


def _gradient_by_filter(t: Translation, node: PlanNode) -> list[int]:
    """What each place of the windows holds, times the gradient."""
    dtype, dims = _float_of(node), static_dims(node, node.outputs[0].dims)
    windows = _Windows(node, static_dims(node, node.inputs[0].dims), dims)
    operands = [windows.padded(t, t.of(node.inputs[0]), dtype), t.of(node.inputs[2])]
    return [_sums(t, operands, (dtype, dims), windows.inside(), windows.places())]


CONVOLUTIONS: dict[str, Callable[[Translation, PlanNode], list[int]]] = {
    **dict.fromkeys(("Conv2D", "Conv3D"), _convolution),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), _gradient_by_images),
    **dict.fromkeys(("Conv2DBackpropFilter", "Conv3DBackpropFilterV2"), _gradient_by_filter),
    "_BiasedConv2D": _biased_convolution,
}
"""Nodes that convolve."""
