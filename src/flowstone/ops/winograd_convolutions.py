"""Convolutions with fewer multiplications on a host: `winograd` in one direction, oneDNN in the other.

Plans only: of a Conv2D with static shapes that gains by it, and of its gradients, `rewriting/winograd.py` makes
``_WinogradConv2D`` and its kin, and one ``_WinogradFilter`` for all of them. Images are [batch, height, width,
channels]. In the direction `axis` (1 or 2) they are padded and cut into pairs of positions; each product of the
algorithm is a convolution by a filter that has one tap in this direction, and all of one target are added up
in its place. The gradients are the transposed steps, in reverse.

Images are taken a few at a time, so that what is between the steps stays in the caches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from flowstone.framework import dtypes
from flowstone.framework.kernel import CPU, X0, Call
from flowstone.framework.operation import op
from flowstone.ops.packed_weights import FORMS, Dims, Form
from flowstone.ops.untouched import untouched
from flowstone.ops.winograd import APART, BOTH, EVEN, ODD, Product, products

__all__: list[str] = []

_AT_ONCE = 6 << 20  # bytes of the larger of an image and its result
_ONES = (1, 1)
_TO_FIRST, _TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
_convolve = torch.ops.mkldnn._convolution_pointwise.default
_convolve_onto = torch.ops.mkldnn._convolution_pointwise_.binary
_backward = torch.ops.aten.convolution_backward.default


class Tiling:
    """The geometry of a node, solved once a plan.

    `axis`, `taps`: of the algorithm; `products`; `images` and `results`: dims of the convolution's input and output;
    `before`: positions of padding along `axis`; `margins`: padding in the order of ATen, none along `axis`;
    `pairs`: of output positions along `axis`; `length`: of padded images there; `pieces`: (start, number) of
    the images that are taken at once.
    """

    def __init__(self, node: Any) -> None:
        attributes = node.attributes
        self.axis, self.taps = attributes["axis"], attributes["taps"]
        self.products = products(self.taps)
        self.images, self.results = tuple(attributes["images"]), tuple(attributes["results"])
        self.before, margin = attributes["before"], attributes["margin"]
        self.margins = (0, margin) if self.axis == 1 else (margin, 0)
        self.pairs = (self.results[self.axis] + 1) // 2
        self.length = 2 * (self.pairs + self.taps // 2)
        self.pieces = list(_pieces(self.images, self.results))

    def data(self, x: torch.Tensor) -> list[torch.Tensor]:
        """The images, channels first, that each product multiplies: with a position for each pair."""
        halves = self._padded(x).unflatten(self.axis, (-1, 2))
        shifted = [
            halves.select(self.axis + 1, offset % 2).narrow(self.axis, offset // 2, self.pairs)
            for offset in range(self.taps + 1)
        ]
        return [self._multiplied(product, shifted).permute(_TO_FIRST) for product in self.products]

    def _multiplied(self, product: Product, shifted: list[torch.Tensor]) -> torch.Tensor:
        first, *others = pieces = [
            [(sign, shifted[offset]) for offset, sign in piece.data.items()] for piece in product.pieces
        ]
        if not others:
            return _sum(first)
        *dims, channels = shifted[0].shape
        beside = shifted[0].new_empty((*dims, len(pieces), channels))
        for i, terms in enumerate(pieces):
            _sum(terms, beside.select(-2, i))
        return beside.flatten(-2)

    def _padded(self, x: torch.Tensor) -> torch.Tensor:
        length, after = x.shape[self.axis], self.before + x.shape[self.axis]
        if length == self.length:
            return x
        padded = x.new_empty((*x.shape[: self.axis], self.length, *x.shape[self.axis + 1 :]))
        padded.narrow(self.axis, 0, self.before).zero_()
        padded.narrow(self.axis, self.before, length).copy_(x)
        padded.narrow(self.axis, after, self.length - after).zero_()
        return padded

    def put(self, y: torch.Tensor, even: torch.Tensor, odd: torch.Tensor) -> None:
        """Puts the results of all pairs, channels first, into `y`."""
        for start, values in enumerate((even, odd)):
            place = self._every_second(y, start)
            place.copy_(values.permute(_TO_LAST).narrow(self.axis, 0, place.shape[self.axis]))

    def by_targets(self, dy: torch.Tensor) -> list[torch.Tensor]:
        """The gradient, channels first, by the result of each product."""
        if self.results[self.axis] % 2:
            dy = torch.cat((dy, torch.zeros_like(dy.narrow(self.axis, 0, 1))), self.axis)
        even, odd = (self._every_second(dy, start).permute(_TO_FIRST) for start in (0, 1))
        targets = {EVEN: even, ODD: odd, BOTH: even + odd}
        if any(product.target == APART for product in self.products):
            targets[APART] = even - odd
        return [targets[product.target] for product in self.products]

    def add_up(self, dx: torch.Tensor, gradients: list[torch.Tensor]) -> None:
        """Puts into `dx` the sums of the gradients, channels first, by the images of each product."""
        for offset in range(self.taps + 1):
            total = _sum(
                [
                    (piece.data[offset], part)
                    for product, gradient in zip(self.products, gradients)
                    for piece, part in zip(product.pieces, gradient.chunk(len(product.pieces), 1))
                    if offset in piece.data
                ]
            ).permute(_TO_LAST)
            skipped = max(self.before - offset + 1, 0) // 2  # pairs whose position is padding
            place = self._every_second(dx, 2 * skipped + offset - self.before)
            number = min(self.pairs - skipped, place.shape[self.axis])
            total, seen = total.narrow(self.axis, skipped, number), place.narrow(self.axis, 0, number)
            if offset > 1:
                seen.add_(total)
            else:  # the first of all even, or of all odd, positions
                seen.copy_(total)
                place.narrow(self.axis, number, place.shape[self.axis] - number).zero_()

    def _every_second(self, x: torch.Tensor, start: int) -> torch.Tensor:
        return x[:, start::2] if self.axis == 1 else x[:, :, start::2]


def _pieces(images: tuple[int, ...], results: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """(start, number) of equal pieces of a batch."""
    batch, size = images[0], 4 * max(math.prod(images[1:]), math.prod(results[1:]))
    number = -(-batch // max(_AT_ONCE // size, 1))
    for i in range(number):
        start, end = batch * i // number, batch * (i + 1) // number
        yield start, end - start


def _sum(terms: Sequence[tuple[int, torch.Tensor]], out: torch.Tensor | None = None) -> torch.Tensor:
    """The sum of tensors with signs 1 or -1, one at least positive; without `out` a lone tensor itself."""
    (_, total), *rest = sorted(terms, key=lambda term: -term[0])
    if not rest:
        return total if out is None else out.copy_(total)
    (sign, x), *rest = rest
    total = torch.add(total, x, alpha=sign, out=out)
    for sign, x in rest:
        total.add_(x, alpha=sign)
    return total


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
        parts.append(part.flatten(-2).permute(_TO_FIRST))
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
    """In oneDNN's order. The numbers: `axis`, the margins, and batch, height and width of what is multiplied."""
    _, above, beside, batch, *lengths = numbers
    reorder = torch.ops.mkldnn._reorder_convolution_weight.default
    return [
        reorder(part.contiguous(), (above, beside), _ONES, _ONES, 1, (batch, part.shape[1], *lengths))
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

_GEOMETRY = "axis: int ; taps: int ; images: list(int) ; results: list(int) ; before: int ; margin: int"

_forward = op(
    "_WinogradConv2D",
    "input: T, parts: P*T, bias: NB*T -> output: T",
    f"{_GEOMETRY} ; P: int >= 3 ; NB: int >= 0 ; activation: string = ''",
    T=[dtypes.float32],
)
_forward.infer(lambda node: tuple(node.attributes["results"]))


@_forward.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    tiling, activation = Tiling(node), node.attributes["activation"].lower() or None

    number_of_filters = len(tiling.products)

    def run(images: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        filters, bias = others[:number_of_filters], (*others[number_of_filters:], None)[0]
        results = images.new_empty(tiling.results)
        for start, number in tiling.pieces:
            pairs = _convolved(tiling, images.narrow(0, start, number), filters, bias, activation)
            tiling.put(results.narrow(0, start, number), *pairs)
        return results

    return run


def _convolved(
    tiling: Tiling, images: torch.Tensor, filters: Sequence[torch.Tensor], bias: Any, activation: str | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The even and the odd outputs, channels first."""
    factors = {product.target: found for product, *found in zip(tiling.products, tiling.data(images), filters)}
    geometry = (tiling.margins, _ONES, _ONES, 1)
    both = even = _convolve(*factors[BOTH], bias, *geometry, "none", (), "")
    if APART in factors:
        apart = _convolve(*factors[APART], None, *geometry, "none", (), "")
        even, odd = both + apart, both.sub_(apart)
    else:
        odd = both.clone()
    for target, total in ((EVEN, even), (ODD, odd)):
        _convolve_onto(total, *factors[target], None, *geometry, "add", 1.0, activation, (), "")
    return even, odd


_by_input = op(
    "_WinogradConv2DBackpropInput",
    "parts: P*T, out_backprop: T -> output: T",
    f"{_GEOMETRY} ; P: int >= 3",
    T=[dtypes.float32],
)
_by_input.infer(lambda node: tuple(node.attributes["images"]))


@_by_input.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    tiling = Tiling(node)

    def run(*inputs: torch.Tensor) -> torch.Tensor:
        *filters, dy = inputs
        dx = dy.new_empty(tiling.images)
        for start, number in tiling.pieces:
            gradients = [
                torch.conv_transpose2d(gradient, weights, None, _ONES, tiling.margins)
                for gradient, weights in zip(tiling.by_targets(dy.narrow(0, start, number)), filters)
            ]
            tiling.add_up(dx.narrow(0, start, number), gradients)
        return dx

    return run


_by_filter = op(
    "_WinogradConv2DBackpropFilter",
    "input: T, out_backprop: T -> output: T",
    f"{_GEOMETRY} ; across: int",
    T=[dtypes.float32],
)


@_by_filter.infer
def _(node: Any) -> Any:
    attributes = node.attributes
    lengths = attributes["taps"], attributes["across"]
    return (*lengths[:: 1 if attributes["axis"] == 1 else -1], attributes["images"][3], attributes["results"][3])


@_by_filter.kernel(CPU)
def _(node: Any, env: Any) -> Any:
    tiling, axis = Tiling(node), node.attributes["axis"]
    height, width, inputs, outputs = dims = node.outputs[0].dims
    shapes = [
        untouched((outputs, *lengths, channels), torch.float32).permute(_TO_FIRST)
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
            found = (
                (piece.taps[tap], part)
                for product, total in zip(tiling.products, totals)
                for piece, part in zip(product.pieces, total.chunk(len(product.pieces), 1))
                if tap in piece.taps
            )
            _put_weighted(result.narrow(axis, tap, 1).permute(_TO_FIRST), found)
        return result.permute(1, 2, 3, 0)

    return run


for _declaration in (_filter, _forward, _by_input, _by_filter):
    _declaration.not_differentiable()
