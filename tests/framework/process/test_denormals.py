"""Numbers that are too small to be normal are zeros in steps, and nowhere else."""

from __future__ import annotations

import concurrent.futures
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.process.denormals import flushing

_SMALL = np.float32(1e-40)


def _is_as_ever() -> bool:
    return bool(1e-310 * 0.5 > 0.0 and np.float32(1e-40) * np.float32(0.5) > 0.0)


def _computed(x: Any) -> list[Any]:
    y = tf.reshape(x, [-1, 1])
    summed = tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + x), [0, x])[1]
    return [
        x + x, tf.matmul(y, [[1.0]]), tf.reduce_sum(x) * 1e30, tf.cast(x > 0, tf.float32),
        (x + 1.5e-38) * 0.5, tf.cast(x, tf.float64) * 1e30, tf.nn.relu(x - 0.0), summed,
        tf.map_fn(lambda e: e * e + e, x),
    ]  # fmt: skip


@pytest.mark.parametrize("count", [1, 3, 100_000])
def test_what_is_computed_is_zero_as_by_tensorflow(count) -> None:
    """TensorFlow 1.15.5 and 2.21 give these zeros."""
    x = tf.placeholder(tf.float32, [count])
    fetches = _computed(x) if count < 100 else _computed(x)[:-1]

    def steps() -> None:
        with tf.Session(graph=x.graph) as session:
            for _ in range(3):
                for found in session.run(fetches, {x: np.full([count], _SMALL)}):
                    assert not np.any(found)
                assert _is_as_ever()

    # A thread of its own has a team of its own, which no test has made before by torch's functions.
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(steps).result()


def test_what_is_moved_stays_as_it_is() -> None:
    x = tf.placeholder(tf.float32, [3])
    v = tf.Variable(tf.constant(1e-40))
    with tf.Session() as session:
        session.run(v.initializer)
        moved = session.run([tf.identity(x), tf.concat([x, x], 0), -x, v], {x: np.full([3], _SMALL)})
    assert all(np.all(each) for each in moved)


def test_constants_are_computed_as_steps_compute() -> None:
    with tf.Session() as session:
        assert session.run(tf.constant(1e-40) + tf.constant(1e-40)) == 0.0


def test_small_steps_leave_the_variable_where_it_is() -> None:
    v = tf.Variable(1.0)
    train = tf.train.GradientDescentOptimizer(1.0).minimize(v * 1e-41)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([train, v])
        assert session.run(v) == 1.0


def test_the_thread_is_as_before_after_an_error() -> None:
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.check_numerics(x / 0.0, "division"), {x: [1.0]})
    assert _is_as_ever()


def test_a_thread_that_flushes_anyway_goes_on() -> None:
    torch.set_flush_denormal(True)
    try:
        assert flushing(lambda: 1e-310 > 0.0)() is False
        assert not 1e-310 > 0.0
    finally:
        torch.set_flush_denormal(False)
    assert _is_as_ever()


def test_functions_of_datasets_compute_likewise() -> None:
    data = tf.data.Dataset.from_tensors(_SMALL).map(lambda x: x + x)
    found = tf.data.make_one_shot_iterator(data).get_next()
    with tf.Session() as session:
        assert session.run(found) == 0.0
