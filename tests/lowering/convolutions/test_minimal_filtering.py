"""Winograd's minimal filtering: exact in fractions, with fewer multiplications, and where it pays."""

from __future__ import annotations

from fractions import Fraction

import pytest

from flowstone.lowering.convolutions.minimal_filtering import (
    APART,
    BOTH,
    EVEN,
    ODD,
    Sizes,
    multiplications,
    pays,
    products,
)


@pytest.mark.parametrize("taps", range(2, 12))
def test_products_are_two_outputs_of_the_filter(taps) -> None:
    data = [Fraction(7 * i * i + 3, 5) for i in range(taps + 1)]
    filters = [Fraction(11 * i + 2, 3) for i in range(taps)]
    totals = dict.fromkeys((EVEN, BOTH, APART, ODD), Fraction(0))
    for product in products(taps):
        for piece in product.pieces:
            x = sum(sign * data[offset] for offset, sign in piece.data.items())
            g = sum(Fraction(factor) * filters[index] for index, factor in piece.taps.items())
            totals[product.target] += x * g
    expected = [sum(filters[i] * data[t + i] for i in range(taps)) for t in (0, 1)]
    assert totals[EVEN] + totals[BOTH] + totals[APART] == expected[0]
    assert totals[ODD] + totals[BOTH] - totals[APART] == expected[1]


@pytest.mark.parametrize(("taps", "left"), [(2, 3), (3, 4), (4, 6), (5, 7), (6, 8), (7, 10), (9, 12)])
def test_multiplications_are_fewer(taps, left) -> None:
    assert multiplications(taps) == left < 2 * taps


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (Sizes(3, 3, 28, 3136, 512, 512), True),
        (Sizes(5, 5, 27, 11664, 64, 192), True),
        (Sizes(3, 3, 7, 196, 512, 512), False),  # the filter is larger than the images
        (Sizes(3, 3, 224, 200704, 64, 64), False),  # so are the images than the caches
        (Sizes(5, 5, 28, 6272, 16, 32), False),
        (Sizes(3, 3, 56, 25088, 3, 512), False),
        (Sizes(1, 3, 56, 25088, 256, 256), False),
        (Sizes(3, 3, 1, 512, 512, 512), False),
    ],
)
def test_sizes_decide(sizes, expected) -> None:
    assert pays(sizes, sums_filter=False) is expected
    assert not pays(sizes) or expected


def test_a_profile_without_costs_never_pays(set_profile) -> None:
    sizes = Sizes(3, 3, 28, 3136, 512, 512)
    assert pays(sizes, sums_filter=False)
    set_profile(winograd_channels=513)
    assert not pays(sizes, sums_filter=False)
    set_profile(winograd_channels=1, winograd=None)
    assert not pays(sizes, sums_filter=False)
