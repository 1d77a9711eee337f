"""What goes into the products of Winograd's algorithm, and how their results become images again.

Images are [batch, height, width, channels]. In the direction of the algorithm, dimension `axis` (1 or 2),
they are padded and seen as pairs of positions; what is multiplied has a position for each pair. Images are
taken a few at a time, so that what is between the steps stays in the caches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from flowstone.framework.machine import machine
from flowstone.lowering.convolutions.minimal_filtering import APART, BOTH, EVEN, ODD, Product, products

__all__: list[str] = []

TO_FIRST, TO_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
"""The permutations between images with channels last and first."""


class Tiling:
    """The geometry of a node, solved once a plan.

    `axis`, `taps`, `products`: of the algorithm; `images` and `results`: dims of the convolution's input and
    output; `before`: positions of padding along `axis`; `margins`: padding in the order of ATen, none along
    `axis`; `pairs`: of output positions along `axis`; `length`: of padded images there; `pieces`: (start,
    number) of the images that are taken at once.
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
        self.pieces = list(_pieces(self.images, self.results, machine.current().profile.core_cache * 3 // 2))

    def data(self, x: torch.Tensor) -> list[torch.Tensor]:
        """The images, channels first, that each product multiplies: with a position for each pair."""
        halves = self._padded(x).unflatten(self.axis, (-1, 2))
        shifted = [
            halves.select(self.axis + 1, offset % 2).narrow(self.axis, offset // 2, self.pairs)
            for offset in range(self.taps + 1)
        ]
        return [self._multiplied(product, shifted).permute(TO_FIRST) for product in self.products]

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

    def put(self, y: torch.Tensor, even: torch.Tensor, odd: torch.Tensor, rectified: bool = False) -> None:
        """Puts the results of all pairs, channels first, into `y`; if `rectified`, none below zero (oneDNN's
        own rectification would make zeros of NaN)."""
        for start, values in enumerate((even, odd)):
            place = self._every_second(y, start)
            results = values.permute(TO_LAST).narrow(self.axis, 0, place.shape[self.axis])
            if rectified:
                torch.clamp_min(results, 0, out=place)
            else:
                place.copy_(results)

    def by_targets(self, dy: torch.Tensor) -> list[torch.Tensor]:
        """The gradient, channels first, by the result of each product."""
        if self.results[self.axis] % 2:
            dy = torch.cat((dy, torch.zeros_like(dy.narrow(self.axis, 0, 1))), self.axis)
        even, odd = (self._every_second(dy, start).permute(TO_FIRST) for start in (0, 1))
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
            ).permute(TO_LAST)
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


def _pieces(images: tuple[int, ...], results: tuple[int, ...], most: int) -> Iterator[tuple[int, int]]:
    """(start, number) of equal pieces of a batch, of whose images and results neither has more bytes than
    `most`, but for a single image."""
    batch, size = images[0], 4 * max(math.prod(images[1:]), math.prod(results[1:]))
    number = -(-batch // max(most // size, 1))
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
