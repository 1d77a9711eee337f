"""Convolutions with fewer multiplications on a host: `winograd` in one direction, oneDNN in the other.

Plans only: of a Conv2D with static shapes that gains by it, and of its gradients, `winograd.py`
makes ``_WinogradConv2D`` and its kin, and one ``_WinogradFilter`` for all of them. Images are [batch, height,
width, channels]. In the direction `axis` (1 or 2) they are padded and cut into pairs of positions; each
product of the algorithm is a convolution by a filter that has one tap in this direction, and the results of a
pair are added up in place. The gradients are the same steps transposed, in reverse.

The algorithm adds and takes away what a plain convolution only adds: of an infinity it makes NaN, and sums
of very large numbers may overflow. So images whose results are not all finite are convolved once more,
plainly; to add up results that have just been made costs less than a hundredth of making them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.kernel import CPU, X0, Call
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine import onednn
from flowstone.framework.types import dtypes
from flowstone.lowering.convolutions.minimal_filtering import (
    APART,
    BOTH,
    EVEN,
    ODD,
    multiplications,
    products,
)
from flowstone.lowering.convolutions.winograd_tiling import TO_FIRST, TO_LAST, Tiling
from flowstone.lowering.packing.packed_weights import FORMS, Dims, Form, reordered_filter
from flowstone.ops.arrays.untouched import untouched

__all__: list[str] = []

_ONES = (1, 1)
_convolve = onednn.convolve
_convolve_onto = onednn.convolve_onto
_backward = torch.ops.aten.convolution_backward.default


def _put_weighted(place: torch.Tensor, terms: Iterable[tuple[float, torch.Tensor]]) -> None:
    """Puts the weighted sum of tensors into a place."""
    (factor, x), *rest = sorted(terms, key=lambda term: -term[0])
    torch.mul(x, factor, out=place)
    for factor, x in rest:
        place.add_(x, alpha=factor)


# ---- the filter


def _parts(filters: torch.Tensor, axis: int) -> list[torch.Tensor]:
    """The filters of all products, of [height, width, in, out]: [out, in, height, width], channels last."""
    by_output = filters.permute(3, 0, 1, 2)
    dims = list(by_output.shape)
    taps, dims[axis] = dims[axis], 1
    parts = []
    for product in products(taps):
        part = filters.new_empty((*dims[:3], len(product.pieces), dims[3]))
        for i, piece in enumerate(product.pieces):
            terms = ((factor, by_output.narrow(axis, tap, 1)) for tap, factor in piece.taps.items())
            _put_weighted(part.select(-2, i), terms)
        parts.append(part.flatten(-2).permute(TO_FIRST))
    return parts


def _dims_of_parts(dims: Any, axis: int) -> list[Any]:
    lengths = list(dims[:2])
    taps, lengths[axis - 1] = lengths[axis - 1], 1
    return [(dims[3], len(product.pieces) * dims[2], *lengths) for product in products(taps)]


_filter = op("_WinogradFilter", "filter: T -> parts: P*T", "P: int >= 3 ; axis: int", T=[dtypes.float32])
_filter.infer(lambda node: _dims_of_parts(node.dims(0), node.attributes["axis"]))


@_filter.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    return Call(_parts, X0, node.attributes["axis"])


def _pack(parts: Sequence[torch.Tensor], numbers: Dims) -> list[torch.Tensor]:
    """In oneDNN's order. The numbers: `axis`, the margins, and batch, height and width of the data."""
    _, above, beside, batch, *lengths = numbers
    return [
        reordered_filter(part, (above, beside), _ONES, _ONES, (batch, part.shape[1], *lengths))
        for part in parts
    ]


FORMS["winograd"] = Form(
    lambda dims, numbers: _dims_of_parts(dims, numbers[0]),
    lambda weights, numbers: _parts(weights, numbers[0]),
    _pack,
)


def numbers_of(convolution: Any) -> Dims:
    """The numbers by which the filter of a ``_WinogradConv2D`` is packed."""
    tiling = Tiling(convolution)
    _, height, width, _ = tiling.images
    lengths = (tiling.pairs, width) if tiling.axis == 1 else (height, tiling.pairs)
    return (tiling.axis, *tiling.margins, tiling.pieces[0][1], *lengths)


