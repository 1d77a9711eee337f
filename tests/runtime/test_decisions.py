"""Comparisons that only decide are made on Python numbers; others stay tensors. Values are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def code(fetches: Any, feed: Any) -> str:
    with tf.Session() as s:
        return s.explain(fetches, feed).rpartition("def segment")[2]


@pytest.mark.by_aten
def test_a_predicate_is_a_comparison_of_numbers() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.cond(x > 0.5, lambda: x + 1.0, lambda: x - 1.0)
    with tf.Session() as s:
        assert [s.run(y, {x: v}) for v in (1.0, 0.0)] == [2, -1]
    assert "a0.item() > 0.5" in code(y, {x: 1.0})


@pytest.mark.by_aten
def test_logic_of_predicates() -> None:
    x = tf.placeholder(tf.int32, [])
    inside = tf.logical_and(x >= 2, tf.logical_not(tf.equal(x, 3)))
    y = tf.cond(inside, lambda: x * 10, lambda: x)
    with tf.Session() as s:
        assert [s.run(y, {x: v}) for v in range(5)] == [0, 1, 20, 3, 40]
    assert code(y, {x: 1}).count("item()") == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_values_at_the_edges(dtype: Any) -> None:
    x, y = tf.placeholder(dtype, []), tf.placeholder(dtype, [])
    result = [
        tf.cond(compare(x, y), lambda: tf.constant(1), lambda: tf.constant(0))
        for compare in (tf.less, tf.less_equal, tf.greater, tf.greater_equal, tf.equal, tf.not_equal)
    ]
    if np.issubdtype(dtype, np.floating):
        values = [0.0, -0.0, 0.1, np.nan, np.inf, -np.inf, np.nextafter(dtype(0.1), dtype(1))]
    else:
        values = [0, -1, np.iinfo(dtype).max, np.iinfo(dtype).min]
    with tf.Session() as s:
        for a in values:
            for b in values:
                a, b = dtype(a), dtype(b)
                expected = [a < b, a <= b, a > b, a >= b, a == b, a != b]
                assert s.run(result, {x: a, y: b}) == [int(e) for e in expected], (a, b)


def test_what_is_fetched_or_taken_as_a_value_stays_a_tensor() -> None:
    x = tf.placeholder(tf.float32, [])
    p = x > 0.0
    y = tf.cond(p, lambda: x, lambda: -x)
    with tf.Session() as s:
        assert s.run([y, p], {x: -2.0}) == [2.0, False]
    assert "item()" not in code([y, p], {x: 1.0})
    z = tf.cond(p, lambda: tf.cast(p, tf.float32), lambda: x)
    assert "item()" not in code(z, {x: 1.0})
    w = y + tf.cast(p, tf.float32)
    assert "item()" not in code(w, {x: 1.0})


def test_a_predicate_of_a_variable_and_its_gradient() -> None:
    v = tf.Variable(3.0)
    limit = tf.placeholder(tf.float32, [])
    y = tf.cond(v > limit, lambda: v * v, lambda: v * 5.0)
    gradient = tf.gradients(y, v)[0]
    with tf.Session() as s:
        s.run(v.initializer)
        assert s.run([y, gradient], {limit: 2.0}) == [9, 6]
        assert s.run([y, gradient], {limit: 4.0}) == [15, 5]
