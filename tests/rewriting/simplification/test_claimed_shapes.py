"""What programs claim by `set_shape` and is not true: steps compute with the shapes that come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.rewriting.simplification.partial_execution import prune

VALUES = np.arange(20, dtype="f").reshape(4, 5)


def claimed(x: Any, shape: Any) -> Any:
    x.set_shape(shape)
    return x


def test_a_mean_is_one_of_the_rows_that_come() -> None:
    x, count = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.int32, [])
    rows = claimed(x[:count], [2, 5])
    results = [tf.reduce_mean(rows), tf.reduce_sum(rows * 0.0 + 1.0), tf.reshape(rows * 2, [-1])]
    with tf.Session() as session:
        for n in (3, 2, 4):
            mean, total, flat = session.run(results, {x: VALUES, count: n})
            np.testing.assert_allclose(mean, VALUES[:n].mean(), rtol=1e-6)
            assert total == 5 * n and flat.shape == (5 * n,)


def test_the_graph_believes_them_while_it_is_built() -> None:
    x = tf.placeholder(tf.float32, [None])
    rows = claimed(tf.unique(x)[0], [2])
    with tf.Session() as session:
        sizes = session.run([tf.shape(rows), tf.size(rows), tf.rank(rows)], {x: [1.0, 2.0, 3.0]})
    assert [np.asarray(each).tolist() for each in sizes] == [[2], 2, 1]  # as TensorFlow folds them


def test_a_claimed_scalar_is_fetched_as_it_comes() -> None:
    x = tf.placeholder(tf.float32)
    y = claimed(tf.identity(x), [])
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(y + 1.0, {x: [1.0, 2.0]}), [2.0, 3.0])
        assert type(session.run(y + 1.0, {x: 1.0})) is np.float32


def test_claims_in_a_loop_and_about_what_is_written() -> None:
    def body(i: Any, total: Any, array: Any) -> Any:
        drawn = claimed(tf.fill([i + 1], 2.0), [1])
        last = claimed(tf.fill([1, i + 1], 1.0), [1, 1])
        return i + 1, total + tf.reduce_mean(drawn), array.write(i, tf.reduce_sum(last * drawn))

    start = tf.placeholder(tf.int32, [])
    array = tf.TensorArray(tf.float32, 4)
    _, total, array = tf.while_loop(lambda i, *_: i < 4, body, [start, 0.0, array])
    with tf.Session() as session:
        total_value, sums = session.run([total, array.stack()], {start: 0})
    assert total_value == 8.0
    assert sums.tolist() == [2.0, 4.0, 6.0, 8.0]


def test_gradients_of_rows_that_a_loop_selects() -> None:
    x = tf.placeholder(tf.float32, [None, 5])

    def body(i: Any, total: Any) -> Any:
        rows = claimed(x[: i + 1], [1, 5])
        return i + 1, total + tf.reduce_sum(rows * rows)

    _, total = tf.while_loop(lambda i, _: i < 4, body, [0, 0.0])
    (gradient,) = tf.gradients(total, x)
    with tf.Session() as session:
        found = session.run(gradient, {x: VALUES})
    np.testing.assert_allclose(found, 2 * VALUES * [[4], [3], [2], [1]])


def test_elements_of_datasets() -> None:
    data = tf.data.Dataset.from_generator(lambda: [VALUES[:n] for n in (3, 2)], tf.float32)
    x = claimed(data.make_one_shot_iterator().get_next(), [2, 5])
    with tf.Session() as session:
        for n in (3, 2):
            np.testing.assert_allclose(session.run(tf.reduce_mean(x, 0)), VALUES[:n].mean(0), rtol=1e-6)


def test_feeds_are_held_against_claims() -> None:
    x = claimed(tf.placeholder(tf.float32, [None, 5]), [2, 5])
    with tf.Session() as session, pytest.raises(ValueError, match="Cannot feed value of shape"):
        session.run(x + 1.0, {x: VALUES})


def test_plans_know_what_follows_from_the_feeds_shapes() -> None:
    x = tf.placeholder(tf.float32, [None, 5])
    y = tf.nn.relu(claimed(tf.identity(x), [2, 5]))
    with tf.Session() as session:
        assert session.run(tf.reduce_mean(y), {x: VALUES}) == VALUES.mean()
    subgraph = prune([y], [], [x])
    assert [node.outputs[0].dims for node in subgraph.nodes] == [(None, 5)] * 3


def test_claims_that_rooms_here_make_stay() -> None:
    x = tf.py_func(lambda: VALUES, [], tf.float32)
    hidden = tf.layers.dense(claimed(x, [None, 5]), 3)
    queue = tf.FIFOQueue(2, tf.float32, shapes=[5])
    rows = queue.dequeue_many(3)
    assert not [each for each in tf.get_default_graph().claimed_shapes if each is not x]
    assert hidden.dims == (None, 3) and rows.dims == (3, 5)
