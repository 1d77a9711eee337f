"""Loops and their gradients as two programs, where what lies between them is not machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.lowering.programs import program_regions
from three_ways import assert_equal_three_ways, steps

TAKEN = "its gradient takes it as an array"
X = (0.3 * np.random.RandomState(0).randn(5, 3, 4)).astype("f")


def states(x: Any, w: Any) -> Any:
    """The states of a recurrence over x."""
    return tf.scan(lambda h, a: tf.tanh(tf.matmul(h, w) + a), x, initializer=tf.zeros([3, 4], x.dtype))


def summed(h: Any) -> Any:
    """Logarithms of sums along time, each of which begins at a step."""
    return tf.math.cumulative_logsumexp(h, reverse=True)


def called(h: Any) -> Any:
    """What a function of Python makes of the states."""
    factor = tf.py_func(lambda a: np.float32(2.0) * np.sign(a), [h], tf.float32, stateful=False)
    return h * tf.reshape(factor, [5, 3, 4])


def chosen(h: Any) -> Any:
    """As many of the states as are positive."""
    return tf.boolean_mask(h, h > 0.0)


@pytest.mark.parametrize("between", [summed, called, chosen])
def test_gradients_of_a_scan_and_of_what_it_takes(
    between: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w = tf.placeholder(tf.float32, [5, 3, 4]), tf.placeholder(tf.float32, [4, 4])
    loss = tf.reduce_sum(between(states(tf.sin(x), w)) ** 2)
    feed = {x: X, w: X[0, :1] * np.ones([4, 4], np.float32)}
    assert_equal_three_ways(monkeypatch, [loss, *tf.gradients(loss, [x, w])], feed)


def test_two_loops_and_a_last_state(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = tf.placeholder(tf.float64, [5, 3, 4]), tf.placeholder(tf.float64, [4, 4])
    first = summed(states(x, w))
    _, last = tf.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, tf.sin(h) * first[1]), [0, first[0]])
    loss = tf.reduce_sum(tf.math.cumulative_logsumexp(last) ** 2)
    feed = {x: X, w: X[0, :1] * np.ones([4, 4])}
    assert_equal_three_ways(monkeypatch, [loss, *tf.gradients(loss, [x, w])], feed)


@pytest.mark.parametrize("most", [9, 5000])
def test_iterations_until_something_converges(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as data says, at most a few: what its gradient takes are zeros behind the last."""
    x = tf.placeholder(tf.float32, [4])
    _, y, _ = tf.while_loop(
        lambda i, _, e: tf.logical_and(i < most, e > 0.05),
        lambda i, h, _: (i + 1, tf.sin(h) * x, tf.reduce_max(tf.abs(h - tf.sin(h) * x))),
        [0, x, 1.0],
    )
    results = [y, *tf.gradients(tf.math.cumulative_logsumexp(y) ** 2, x)]
    _, plan = steps(results, {x: X[0, 0]})
    assert (TAKEN in plan) is (most == 9)
    for scale in (1.0, 3.0, 0.01):
        if most == 9:
            assert_equal_three_ways(monkeypatch, results, {x: scale * X[0, 0]})


def test_a_number_of_iterations_that_the_step_knows_keeps_stacks() -> None:
    x, n = tf.placeholder(tf.float32, [4]), tf.placeholder(tf.int32, [])
    _, y = tf.while_loop(lambda i, _: i < n, lambda i, h: (i + 1, tf.sin(h) * x), [0, x])
    gradients = tf.gradients(tf.math.cumulative_logsumexp(y) ** 2, x)
    _, plan = steps(gradients, {x: X[0, 0], n: 3})
    assert "StackV2(" in plan and TAKEN not in plan


def test_loops_that_stay_for_what_is_in_them_keep_stacks() -> None:
    x = tf.placeholder(tf.float32, [4])

    def body(i: Any, h: Any) -> Any:
        return i + 1, tf.sin(h) * tf.reshape(tf.py_func(np.cos, [x], tf.float32), [4]) * h

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, x])
    _, plan = steps(tf.gradients(tf.math.cumulative_logsumexp(y) ** 2, x), {x: X[0, 0]})
    assert "StackV2(" in plan and TAKEN not in plan


def test_is_undone_where_no_more_loops_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [4])
    _, y = tf.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, tf.sin(h) * x), [0, x])
    gradients, feed = tf.gradients(tf.math.cumulative_logsumexp(y) ** 2, x), {x: X[0, 0]}
    found, plan = steps(gradients, feed)
    assert plan.count(" = _Program(") == 2 and "StackV2(" not in plan and TAKEN in plan
    monkeypatch.setattr(program_regions, "_loops_in", lambda _: 0)
    same, plan = steps(gradients, feed)
    assert "StackV2(" in plan and "TensorArray" not in plan and TAKEN not in plan
    np.testing.assert_allclose(found, same, rtol=1e-5)
