"""Where windows lie: the places of a small convolution."""

from __future__ import annotations

from flowstone.framework.machine.network_code import Windows
from flowstone.native.networks.direct_tables import tables


def test_blocks_and_terms_of_a_convolution() -> None:
    seen = Windows((1, 4, 4, 1), (3, 3), 1, (1, 4, 4), (1, 1), (1, 1), (1, 1))
    made = tables("results", seen, 16)
    assert made is not None and made.shape == (1, 4, 4, 1)
    assert made.terms.tolist() == [0, 1, 2, 6, 7, 8, 12, 13, 14]
    assert made.blocks.tolist() == [[0, 0, 0, 9], [6, 4, 0, 9], [12, 8, 0, 9], [18, 12, 0, 9]]


def test_a_position_without_terms_has_no_tables() -> None:
    seen = Windows((1, 6, 6, 2), (1, 2), 3, (1, 3, 3), (2, 2), (1, 1), (0, 0))
    assert tables("images", seen, 16) is None
