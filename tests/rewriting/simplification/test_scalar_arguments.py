"""Nodes that find out whether an argument is a scalar: where they are, and what they leave alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


def of_unknown_rank(x: Any) -> Any:
    return tf.py_func(lambda value: value, [x], x.dtype)


def test_known_scalars_are_not_asked() -> None:
    axis = tf.placeholder(tf.int32)
    with tf.Session() as session:
        assert "_HostScalar" not in session.explain(tf.argmax(ROWS, axis), {axis: 1})
        assert "_HostScalar" in session.explain(tf.argmax(ROWS, of_unknown_rank(axis)), {axis: 1})


def test_what_turns_out_to_be_a_scalar_is_taken() -> None:
    axis = tf.placeholder(tf.int32)
    found = tf.argmax(ROWS, of_unknown_rank(axis))
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(found, {axis: 1}), [2, 2])
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"dimension must be a scalar, got shape \[1\]"
        ):
            session.run(found, {axis: [1]})
        np.testing.assert_array_equal(session.run(found, {axis: 0}), [1, 1, 1])


@pytest.mark.parametrize("known", [False, True])
def test_a_branch_that_is_not_taken_asks_nothing(known: bool) -> None:
    axis, taken = tf.placeholder(tf.int32, [1] if known else None), tf.placeholder(tf.bool)
    there = axis if known else of_unknown_rank(axis)
    found = tf.cond(taken, lambda: tf.one_hot([0], there), lambda: tf.zeros([1, 2]))
    with tf.Session() as session:
        assert not session.run(found, {axis: [3], taken: False}).any()
        with pytest.raises(tf.errors.InvalidArgumentError, match="depth must be a scalar"):
            session.run(found, {axis: [3], taken: True})


def test_a_loop_asks_in_every_iteration() -> None:
    axis = tf.placeholder(tf.int32)

    def body(i: Any, total: Any) -> Any:
        row = tf.gather(ROWS, i, axis=of_unknown_rank(axis))
        return i + 1, total + tf.ensure_shape(row, [3])

    total = tf.while_loop(lambda i, _: i < 2, body, [0, tf.zeros([3])])[1]
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(total, {axis: 0}), ROWS.sum(0))
        with pytest.raises(tf.errors.InvalidArgumentError, match="axis must be a scalar"):
            session.run(total, {axis: [0]})


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda x: tf.range(0.0, x, 1.0), "limit"),
        (lambda x: tf.linspace(0.0, x, 3), "stop"),
        (lambda x: tf.fill([2], x), "value"),
    ],
)
def test_sequences_of_vectors(make: Any, what: str) -> None:
    end = tf.placeholder(tf.float32)
    found = make(end)
    with tf.Session() as session:
        assert session.run(found, {end: 2.0}).shape[0] > 1
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"{what} must be a scalar"):
            session.run(found, {end: [2.0]})
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        make(tf.zeros([1]))
