"""Convolutions in tiles by `native/networks/tile_kernels.py`: Winograd's algorithm in both directions.

Plans only: of a Conv2D with static shapes that gains by it, and of its gradients, `tiles.py` makes
``_TiledConv2D`` and its kin, and a ``_TiledFilter`` for it, which inference keeps. The algorithm takes away
what a plain convolution only adds: of an infinity it makes NaN, and very large numbers may overflow. The code
notes when a result is not finite, and then everything is convolved once more, plainly. Windows that skip
every other position are those of folded images (`folded_images.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.kernel import CPU, X0, Call
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine.machine import current
from flowstone.framework.types import dtypes
from flowstone.lowering.convolutions.folded_images import (
    fold_filter,
    fold_images,
    unfold_filter,
    unfold_images,
)
from flowstone.lowering.packing.packed_weights import FORMS, Form
from flowstone.native.networks import tile_kernels
from flowstone.native.networks.tile_kernels import Geometry

__all__: list[str] = []

_TO_FIRST, _TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_ONES = (1, 1)
_DIMS = "images: list(int) ; results: list(int)"
_GEOMETRY = f"{_DIMS} ; taps: int ; above: int ; beside: int ; stride: int in [1, 2] = 1"


class Convolution(NamedTuple):
    """Dims of images and results, the `taps` of the square filter in a direction, the zeros `above` and
    `beside` the images, and how far windows are apart. Where that is 2, images and filter are folded."""

    images: tuple[int, ...]
    results: tuple[int, ...]
    taps: int
    above: int
    beside: int
    stride: int = 1

    @property
    def computed(self) -> Geometry:
        """What machine code is told."""
        if self.stride == 1:
            return Geometry(*self[:5])
        taps = (self.taps + 1) // 2
        batch, rows, columns, _ = self.results
        folded = (batch, rows + taps - 1, columns + taps - 1, 4 * self.images[3])
        return Geometry(folded, self.results, taps, 0, 0)

    def data(self, images: torch.Tensor) -> torch.Tensor:
        """The images as they are convolved."""
        if self.stride == 1:
            return images.contiguous()
        return fold_images(images, self.computed.images, self.above, self.beside)


def _convolution(node: Any) -> Convolution:
    values = node.attributes
    images, results = tuple(values["images"]), tuple(values["results"])
    sides = values["taps"], values["above"], values["beside"], values["stride"]
    return Convolution(images, results, *sides)


def _cost(node: Any) -> float:
    """Two operations for every multiplication that the algorithm leaves."""
    images, results, taps, *_ = _convolution(node).computed
    step = 7 - taps
    tiles = results[0] * -(-results[1] // step) * -(-results[2] // step)
    return 72.0 * tiles * images[3] * results[3]


# ---- the filter


def _transformed_dims(dims: Any, stride: int) -> list[Any]:
    return [(tile_kernels.filter_size(dims[2] * stride**2, dims[3]),)]


def _transform(filters: torch.Tensor, stride: int, backward: bool = False) -> torch.Tensor:
    return tile_kernels.transform_filter(filters if stride == 1 else fold_filter(filters), backward)


_filter = op("_TiledFilter", "filter: T -> output: T", "stride: int in [1, 2] = 1", T=[dtypes.float32])
_filter.infer(lambda node: _transformed_dims(node.dims(0), node.attributes["stride"]))
FORMS["tiles"] = Form(
    lambda dims, numbers: _transformed_dims(dims, numbers[0]),
    lambda weights, numbers: [_transform(weights, numbers[0])],
    lambda results, numbers: results,
)


@_filter.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    return Call(_transform, X0, node.attributes["stride"])


# ---- the convolution and its gradients


class _Plain(NamedTuple):
    """The images, channels first, with `extra` zeros above and beside them and maybe more behind; the
    `padding` of both ends alike that ATen's convolution adds, which multiplies no infinite filter by it."""

    images: torch.Tensor
    extra: tuple[int, int]
    padding: tuple[int, int]


def _padded(convolution: Convolution, images: torch.Tensor) -> _Plain:
    images_dims, results, taps, above, beside, stride = convolution
    below, right = (
        max((length - 1) * stride + taps - before - size, 0)
        for length, before, size in zip(results[1:3], (above, beside), images_dims[1:3])
    )
    y, x = min(above, below), min(beside, right)
    sides = (beside - x, right - x, above - y, below - y)
    padded = torch.nn.functional.pad(images.permute(_TO_FIRST), sides)
    return _Plain(padded, (above - y, beside - x), (y, x))


def _plain(
    convolution: Convolution, images: torch.Tensor, filters: torch.Tensor, bias: Any, rectifies: bool
) -> torch.Tensor:
    seen = _padded(convolution, images)
    results = torch.conv2d(seen.images, filters.permute(3, 2, 0, 1), bias, convolution.stride, seen.padding)
    results = results.permute(_TO_LAST)
    return results.relu_() if rectifies else results


def _plain_gradient(
    convolution: Convolution, images: torch.Tensor, filters: torch.Tensor, dy: torch.Tensor, by_filter: bool
) -> torch.Tensor:
    """By the images, channels last, or by the filter; of what it is by only the shape counts."""
    seen, kernel = _padded(convolution, images), filters.permute(3, 2, 0, 1)
    wanted, strides = (not by_filter, by_filter, False), (convolution.stride,) * 2
    by_images: torch.Tensor
    by_kernel: torch.Tensor
    by_images, by_kernel, _ = torch.ops.aten.convolution_backward.default(
        dy.permute(_TO_FIRST),
        seen.images,
        kernel,
        None,
        strides,
        seen.padding,
        _ONES,
        False,
        (0, 0),
        1,
        wanted,
    )
    if by_filter:
        return by_kernel.permute(2, 3, 1, 0)
    (above, beside), (_, height, width, _) = seen.extra, convolution.images
    return by_images.narrow(2, above, height).narrow(3, beside, width).permute(_TO_LAST)


