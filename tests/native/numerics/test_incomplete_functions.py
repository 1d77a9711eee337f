"""The incomplete beta function with and without machine code, and beside closed forms; igamma's gradient; the
Hurwitz zeta function and polygamma."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.numerics import incomplete_functions

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


def computed(monkeypatch: pytest.MonkeyPatch, native: int, *arrays: Any) -> Any:
    monkeypatch.setattr(flags, "NATIVE", native)
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.betainc(*(tf.constant(each) for each in arrays)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [0, 1, 7, 5_000])
def test_values_are_the_same(monkeypatch: pytest.MonkeyPatch, count: int, dtype: str) -> None:
    chance = np.random.default_rng(count)
    a, b = (np.exp(chance.normal(0, 2, count)).astype(dtype) for _ in range(2))
    x = chance.uniform(0, 1, count).astype(dtype)
    plain, fast = (computed(monkeypatch, native, a, b, x) for native in (0, 1))
    # Steps that go on for all elements until the last one rests add up rounding errors.
    np.testing.assert_allclose(fast, plain, rtol=1e-6, atol=1e-30 if dtype == "float32" else 2e-12)
    one, wide = np.ones_like(a), x.astype("float64")
    limit = {"rtol": 1e-5 if dtype == "float32" else 1e-10, "atol": 1e-11}
    np.testing.assert_allclose(computed(monkeypatch, 1, a, one, x), wide ** a.astype("float64"), **limit)
    expected = -np.expm1(b.astype("float64") * np.log1p(-wide))
    np.testing.assert_allclose(computed(monkeypatch, 1, one, b, x), expected, **limit)


def test_ends_and_what_is_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.array([1, 1, 1, 1, -1, 0, 2, np.nan, 1e5, 1e-5])
    b = np.array([2, 2, 2, 2, 2, 2, np.inf, 2, 1e5, 1e-5])
    x = np.array([0, 1, -0.1, 1.1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    plain, fast = (computed(monkeypatch, native, a, b, x) for native in (0, 1))
    np.testing.assert_allclose(fast, plain, rtol=1e-12)
    assert fast[:2].tolist() == [0, 1]
    assert np.isnan(fast[[2, 3, 4, 5, 7]]).all()


def slopes(monkeypatch: pytest.MonkeyPatch, native: int, *arrays: Any) -> Any:
    monkeypatch.setattr(flags, "NATIVE", native)
    with tf.Graph().as_default(), tf.Session() as session:
        a, x = (tf.constant(each) for each in arrays)
        return session.run(tf.raw_ops.IgammaGradA(a=a, x=x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [0, 1, 7, 70_000])
def test_slopes_of_igamma_are_the_same(monkeypatch: pytest.MonkeyPatch, count: int, dtype: str) -> None:
    chance = np.random.default_rng(count)
    a, x = (np.exp(chance.normal(0, 1.5, count)).astype(dtype) for _ in range(2))
    plain, fast = (slopes(monkeypatch, native, a, x) for native in (0, 1))
    # ATen's kernels leave float32 where terms of 1 cancel, up to this.
    limit = {"rtol": 2e-6, "atol": 1e-11} if dtype == "float32" else {"rtol": 1e-11, "atol": 1e-14}
    np.testing.assert_allclose(fast, plain, **limit)


def test_slopes_of_igamma_are_those_of_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    a, x = (each.ravel() for each in np.meshgrid([0.3, 1.0, 4.0, 30.0], [0.1, 1.0, 7.0, 40.0]))
    with tf.Graph().as_default(), tf.Session() as session:
        above, below = session.run([tf.igamma(a + 1e-5, x), tf.igamma(a - 1e-5, x)])
    np.testing.assert_allclose(slopes(monkeypatch, 1, a, x), (above - below) / 2e-5, rtol=1e-6, atol=1e-9)
    beyond = [0.0, -1.0, np.nan, 2.0, 2.0, 2.0], [1.0, 1.0, 1.0, -1.0, np.nan, 0.0]
    plain, fast = (slopes(monkeypatch, native, *map(np.array, beyond)) for native in (0, 1))
    np.testing.assert_array_equal(fast, plain)
    assert np.isnan(fast[:5]).all() and fast[5] == 0


def both_ways(monkeypatch: pytest.MonkeyPatch, name: str, *arrays: Any) -> Any:
    """Without and with machine code."""
    for native in (0, 1):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            yield session.run(getattr(tf, name)(*map(tf.constant, arrays)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [0, 1, 7, 5_000])
def test_zeta_and_polygamma_are_the_same(monkeypatch: pytest.MonkeyPatch, count: int, dtype: str) -> None:
    chance = np.random.default_rng(count)
    x, q = (np.exp(chance.normal(0, 1.5, count)).astype(dtype) for _ in range(2))
    order = chance.integers(0, 6, count).astype(dtype)
    plain, fast = both_ways(monkeypatch, "zeta", x + 1, q)
    assert fast.dtype == plain.dtype == dtype
    np.testing.assert_allclose(fast, plain, rtol=1.2e-7 if dtype == "float32" else 1e-15, atol=2e-45)
    plain, fast = both_ways(monkeypatch, "polygamma", order, q)
    np.testing.assert_allclose(fast, plain, rtol=2.5e-7 if dtype == "float32" else 1e-15)


def test_zetas_poles_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([1, 0.5, 1 + 1e-15, 1e5, 1e300, np.inf, np.nan, 2, 2, 2, 50, 1.001, 2, 1, 0.9])
    q = np.array([1, 1, 1, 0.5, 3, 3, 2, np.inf, np.nan, 1e-300, 1e30, 1e-3, 1, np.inf, np.inf])
    with np.errstate(over="ignore"):
        short = x.astype("float32"), q.astype("float32")
    plain, fast = both_ways(monkeypatch, "zeta", *short)
    np.testing.assert_allclose(fast, plain, rtol=1.2e-7)
    plain, fast = both_ways(monkeypatch, "zeta", np.float32([np.inf] * 3), np.float32([0.5, 1, 2]))
    np.testing.assert_array_equal(fast, plain)
    plain, fast = both_ways(monkeypatch, "zeta", x, q)
    np.testing.assert_allclose(fast, plain, rtol=1e-15)
    np.testing.assert_allclose(fast[[0, 9, 12]], [np.inf, np.inf, np.pi**2 / 6], rtol=1e-15)
    plain, fast = both_ways(monkeypatch, "zeta", np.array([2.0, 3.0, 2.5]), np.array([-1.5, 0.0, 1.0]))
    np.testing.assert_array_equal(fast, plain)  # ATen's in both cases
    plain, fast = both_ways(monkeypatch, "zeta", np.float32(2), np.linspace(0.5, 9, 30, dtype="float32"))
    np.testing.assert_allclose(fast, plain, rtol=1.2e-7)


def test_nothing_is_offered_without_the_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    assert incomplete_functions.beta_fraction() is not None and incomplete_functions.zeta(True) is not None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert incomplete_functions.beta_fraction() is None and incomplete_functions.gamma_series() is None
    assert incomplete_functions.zeta(False) is None
