"""Where windows lie: the places of a small convolution."""

from __future__ import annotations

import random

import pytest

from flowstone.framework.machine.network_code import Windows
from flowstone.native.networks.direct_tables import least_products, tables


def test_blocks_and_terms_of_a_convolution() -> None:
    seen = Windows((1, 4, 4, 1), (3, 3), 1, (1, 4, 4), (1, 1), (1, 1), (1, 1))
    made = tables("results", seen, 16)
    assert made is not None and made.shape == (1, 4, 4, 1)
    assert made.terms.tolist() == [0, 1, 2, 6, 7, 8, 12, 13, 14]
    assert made.blocks.tolist() == [[0, 0, 0, 9], [6, 4, 0, 9], [12, 8, 0, 9], [18, 12, 0, 9]]


def test_a_position_without_terms_has_no_tables() -> None:
    seen = Windows((1, 6, 6, 2), (1, 2), 3, (1, 3, 3), (2, 2), (1, 1), (0, 0))
    assert tables("images", seen, 16) is None


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("kind", ["results", "images", "filter"])
def test_tables_have_at_least_as_many_products_as_is_said_without_them(kind: str, seed: int) -> None:
    choose = random.Random(seed).randint
    taps, strides, dilations = ((choose(1, 4), choose(1, 4)) for _ in range(3))
    before = (choose(0, 2), choose(0, 2))
    images = (choose(1, 3), choose(14, 17), choose(14, 17), choose(1, 40))
    counts = [
        (n + 2 * b - (t - 1) * d - 1) // s + 1
        for n, b, t, d, s in zip(images[1:3], before, taps, dilations, strides)
    ]
    seen = Windows(images, taps, choose(1, 40), (images[0], *counts), strides, dilations, before)
    made = tables(kind, seen, 16)
    assert made is None or 0 < least_products(kind, seen, 16) <= made.products