_FUNCTIONS = "convolve", "transform_filter"  # what takes longest to make is begun first


def _prepared(node: Any, *names: str) -> tuple[Convolution, Geometry]:
    """The convolution and what is computed, by these functions of machine code."""
    convolution = _convolution(node)
    tile_kernels.prepare(convolution.computed, *names)
    return convolution, convolution.computed


_forward = op(
    "_TiledConv2D",
    "input: T, filter: T, transformed: T, bias: NB*T -> output: T",
    f"{_GEOMETRY} ; NB: int >= 0 ; activation: string = ''",
    T=[dtypes.float32],
    multiplies="convolution",
)
_forward.cost(_cost)
_forward.infer(lambda node: tuple(node.attributes["results"]))


@_forward.kernel(CPU)
def _(node: Any, env: Any) -> Callable[..., torch.Tensor]:
    (convolution, geometry), rectifies = _prepared(node, *_FUNCTIONS), node.attributes["activation"] == "Relu"

    def run(
        images: torch.Tensor, filters: torch.Tensor, transformed: torch.Tensor, bias: Any = None
    ) -> torch.Tensor:
        bias = None if bias is None else bias.contiguous()
        found = tile_kernels.convolve(convolution.data(images), transformed, bias, geometry, rectifies)
        return _plain(convolution, images, filters, bias, rectifies) if found is None else found

    return run


_by_input = op(
    "_TiledConv2DBackpropInput",
    "filter: T, out_backprop: T -> output: T",
    _GEOMETRY,
    T=[dtypes.float32],
)
_by_input.cost(_cost)
_by_input.infer(lambda node: tuple(node.attributes["images"]))


@_by_input.kernel(CPU)
def _(node: Any, env: Any) -> Callable[..., torch.Tensor]:
    convolution, geometry = _prepared(node, *_FUNCTIONS)
    backward, stride = geometry.backward(), convolution.stride

    def run(filters: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        dy = dy.contiguous()
        found = tile_kernels.convolve(dy, _transform(filters, stride, True), None, backward)
        if found is None:
            return _plain_gradient(convolution, dy.new_empty(convolution.images), filters, dy, False)
        if stride == 1:
            return found
        return unfold_images(found, convolution.images, convolution.above, convolution.beside)

    return run


_by_filter = op(
    "_TiledConv2DBackpropFilter",
    "input: T, out_backprop: T -> output: T",
    _GEOMETRY,
    T=[dtypes.float32],
)
_by_filter.cost(_cost)


@_by_filter.infer
def _(node: Any) -> Any:
    convolution = _convolution(node)
    return convolution.taps, convolution.taps, convolution.images[3], convolution.results[3]


@_by_filter.kernel(CPU)
def _(node: Any, env: Any) -> Callable[..., torch.Tensor]:
    (convolution, geometry), dims = _prepared(node, "differentiate"), node.outputs[0].dims

    def run(images: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        dy = dy.contiguous()
        found = tile_kernels.filter_gradient(convolution.data(images), dy, geometry)
        if found is None:
            return _plain_gradient(convolution, images, images.new_empty(dims), dy, True)
        return found if convolution.stride == 1 else unfold_filter(found, convolution.taps)

    return run


for _declaration in (_filter, _forward, _by_input, _by_filter):
    _declaration.not_differentiable()


# ---- when it pays

WORTHWHILE = 0.85  # of the direct convolution's time, from which the algorithm is taken
_CHANNELS = 8  # the fewest that are worth it


def pays(convolution: Convolution, what: str, products: int | None = None) -> bool:
    """Whether a convolution ("results"), or its gradient with respect to the "images" or by the "filter", is
    expected to be faster in tiles; `products`: those of two vectors, where small images would be convolved
    directly. Measured in docs/design/033.
    """
    geometry, costs = convolution.computed, current().profile.tiles
    if geometry.taps not in tile_kernels.TAPS or min(geometry.images[3], geometry.results[3]) < _CHANNELS:
        return False
    otherwise = costs.library + _multiplications(convolution, what, costs.padded)
    if products is not None:
        otherwise = min(otherwise, products * costs.product)
    images, results, taps, *_ = geometry.backward() if what == "images" else geometry
    step = 7 - taps
    tiles = results[0] * -(-results[1] // step) * -(-results[2] // step)
    channels, outputs = _wide(images[3]), _wide(results[3])
    by_filter = what == "filter"
    left = 36 * tiles * (channels * results[3] if by_filter else images[3] * outputs) * costs.left
    moved = 36 * tiles * (channels + outputs) * (costs.moved_by_filter if by_filter else costs.moved)
    summed = 36 * channels * outputs * (costs.summed_by_filter if by_filter else costs.summed)
    if not by_filter and current().exceeds_caches(4 * 36 * channels * outputs):
        summed *= costs.uncached
    if convolution.stride != 1:
        moved += math.prod(geometry.images) * current().profile.folded_element
    return left + moved + summed + costs.called <= WORTHWHILE * otherwise


def _multiplications(convolution: Convolution, what: str, padded: bool) -> float:
    """Those of a library, of as many channels as fill vectors."""
    inner, outer = convolution.images[3], convolution.results[3]
    if padded:
        inner = inner if inner < _CHANNELS else _wide(inner)  # oneDNN has kernels for few channels
    elif what == "images":
        inner, outer = outer, inner
    return math.prod(convolution.results[:3]) * inner * _wide(outer) * convolution.taps**2


def _wide(channels: int) -> int:
    return -(-channels // 16) * 16
