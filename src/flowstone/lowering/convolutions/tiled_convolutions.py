"""Convolutions in tiles: Winograd's algorithm in both directions, as machine code (`native/tile_kernels.py`).

Plans only: of a Conv2D with static shapes that gains by it, and of its gradients, `tiles.py` makes
``_TiledConv2D`` and its kin, and a ``_TiledFilter`` for it, which inference keeps. The algorithm takes away
what a plain convolution only adds: of an infinity it makes NaN, and very large numbers may overflow. The code
notes when a result is not finite, and then everything is convolved once more, plainly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from flowstone.framework import dtypes
from flowstone.framework.kernel import CPU
from flowstone.framework.operation import op
from flowstone.lowering.packing.packed_weights import FORMS, Form
from flowstone.native import tile_kernels
from flowstone.native.tile_kernels import Geometry

__all__: list[str] = []

_TO_FIRST, _TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_ONES = (1, 1)
_GEOMETRY = "taps: int ; images: list(int) ; results: list(int) ; above: int ; beside: int"


def _geometry(node: Any) -> Geometry:
    values = node.attributes
    return Geometry(
        tuple(values["images"]), tuple(values["results"]), values["taps"], values["above"], values["beside"]
    )


def _cost(node: Any) -> float:
    """Two operations for every multiplication that the algorithm leaves."""
    images, results, taps, *_ = _geometry(node)
    step = 7 - taps
    tiles = results[0] * -(-results[1] // step) * -(-results[2] // step)
    return 72.0 * tiles * images[3] * results[3]


# ---- the filter


def _transformed_dims(dims: Any, numbers: Any = ()) -> list[Any]:
    return [(tile_kernels.filter_size(dims[2], dims[3]),)]


def _transform(filters: torch.Tensor) -> torch.Tensor:
    return tile_kernels.transform_filter(filters, False)


_filter = op("_TiledFilter", "filter: T -> output: T", T=[dtypes.float32])
_filter.infer(lambda node: _transformed_dims(node.dims(0)))
FORMS["tiles"] = Form(
    _transformed_dims, lambda weights, numbers: [_transform(weights)], lambda results, numbers: results
)


@_filter.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    tile_kernels.prepare(node.dims(0)[0])
    return _transform


# ---- the convolution and its gradients


class _Plain(NamedTuple):
    """The images, channels first, with `extra` zeros above and beside them and maybe more behind; the
    `padding` of both ends alike that ATen's convolution adds, which multiplies no infinite filter by it."""

    images: torch.Tensor
    extra: tuple[int, int]
    padding: tuple[int, int]


def _padded(geometry: Geometry, images: torch.Tensor) -> _Plain:
    images_dims, results, taps, above, beside = geometry
    below, right = (
        length + taps - 1 - before - size
        for length, before, size in zip(results[1:3], (above, beside), images_dims[1:3])
    )
    y, x = min(above, below), min(beside, right)
    sides = (beside - x, right - x, above - y, below - y)
    padded = torch.nn.functional.pad(images.permute(_TO_FIRST), sides)
    return _Plain(padded, (above - y, beside - x), (y, x))


def _plain(
    geometry: Geometry, images: torch.Tensor, filters: torch.Tensor, bias: Any, rectifies: bool
) -> torch.Tensor:
    seen = _padded(geometry, images)
    results = torch.conv2d(seen.images, filters.permute(3, 2, 0, 1), bias, 1, seen.padding).permute(_TO_LAST)
    return results.relu_() if rectifies else results


def _plain_gradient(
    geometry: Geometry, images: torch.Tensor, filters: torch.Tensor, dy: torch.Tensor, by_filter: bool
) -> torch.Tensor:
    """By the images, channels last, or by the filter; of what it is by only the shape counts."""
    seen, kernel = _padded(geometry, images), filters.permute(3, 2, 0, 1)
    wanted = (not by_filter, by_filter, False)
    by_images: torch.Tensor
    by_kernel: torch.Tensor
    by_images, by_kernel, _ = torch.ops.aten.convolution_backward.default(
        dy.permute(_TO_FIRST), seen.images, kernel, None, _ONES, seen.padding, _ONES, False, (0, 0), 1, wanted
    )
    if by_filter:
        return by_kernel.permute(2, 3, 1, 0)
    (above, beside), (_, height, width, _) = seen.extra, geometry.images
    return by_images.narrow(2, above, height).narrow(3, beside, width).permute(_TO_LAST)


def _prepared(node: Any) -> Geometry:
    geometry = _geometry(node)
    tile_kernels.prepare(geometry.taps)
    return geometry


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
    geometry, rectifies = _prepared(node), node.attributes["activation"] == "Relu"

    def run(
        images: torch.Tensor, filters: torch.Tensor, transformed: torch.Tensor, bias: Any = None
    ) -> torch.Tensor:
        images = images.contiguous()
        bias = None if bias is None else bias.contiguous()
        found = tile_kernels.convolve(images, transformed, bias, geometry, rectifies)
        return _plain(geometry, images, filters, bias, rectifies) if found is None else found

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
    geometry = _prepared(node)
    backward = geometry.backward()

    def run(filters: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        dy = dy.contiguous()
        transformed = tile_kernels.transform_filter(filters, True)
        found = tile_kernels.convolve(dy, transformed, None, backward)
        if found is not None:
            return found
        return _plain_gradient(geometry, dy.new_empty(geometry.images), filters, dy, False)

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
    geometry = _geometry(node)
    return geometry.taps, geometry.taps, geometry.images[3], geometry.results[3]


@_by_filter.kernel(CPU)
def _(node: Any, env: Any) -> Callable[..., torch.Tensor]:
    geometry, dims = _prepared(node), node.outputs[0].dims

    def run(images: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        images, dy = images.contiguous(), dy.contiguous()
        found = tile_kernels.filter_gradient(images, dy, geometry)
        if found is not None:
            return found
        return _plain_gradient(geometry, images, images.new_empty(dims), dy, True)

    return run


for _declaration in (_filter, _forward, _by_input, _by_filter):
    _declaration.not_differentiable()


# ---- when it pays

_CALL = 1.5e6  # in multiplications of a direct convolution, what a call costs
_MOVED, _MOVED_BY_FILTER = 12.0, 18.0  # an element of the 36 matrices of a tile
_SUMMED = 30.0  # an element of the 36 matrices of a filter
WORTHWHILE = 0.85  # of the direct convolution's time, from which the algorithm is taken
_CHANNELS = 8  # the fewest that are worth it


def pays(geometry: Geometry, by_filter: bool) -> bool:
    """Whether a convolution, or its gradient by the filter, is expected to be faster in tiles.

    All kernels, oneDNN's as well, compute as many channels as fill vectors. Measured in docs/design/033.
    """
    images, results, taps, *_ = geometry
    if taps not in tile_kernels.TAPS or min(images[3], results[3]) < _CHANNELS:
        return False
    step = 7 - taps
    tiles = results[0] * -(-results[1] // step) * -(-results[2] // step)
    channels, outputs = (-(-n // 16) * 16 for n in (images[3], results[3]))
    direct = math.prod(results[:3]) * channels * outputs * taps**2
    left = 36 * tiles * (channels * results[3] if by_filter else images[3] * outputs)
    moved = 36 * tiles * (channels + outputs) * (_MOVED_BY_FILTER if by_filter else _MOVED)
    return left + moved + 36 * channels * outputs * _SUMMED + _CALL <= WORTHWHILE * direct
