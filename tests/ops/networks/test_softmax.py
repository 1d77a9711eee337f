"""Soft-max by rows and by whole passes: which is taken, and that both give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

RNG = np.random.default_rng(8)
FUNCTIONS = [tf.nn.softmax, tf.nn.log_softmax]


def planned_by_passes(function: Any, dims: tuple[int, ...], dtype: Any = tf.float32) -> bool:
    x = tf.placeholder(dtype, dims)
    with tf.Session() as session:
        text = session.explain(function(x), {x: np.zeros(dims)})
    assert "softmax(a0" in text
    return "softmax(a0, -1)" not in text


@pytest.mark.by_aten
@pytest.mark.parametrize("function", FUNCTIONS)
def test_many_short_rows_go_by_passes(function: Any, set_profile: Any) -> None:
    assert planned_by_passes(function, (100, 10))
    assert planned_by_passes(function, (4, 50, 15))
    assert not planned_by_passes(function, (100, 16))
    assert not planned_by_passes(function, (10, 10))
    assert not planned_by_passes(function, (100, 10), tf.float64)
    assert not planned_by_passes(function, (1000, 0))
    set_profile(softmax_columns=0)
    assert not planned_by_passes(function, (100, 10))


@pytest.mark.by_aten
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("columns", [1, 2, 7, 10, 15])
def test_both_ways_give_the_same(function: Any, columns: int, set_profile: Any) -> None:
    value = (RNG.standard_normal((700, columns)) * 30).astype("f")
    value[0, 0], value[1, 0], value[2], value[3, 0] = np.nan, np.inf, -np.inf, -np.inf
    results = []
    for most in (15, 0):
        set_profile(softmax_columns=most)
        x = tf.placeholder(tf.float32, value.shape)
        y = function(x)
        with tf.Session() as session:
            results.append(session.run([y, *tf.gradients(y[4:] * value[4:], x)], {x: value}))
    for one, other, tolerance in zip(
        *results, [2e-6, 1e-4]
    ):  # gradients are differences of numbers up to 100
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_an_axis_of_logits_of_unknown_rank(function: Any) -> None:
    """The last one alone, as in TensorFlow; another one was taken for the last."""
    logits = tf.placeholder(tf.float32)
    with pytest.raises(TypeError, match="unknown rank"):
        function(logits, axis=1)
    with tf.Session() as session:
        found = session.run(function(logits, axis=-1), {logits: [[1.0, 1.0]]})
    assert found[0, 0] == found[0, 1]
