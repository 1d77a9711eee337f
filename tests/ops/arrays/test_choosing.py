"""Choices by masks of bits: the same bits as `where`, of any type, at any place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = [pytest.mark.both_ways, pytest.mark.usefixtures("graph")]
RNG = np.random.default_rng(3)
TYPES = ["float32", "float64", "float16", "int8", "int32", "int64", "uint16", "bool", "complex64"]
SHAPES = [(130, 140), (16384,), (9, 40, 50), (3, 5)]


def values(kind: str, *dims: int) -> Any:
    x = (RNG.standard_normal(dims) * 50).astype(kind)
    if kind.startswith("float") and x.size:
        x.flat[:6] = [np.nan, -0.0, 0.0, np.inf, -np.inf, 1.0]
    return x


def assert_chosen(y: Any, feed: dict[Any, Any], condition: Any, t: Any, e: Any) -> None:
    with tf.Session() as s:
        found = [s.run(y, feed) for _ in range(2)]
    expected = np.where(condition, t, e)
    for x in found:
        assert x.dtype == expected.dtype and x.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("dims", SHAPES)
def test_by_element(kind, dims) -> None:
    condition, t, e = RNG.random(dims) > 0.5, values(kind, *dims), values(kind, *dims)[::-1].copy()
    c = tf.placeholder(tf.bool, dims)
    x, y = tf.placeholder(kind, dims), tf.placeholder(kind, dims)
    assert_chosen(tf.where(c, x, y), {c: condition, x: t, y: e}, condition, t, e)
    assert_chosen(tf.where(c, x, tf.zeros_like(x)), {c: condition, x: t}, condition, t, np.zeros_like(t))
    zeros = tf.constant(np.zeros(dims, kind))
    assert_chosen(tf.where(c, zeros, y), {c: condition, y: e}, condition, np.zeros_like(e), e)


@pytest.mark.by_aten
@pytest.mark.parametrize("kind", ["float32", "float64", "int8", "complex64"])
@pytest.mark.parametrize("dims", [(130, 140), (8192,)])
def test_in_pieces(set_profile, kind, dims) -> None:
    set_profile(core_cache=4096)
    condition, t, e = RNG.random(dims) > 0.5, values(kind, *dims), values(kind, *dims)[::-1].copy()
    c = tf.placeholder(tf.bool, dims)
    x, y = tf.placeholder(kind, dims), tf.placeholder(kind, dims)
    z, feed = tf.where(c, x, y), {c: condition, x: t, y: e}
    with tf.Session() as s:
        assert "select(" in s.explain(z, feed) and "where(" not in s.explain(z, feed)
    assert_chosen(z, feed, condition, t, e)
    other = tf.where(tf.transpose(c), tf.transpose(x), tf.transpose(y))  # not in the order of memory
    assert_chosen(other, feed, condition.T, t.T, e.T)


@pytest.mark.parametrize("dims", [(130, 140), (9, 40, 50), (5, 2)])
def test_by_row(dims) -> None:
    condition, t, e = (
        RNG.random(dims[0]) > 0.5,
        values("float32", *dims),
        values("float32", *dims)[::-1].copy(),
    )
    c = tf.placeholder(tf.bool, dims[:1])
    x, y = tf.placeholder(tf.float32, dims), tf.placeholder(tf.float32, dims)
    rows = condition.reshape(-1, *[1] * (len(dims) - 1))
    feed = {c: condition, x: t, y: e}
    assert_chosen(tf.where(c, x, y), feed, rows, t, e)
    assert_chosen(tf.where(c, tf.zeros_like(y), y), feed, rows, np.zeros_like(e), e)
    inner = tf.where(c, tf.tanh(x), tf.zeros_like(x))  # in the buffer of what was computed
    with tf.Session() as s:
        np.testing.assert_allclose(s.run(inner, feed), np.where(rows, np.tanh(t), 0), rtol=1e-5)


def test_broadcasting() -> None:
    condition, t = RNG.random((130, 140)) > 0.5, values("float32", 130, 140)
    c, x = tf.placeholder(tf.bool, [130, 140]), tf.placeholder(tf.float32, [130, 140])
    feed = {c: condition, x: t}
    for e in (
        np.float32(0),
        np.float32(-0.0),
        np.float32(7),
        values("float32", 140),
        values("float32", 130, 1),
    ):
        assert_chosen(tf.where_v2(c, x, e), feed, condition, t, e)
        assert_chosen(tf.where_v2(c, e, x), feed, condition, e, t)
    column, row = values("float32", 130, 1), values("float32", 140)
    assert_chosen(tf.where_v2(c, column, row), feed, condition, column, row)
    assert_chosen(tf.where_v2(c, np.float32(2), np.float32(3)), feed, condition, np.float32(2), np.float32(3))


def test_what_is_fed_and_kept_stays() -> None:
    condition, t = RNG.random((130, 140)) > 0.5, values("float32", 130, 140)
    c, x = tf.placeholder(tf.bool, [130, 140]), tf.placeholder(tf.float32, [130, 140])
    z = tf.exp(x)
    chosen = tf.where(c, z, x)
    before = t.copy()
    with tf.Session() as s:
        first, second = s.run([z, chosen], {c: condition, x: t})
    np.testing.assert_array_equal(t, before)
    np.testing.assert_array_equal(second, np.where(condition, first, t))


def test_gradients() -> None:
    x = tf.placeholder(tf.float32, [130, 140])
    y = tf.where(x > 0.1, tf.square(x), tf.sin(x))
    gradient = tf.gradients(y, x)[0]
    value = values("float32", 130, 140)
    value.flat[:6] = 1
    with tf.Session() as s:
        np.testing.assert_allclose(
            s.run(gradient, {x: value}), np.where(value > 0.1, 2 * value, np.cos(value)), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("condition", [[False] * 3, [True] * 3, False])
def test_a_known_condition_does_not_hide_sides_that_do_not_fit(condition) -> None:
    x = tf.placeholder(tf.float32)
    y = tf.where(condition, x, tf.zeros([3, 4]))
    with tf.Session() as s:
        assert s.run(y, {x: np.zeros([3, 4])}).shape == (3, 4)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must have the same size"):
            s.run(y, {x: np.zeros([3, 2])})
