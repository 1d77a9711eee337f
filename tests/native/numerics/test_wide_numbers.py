"""Chebyshev series as polynomials, and the reduction of angles, which text in machine code."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flowstone.native.codegen.emitter import Emitter
from flowstone.native.numerics.wide_numbers import Whole, Wide, powers


def test_a_series_is_the_polynomial() -> None:
    random = np.random.RandomState(0)
    series = random.randn(9).tolist()
    found = powers(series, 0.0)
    x = np.linspace(-1, 1, 11)
    np.testing.assert_allclose(np.polyval(found, x), np.polynomial.chebyshev.chebval(x, series), rtol=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_small_terms_are_left_out(count: int) -> None:
    assert len(powers([1.0] * count + [1e-9, -1e-10], 1e-8)) == count


def test_formulas_are_in_float64() -> None:
    wide = Wide(Emitter(1, {}))
    wide.fma("%x", 2.0, wide.number(math.pi))
    (line,) = wide.e.lines
    assert line.split("=")[1].split() == [
        *("call", "double", "@llvm.fma.f64(double", "%x,", "double", "0x4000000000000000,", "double"),
        "0x400921FB54442D18)",
    ]


def test_whole_formulas_keep_all_terms_of_float64() -> None:
    series = [1.0, 1e-5, 1e-10, 1e-15, 1e-20]
    counts = [len(powers(series, kind.SMALLEST)) for kind in (Wide, Whole)]
    assert counts == [2, 4]
