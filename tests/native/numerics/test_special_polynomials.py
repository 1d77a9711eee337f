"""The polynomials at their segments' ends: neighbours meet, and limits are the functions' own."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from flowstone.native.numerics import special_polynomials as series


def at(x: float, polynomial: Sequence[float]) -> float:
    total = 0.0
    for coefficient in polynomial:
        total = total * x + coefficient
    return total


@pytest.mark.parametrize(
    ("polynomial", "x", "value"),
    [
        (series.I0E_NEAR, -1, 1.0),  # of argument 0
        (series.I1E_NEAR, -1, 0.5),
        (series.I0E_FAR, -1, 1 / math.sqrt(2 * math.pi)),  # of infinity
        (series.I1E_FAR, -1, 1 / math.sqrt(2 * math.pi)),
        (series.K0_FAR, -1, math.sqrt(math.pi / 2)),
        (series.K1_FAR, -1, math.sqrt(math.pi / 2)),
        (series.QUANTILE_NEAR, -1, math.sqrt(2 * math.pi)),  # the slope at one half
    ],
)
def test_limits(polynomial: Sequence[float], x: float, value: float) -> None:
    assert at(x, polynomial) == pytest.approx(value, rel=2e-8)


def test_neighbours_meet() -> None:
    root = math.sqrt(8)
    assert at(1, series.I0E_NEAR) == pytest.approx(at(1, series.I0E_FAR) / root, rel=2e-8)
    assert 8 * at(1, series.I1E_NEAR) == pytest.approx(at(1, series.I1E_FAR) / root, rel=2e-8)
    assert at(1, series.QUANTILE_2_TO_5) == pytest.approx(at(-1, series.QUANTILE_FAR), rel=2e-8)
    radius = math.sqrt(-2 * math.log(0.075))
    assert 0.425 * at(1, series.QUANTILE_NEAR) == pytest.approx(
        at((radius - 3.3) / 1.7, series.QUANTILE_2_TO_5), rel=2e-8
    )