# ---- the convolution and its gradients

_GEOMETRY = (
    "axis: int ; taps: int ; across: int ; images: list(int) ; results: list(int) ; before: int ; margin: int"
)


def _cost(node: Any) -> float:
    """Two operations for every multiplication that the algorithm leaves, of each pair of results."""
    attributes = node.attributes
    of_a_pair = multiplications(attributes["taps"]) * attributes["across"] * attributes["images"][3]
    return float(math.prod(attributes["results"]) * of_a_pair)


_forward = op(
    "_WinogradConv2D",
    "input: T, filter: T, parts: P*T, bias: NB*T -> output: T",
    f"{_GEOMETRY} ; P: int >= 3 ; NB: int >= 0 ; activation: string = ''",
    T=[dtypes.float32],
    multiplies="convolution",
)
_forward.cost(_cost)
_forward.infer(lambda node: tuple(node.attributes["results"]))


@_forward.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    tiling, rectified = Tiling(node), node.attributes["activation"] == "Relu"
    number_of_filters = len(tiling.products)

    def run(images: torch.Tensor, whole: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        filters, bias = others[:number_of_filters], (*others[number_of_filters:], None)[0]
        results = images.new_empty(tiling.results)
        for start, number in tiling.pieces:
            some, place = images.narrow(0, start, number), results.narrow(0, start, number)
            tiling.put(place, *_convolved(tiling, some, filters, bias), rectified)
            if not _is_finite(place):
                place.copy_(_plain_results(tiling, some, whole, bias, rectified))
        return results

    return run


def _convolved(
    tiling: Tiling, images: torch.Tensor, filters: Sequence[torch.Tensor], bias: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """The even and the odd outputs, channels first."""
    factors = {
        product.target: found for product, *found in zip(tiling.products, tiling.data(images), filters)
    }
    geometry = (tiling.margins, _ONES, _ONES, 1)
    both = even = _convolve(*factors[BOTH], bias, *geometry, "none", (), "")
    if APART in factors:
        apart = _convolve(*factors[APART], None, *geometry, "none", (), "")
        even, odd = both + apart, both.sub_(apart)
    else:
        odd = both.clone()
    for target, total in ((EVEN, even), (ODD, odd)):
        _convolve_onto(total, *factors[target], None, *geometry, "add", 1.0, None, (), "")
    return even, odd


def _is_finite(x: torch.Tensor) -> bool:
    """Whether all elements are finite, and far from the largest numbers."""
    return math.isfinite(x.sum().item())


# ---- without the algorithm


class _Plain(NamedTuple):
    """The images, channels first, with `extra` zeros before them and maybe more behind; the `padding` of both
    ends alike that a convolution adds to that."""

    images: torch.Tensor
    extra: tuple[int, int]
    padding: tuple[int, int]


def _plain(tiling: Tiling, images: torch.Tensor) -> _Plain:
    along = tiling.axis - 1
    length = tiling.results[tiling.axis] + tiling.taps - 1
    before, after = tiling.before, length - tiling.before - tiling.images[tiling.axis]
    both, padding, extra = min(before, after), list(tiling.margins), [0, 0]
    padding[along], extra[along] = both, before - both
    sides = [0, 0, 0, 0]  # of the last dimension first
    sides[2 - 2 * along : 4 - 2 * along] = before - both, after - both
    padded = torch.nn.functional.pad(images.permute(TO_FIRST), sides)
    return _Plain(padded, (extra[0], extra[1]), (padding[0], padding[1]))


def _plain_results(
    tiling: Tiling, images: torch.Tensor, filters: torch.Tensor, bias: Any, rectified: bool
) -> torch.Tensor:
    seen = _plain(tiling, images)
    results = torch.conv2d(seen.images, filters.permute(3, 2, 0, 1), bias, 1, seen.padding).permute(TO_LAST)
    return results.relu_() if rectified else results


def _plain_gradient(
    tiling: Tiling, images: torch.Tensor, filters: torch.Tensor, dy: torch.Tensor, by_filter: bool
) -> torch.Tensor:
    """By the images, channels last, or by the filter; of what it is by only the shape counts."""
    seen, kernel = _plain(tiling, images), filters.permute(3, 2, 0, 1)
    wanted = (not by_filter, by_filter, False)
    by_images: torch.Tensor
    by_kernel: torch.Tensor
    by_images, by_kernel, _ = _backward(
        dy.permute(TO_FIRST), seen.images, kernel, None, _ONES, seen.padding, _ONES, False, (0, 0), 1, wanted
    )
    if by_filter:
        return by_kernel.permute(2, 3, 1, 0)
    (above, beside), (_, height, width, _) = seen.extra, images.shape
    return by_images.narrow(2, above, height).narrow(3, beside, width).permute(TO_LAST)


_by_input = op(
    "_WinogradConv2DBackpropInput",
    "filter: T, parts: P*T, out_backprop: T -> output: T",
    f"{_GEOMETRY} ; P: int >= 3",
    T=[dtypes.float32],
)
_by_input.cost(_cost)
_by_input.infer(lambda node: tuple(node.attributes["images"]))


@_by_input.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    tiling = Tiling(node)

    def run(whole: torch.Tensor, *inputs: torch.Tensor) -> torch.Tensor:
        *filters, dy = inputs
        dx = dy.new_empty(tiling.images)
        for start, number in tiling.pieces:
            some, place = dy.narrow(0, start, number), dx.narrow(0, start, number)
            gradients = [
                torch.conv_transpose2d(gradient, weights, None, _ONES, tiling.margins)
                for gradient, weights in zip(tiling.by_targets(some), filters)
            ]
            tiling.add_up(place, gradients)
            if not _is_finite(place):
                place.copy_(_plain_gradient(tiling, place, whole, some, False))
        return dx

    return run


_by_filter = op(
    "_WinogradConv2DBackpropFilter",
    "input: T, out_backprop: T -> output: T",
    _GEOMETRY,
    T=[dtypes.float32],
)
_by_filter.cost(_cost)


@_by_filter.infer
def _(node: Any) -> Any:
    attributes = node.attributes
    lengths = attributes["taps"], attributes["across"]
    return (
        *lengths[:: 1 if attributes["axis"] == 1 else -1],
        attributes["images"][3],
        attributes["results"][3],
    )


@_by_filter.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    tiling, axis = Tiling(node), node.attributes["axis"]
    height, width, inputs, outputs = dims = node.outputs[0].dims
    shapes = [
        untouched((outputs, *lengths, channels), torch.float32).permute(TO_FIRST)
        for _, channels, *lengths in _dims_of_parts(dims, axis)
    ]

    def by_parts(images: torch.Tensor, dy: torch.Tensor) -> list[torch.Tensor]:
        return [
            _backward(
                gradient, x, shape, None, _ONES, tiling.margins, _ONES, False, (0, 0), 1, (False, True, False)
            )[1]
            for gradient, x, shape in zip(tiling.by_targets(dy), tiling.data(images), shapes)
        ]

    def run(images: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        totals: list[torch.Tensor] = []
        for start, number in tiling.pieces:
            found = by_parts(images.narrow(0, start, number), dy.narrow(0, start, number))
            totals = [total.add_(x) for total, x in zip(totals, found)] if totals else found
        result = images.new_empty((outputs, height, width, inputs))
        for tap in range(dims[axis - 1]):
            terms = (
                (piece.taps[tap], part)
                for product, total in zip(tiling.products, totals)
                for piece, part in zip(product.pieces, total.chunk(len(product.pieces), 1))
                if tap in piece.taps
            )
            _put_weighted(result.narrow(axis, tap, 1).permute(TO_FIRST), terms)
        result = result.permute(1, 2, 3, 0)
        return result if _is_finite(result) else _plain_gradient(tiling, images, result, dy, True)

    return run


for _declaration in (_filter, _forward, _by_input, _by_filter):
    _declaration.not_differentiable()
