"""Winograd's minimal filtering: two outputs of a filter of three taps by four multiplications instead of six.

Outputs y[2t] and y[2t + 1] of a filter g over data d, where d[k] stands for d[2t + k]:

    even output only          (d0 - d2) g0
    to both                   (d1 + d2) (g0 + g1 + g2) / 2
    to even, from odd         (d2 - d1) (g0 - g1 + g2) / 2
    odd output only           (d3 - d1) g2

and for two taps, three instead of four: (d0 - d1) g0 to even, d1 (g0 + g1) to both, (d2 - d1) g1 to odd.
Longer filters are cut into pieces of three and two taps. The sums over the filter are made once for all
positions, and those over the data are additions, so that of a convolution's multiplications 2/3 (three taps
in this direction) to 3/4 (two) are left. Each result adds fewer terms, so that it is more exact, not less,
unlike algorithms for larger tiles. Measured in docs/design/019.

Source: S. Winograd, Arithmetic Complexity of Computations (1980); for convolutional networks A. Lavin and
S. Gray, Fast Algorithms for Convolutional Neural Networks (2015), here in one direction at a time.
"""

from __future__ import annotations

from typing import NamedTuple

from flowstone.framework.machine import machine

EVEN, BOTH, APART, ODD = "even", "both", "apart", "odd"
"""Where a product goes: to one of the two outputs, to both, or to the even one and negated to the odd one."""


class Piece(NamedTuple):
    """Sums of the data (offset: sign) and of the taps (index: factor) that are multiplied."""

    data: dict[int, int]
    taps: dict[int, float]


class Product(NamedTuple):
    """What is added up for one target: the pieces are multiplied one by one and added, so that a convolution
    has them beside each other as channels.
    """

    target: str
    pieces: tuple[Piece, ...]


def products(taps: int) -> tuple[Product, ...]:
    """The products that make two neighbouring outputs of a filter of at least two taps, one for each target
    that there is, in the order in which they are to be made.
    """
    pieces: dict[str, list[Piece]] = {BOTH: [], APART: [], EVEN: [], ODD: []}
    at = 0
    for size in _sizes(taps):
        for target, (data, factors) in _OF_SIZE[size].items():
            here = {at + offset: sign for offset, sign in data.items()}
            pieces[target].append(Piece(here, {at + index: factor for index, factor in factors.items()}))
        at += size
    return tuple(Product(target, tuple(found)) for target, found in pieces.items() if found)


def multiplications(taps: int) -> int:
    """How many are left of 2 * `taps` for two outputs."""
    return sum(len(product.pieces) for product in products(taps))


_OF_SIZE = {
    2: {
        EVEN: Piece({0: 1, 1: -1}, {0: 1.0}),
        BOTH: Piece({1: 1}, {0: 1.0, 1: 1.0}),
        ODD: Piece({2: 1, 1: -1}, {1: 1.0}),
    },
    3: {
        EVEN: Piece({0: 1, 2: -1}, {0: 1.0}),
        BOTH: Piece({1: 1, 2: 1}, {0: 0.5, 1: 0.5, 2: 0.5}),
        APART: Piece({2: 1, 1: -1}, {0: 0.5, 1: -0.5, 2: 0.5}),
        ODD: Piece({3: 1, 1: -1}, {2: 1.0}),
    },
}


def _sizes(taps: int) -> list[int]:
    """`taps` as a sum of threes and as few twos as possible."""
    twos = -taps % 3
    return [3] * ((taps - 2 * twos) // 3) + [2] * twos


# ---- when it pays


class Sizes(NamedTuple):
    """Of a convolution: `taps` in the direction of the algorithm and `across` it, `count` of outputs in its
    direction, `positions` of all results, channels of images (`inputs`) and results (`outputs`).
    """

    taps: int
    across: int
    count: int  # type: ignore[assignment]
    positions: int
    inputs: int
    outputs: int


def pays(sizes: Sizes, by_filter: bool = False, sums_filter: bool = True) -> bool:
    """Whether a convolution, or its gradient with respect to the images, or that by the filter, is expected
    to be faster so. `sums_filter`: the sums over the filter are made in every step.
    """
    taps, across, count, positions, inputs, outputs = sizes
    profile = machine.current().profile
    costs = profile.winograd_by_filter if by_filter else profile.winograd
    if costs is None or taps < 2 or count < 2 or min(inputs, outputs) < profile.winograd_channels:
        return False
    pieces, targets = multiplications(taps), len(products(taps))
    elements = taps * across * inputs * outputs
    left = elements * positions * pieces / (2 * taps) * (count + count % 2) / count
    moved = (pieces * inputs + targets * outputs) * positions
    cached = 4 * (inputs + outputs) * count**2 <= 2 * profile.core_cache
    time = left / costs.efficiency + moved * (costs.moved + (0 if cached else costs.uncached))
    time += targets * costs.called
    if sums_filter:
        time += elements * costs.summed + 2 * costs.called
    return time <= profile.winograd_gain * elements * positions
