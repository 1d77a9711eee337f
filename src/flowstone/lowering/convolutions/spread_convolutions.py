"""Convolutions with few results a position, as one product whose elements are spread over the results.

Plans only, made by `spreading.py`. Libraries compute as many channels as fill a vector: of a convolution with
one to four of them, such as the last layer of a decoder or a generator, most is thrown away. Each position of
the images times all taps of the filter is a product [taps * outputs, positions] with full vectors; its
elements are then added to the results that they belong to, `strides` apart from one position to the next.

    results[s i + k - before] += images[i] filter[k]

Machine code does so for float32 (`native/networks/spread_code.py`), whose products no memory holds; elsewhere
a product by ATen is kept, and its elements are added up after it.

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
from flowstone.native.networks.spread_kernels import Spread, spreads
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


def _in_order(filters: torch.Tensor, reverses: bool) -> torch.Tensor:
    """A filter [height, width, channels, outputs] with its taps in reverse order, or one that is applied
    backward, [height, width, outputs, channels], as [outputs, height, width, channels]."""
    return filters.flip(0, 1).permute(3, 0, 1, 2) if reverses else filters.permute(2, 0, 1, 3)


def _by_code(spreading: Spreading, reverses: bool) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    (batch, rows, columns, channels), (down, across) = spreading.images, spreading.taps
    _, height, width, outputs = spreading.results
    code = Spread({
        "batch": batch, "rows": rows, "columns": columns, "channels": channels,
        "height": height, "width": width, "outputs": outputs, "taps_down": down, "taps_across": across,
        "stride_down": spreading.strides[0], "stride_across": spreading.strides[1],
        "above": spreading.before[0], "beside": spreading.before[1],
    })  # fmt: skip
    return lambda images, filters: code(images, _in_order(filters, reverses).permute(3, 1, 2, 0))


def _by_product(spreading: Spreading, reverses: bool) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    channels = spreading.images[3]
    return lambda images, filters: spread(
        images, _in_order(filters, reverses).reshape(-1, channels), spreading
    )


@_declaration.kernel(CPU)
def _(node: Any, env: Any) -> Callable[..., torch.Tensor]:
    spreading, reverses = _spreading(node), node.attributes["reversed"]
    activate = ACTIVATED[node.attributes["activation"]]
    has_code = node.dtype(0) is dtypes.float32 and _has_code(spreading)
    convolve = (_by_code if has_code else _by_product)(spreading, reverses)

    def run(images: torch.Tensor, filters: torch.Tensor, *bias: torch.Tensor) -> torch.Tensor:
        results = convolve(images, filters)
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
_CODE_CALL = 5e5  # the same of machine code
_PRODUCT = 1.3  # a multiplication of the product
_MOST = 4  # outputs a position
WORTHWHILE = 0.7  # of the direct convolution's time, from which it is done


def _has_code(spreading: Spreading) -> bool:
    return spreads(math.prod(spreading.taps) * spreading.results[3])


def pays(spreading: Spreading, dtype: dtypes.DType = dtypes.float32) -> bool:
    """Whether this is expected to be faster than a direct convolution. Measured in docs/design/033."""
    batch, rows, columns, channels = spreading.images
    outputs, taps = spreading.results[3], math.prod(spreading.taps)
    if outputs > _MOST or taps == 1:
        return False
    each = batch * rows * columns * taps
    direct = each * channels * -(-outputs // _lanes()) * _lanes()
    if dtype is dtypes.float32 and _has_code(spreading):
        vectors = -(-taps * outputs // _lanes())
        added = spreading.taps[0] * -(-spreading.taps[1] * outputs // _lanes())
        position = channels * vectors * _lanes() + added * current().profile.spread_vector
        return batch * rows * columns * position + _CODE_CALL <= WORTHWHILE * direct
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
