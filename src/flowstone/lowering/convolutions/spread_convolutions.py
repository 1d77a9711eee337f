"""Convolutions with few results a position, as one product whose elements are spread over the results.

Plans only, made by `spreading.py`. Libraries compute as many channels as fill a vector: of a convolution with
one to four of them, such as the last layer of a decoder or a generator, most is thrown away. Each position of
the images times all taps of the filter is a product [taps * outputs, positions] with full vectors; its
elements are then added to the results that they belong to, `strides` apart from one position to the next.

    results[s i + k - before] += images[i] filter[k]

This is a transposed convolution. An ordinary one with stride 1 is one with the taps in reverse order. The
sums have the terms of a plain convolution, so that infinities stay where they belong. The gradient by the
filter of an ordinary one is, with the taps in reverse order, that of a convolution of the results' gradient,
with few channels, whose results have many: a kind that libraries are fast at.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.kernel import CPU
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine.machine import current
from flowstone.framework.types import dtypes
from flowstone.ops.algebra.matrices import ACTIVATED

__all__: list[str] = []

_AT_ONCE = 1 << 20  # elements of a product that are kept at once, if one image has no more


class Spreading(NamedTuple):
    """Dims of images [batch, rows, columns, channels] and results [batch, height, width, outputs]; the
    filter's taps, how far a position's results are apart, and how many lie before the results, each
    (vertical, horizontal)."""

    images: tuple[int, ...]
    results: tuple[int, ...]
    taps: tuple[int, int]
    strides: tuple[int, int]
    before: tuple[int, int]

    @property
    def whole(self) -> tuple[int, int]:
        """Height and width with what lies before and behind the results."""
        down, across = (
            max((count - 1) * stride + taps, before + length)
            for count, stride, taps, before, length in zip(
                self.images[1:3], self.strides, self.taps, self.before, self.results[1:3]
            )
        )
        return down, across


def spread(images: torch.Tensor, rows: torch.Tensor, spreading: Spreading) -> torch.Tensor:
    """The results; `rows`: the filter, [outputs * taps, channels]."""
    batch, height, width, channels = spreading.images
    (above, beside), results = spreading.before, images.new_empty(spreading.results)
    positions = images.reshape(batch, height * width, channels).transpose(1, 2)
    count = max(_AT_ONCE // (height * width * rows.shape[0]), 1)
    for first in range(0, batch, count):
        some = positions[first : first + count]
        products = torch.matmul(rows, some)
        whole = torch.nn.functional.fold(products, spreading.whole, spreading.taps, stride=spreading.strides)
        inner = whole.narrow(2, above, spreading.results[1]).narrow(3, beside, spreading.results[2])
        results[first : first + count].copy_(inner.permute(0, 2, 3, 1))
    return results


def _spreading(node: Any) -> Spreading:
    values = node.attributes
    return Spreading(*(tuple(values[key]) for key in Spreading._fields))


def _cost(node: Any) -> float:
    spreading = _spreading(node)
    return 2.0 * math.prod(spreading.images) * math.prod(spreading.taps) * spreading.results[3]


_declaration = op(
    "_SpreadConv2D",
    "input: T, filter: T, bias: NB*T -> output: T",
    "images: list(int) ; results: list(int) ; taps: list(int) ; strides: list(int) ; before: list(int) ; "
    "reversed: bool ; NB: int >= 0 ; activation: string = ''",
    T=[dtypes.float32, dtypes.float64],
    multiplies="convolution",
)
_declaration.cost(_cost)
_declaration.infer(lambda node: tuple(node.attributes["results"]))
_declaration.not_differentiable()


def _rows_of(filters: torch.Tensor, reverses: bool) -> torch.Tensor:
    """A filter [height, width, channels, outputs] with its taps in reverse order, or one that is applied
    backward, [height, width, outputs, channels], as [outputs * height * width, channels]."""
    order = (3, 0, 1, 2) if reverses else (2, 0, 1, 3)
    seen = filters.flip(0, 1) if reverses else filters
    channels = filters.shape[2 if reverses else 3]
    return seen.permute(order).reshape(-1, channels)


@_declaration.kernel(CPU)
def _(node: Any, env: Any) -> Callable[..., torch.Tensor]:
    spreading, reverses = _spreading(node), node.attributes["reversed"]
    activate = ACTIVATED[node.attributes["activation"]]

    def run(images: torch.Tensor, filters: torch.Tensor, *bias: torch.Tensor) -> torch.Tensor:
        results = spread(images, _rows_of(filters, reverses), spreading)
        for each in bias:
            results.add_(each)
        return activate(results)

    return run


# ---- the gradient by the filter


def _by_kernel(
    images: torch.Tensor, dy: torch.Tensor, taps: tuple[int, int], padding: tuple[int, int]
) -> torch.Tensor:
    """Of a convolution with stride 1 of images, channels last, with the gradient `dy` by its results:
    [outputs, channels, height, width]."""
    like = images.new_empty((dy.shape[3], *taps, images.shape[3])).permute(0, 3, 1, 2)
    found: torch.Tensor = torch.ops.aten.convolution_backward.default(
        dy.permute(0, 3, 1, 2), images.permute(0, 3, 1, 2), like, None, (1, 1), padding,
        (1, 1), False, (0, 0), 1, (False, True, False),
    )[1]  # fmt: skip
    return found


def gradient_by_filter(images: torch.Tensor, dy: torch.Tensor, spreading: Spreading) -> torch.Tensor:
    """That of an ordinary convolution, whose taps are spread in reverse order: [height, width, channels,
    outputs]. As ATen computes it if it is not finite, for zeros of the padding are multiplied."""
    (height, width), (above, beside) = spreading.taps, spreading.before
    found = _by_kernel(dy, images, spreading.taps, spreading.before).permute(2, 3, 0, 1).flip(0, 1)
    if math.isfinite(found.sum().item()):
        return found
    padding = (height - 1 - above, width - 1 - beside)
    return _by_kernel(images, dy, spreading.taps, padding).permute(2, 3, 1, 0)


_by_filter = op(
    "_SpreadConv2DBackpropFilter",
    "input: T, out_backprop: T -> output: T",
    "images: list(int) ; results: list(int) ; taps: list(int) ; strides: list(int) ; before: list(int)",
    T=[dtypes.float32],
    multiplies="convolution gradient",
)
_by_filter.cost(_cost)
_by_filter.infer(
    lambda node: (*node.attributes["taps"], node.attributes["images"][3], node.attributes["results"][3])
)
_by_filter.not_differentiable()


@_by_filter.kernel(CPU)
def _(node: Any, env: Any) -> Callable[..., torch.Tensor]:
    spreading = _spreading(node)
    return lambda images, dy: gradient_by_filter(images, dy, spreading)


# ---- when it pays

_CALL = 2e6  # in multiplications of a direct convolution, what the calls cost
_PRODUCT = 1.3  # a multiplication of the product
_MOST = 4  # outputs a position
WORTHWHILE = 0.7  # of the direct convolution's time, from which it is done


def pays(spreading: Spreading) -> bool:
    """Whether this is expected to be faster than a direct convolution. Measured in docs/design/033."""
    batch, rows, columns, channels = spreading.images
    outputs, taps = spreading.results[3], math.prod(spreading.taps)
    if outputs > _MOST or taps == 1:
        return False
    each = batch * rows * columns * taps
    direct = each * channels * -(-outputs // _lanes()) * _lanes()
    spread = current().spread_element(each * outputs * 4)
    return each * outputs * (_PRODUCT * channels + spread) + _CALL <= WORTHWHILE * direct


def gradient_pays(spreading: Spreading) -> bool:
    """Whether `gradient_by_filter` is expected to be faster than ATen's. Measured in docs/design/033."""
    batch, rows, columns, channels = spreading.images
    outputs, taps, lanes = spreading.results[3], math.prod(spreading.taps), _lanes()
    if outputs > _MOST or taps == 1:
        return False
    each = batch * rows * columns * taps
    direct = each * channels * -(-outputs // lanes) * lanes
    return each * outputs * -(-channels // lanes) * lanes + _CALL <= WORTHWHILE * direct


@functools.cache
def _lanes() -> int:
    """Channels that libraries compute at once."""
    return 16 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 8
