"""Truths that are counted instead of cast and added up: graph text, counts, and what stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.lowering.arrays.truth_counts import count_op

NAME = "count_truths"
RNG = np.random.default_rng(3)
TRUTHS = RNG.random((2, 3, 4)) > 0.5


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axis", [None, 0, [1, -1], 2])
@pytest.mark.parametrize("reduce", [tf.reduce_sum, tf.reduce_mean])
def test_sums_and_means_of_truths(monkeypatch, reduce, axis, keep, dtype) -> None:
    x = tf.placeholder(tf.bool, [2, 3, 4])
    y = reduce(tf.cast(x, dtype), axis, keepdims=keep)
    assert ops(text([y], [x], NAME)) == ["_Arg", "_CountTrue"]
    log = agree(monkeypatch, [y], {x: TRUTHS}, NAME, fires=1, tolerance=1e-7)
    assert "truths are counted, not cast" in log


def test_an_accuracy(monkeypatch) -> None:
    x, y = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
    right = tf.reduce_mean(tf.cast(tf.equal(x, y), tf.float32))
    agree(monkeypatch, [right], {x: [1, 2, 3], y: [1, 0, 3]}, NAME, fires=1, tolerance=1e-7)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tf.reduce_sum(tf.cast(x, tf.int32)),
        lambda x: tf.reduce_sum(tf.cast(x, tf.float16)),
        lambda x: tf.reduce_max(tf.cast(x, tf.float32)),
        lambda x: tf.reduce_sum(tf.cast(tf.cast(x, tf.int32), tf.float32)),
        lambda x: tf.reduce_mean(tf.cast(x[:0], tf.float32)),
        lambda x: tf.reduce_sum(tf.cast(x, tf.float32), tf.placeholder_with_default(1, [])),
    ],
)
def test_other_sums_stay(make) -> None:
    x = tf.placeholder(tf.bool, [2, 3, 4])
    assert "_CountTrue" not in ops(text([make(x)], [x], NAME))


def test_numbers_that_others_take_are_made() -> None:
    x = tf.placeholder(tf.bool, [2, 3, 4])
    numbers = tf.cast(x, tf.float32)
    for fetches in ([tf.reduce_sum(numbers), numbers], [tf.reduce_sum(numbers), tf.exp(numbers)]):
        assert "_CountTrue" not in ops(text(fetches, [x], NAME))


def test_the_op() -> None:
    def run(axes: list[int], keep: bool, divisor: int) -> Any:
        options = {"axes": axes, "keep_dims": keep, "divisor": divisor, "name": "count"}
        count = count_op(tf.constant(TRUTHS), T=tf.float32, **options)
        with tf.Session() as session:
            value = session.run(count)
        assert count.shape.as_list() == list(value.shape)
        return value

    np.testing.assert_array_equal(run([0, 2], False, 1), TRUTHS.sum((0, 2)))
    np.testing.assert_allclose(run([1], True, 3), TRUTHS.mean(1, keepdims=True))
    unknown = count_op(tf.placeholder(tf.bool), T=tf.float32, axes=[0], name="count")
    assert unknown.shape.ndims is None
