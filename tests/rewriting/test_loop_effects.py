"""Effects of loops: drawn, printed and made in every iteration, whatever of their inputs is constant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.both_ways


def constant(value: Any) -> tf.Tensor:
    """A constant that only an identity of the op shows to be one."""
    first = tf.constant(value)
    shape = tf.broadcast_dynamic_shape(tf.shape(first), tf.shape(tf.constant(np.ones_like(value))))
    return tf.broadcast_to(first, shape)


def values_of(make: Any, count: int) -> np.ndarray:
    """What `make` gives in each iteration of a loop."""
    array = tf.TensorArray(tf.float32, count)
    _, array = tf.while_loop(
        lambda i, _: i < count, lambda i, a: (i + 1, a.write(i, make())), [tf.constant(0), array]
    )
    with tf.Session() as s:
        return s.run(array.stack())


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.random_gamma([2], 1.0),
        lambda: tf.random_poisson(constant(np.float32([9e6, 9e6])), []),
        lambda: tf.random_uniform([2], constant(np.float32(3.0)), 4.0),
        lambda: tf.distributions.Beta(2.0, 3.0).sample([2]),
    ],
)
def test_random_numbers_of_constants_are_drawn_in_every_iteration(make: Any) -> None:
    drawn = values_of(make, 5)
    assert len({tuple(row) for row in drawn}) == len(drawn) == 5


def test_random_numbers_are_drawn_in_every_iteration_of_a_nested_loop() -> None:
    def outer(i: Any, y: Any, array: Any) -> Any:
        noise = tf.random_gamma([3], 1.0)
        y = tf.while_loop(lambda j, _: j < 2, lambda j, z: (j + 1, z + noise), [0, y])[1]
        return i + 1, y, array.write(i, y)

    x = tf.placeholder(tf.float32, [3])
    _, _, array = tf.while_loop(lambda i, *_: i < 3, outer, [0, x, tf.TensorArray(tf.float32, 3)])
    y = array.stack()
    with tf.Session() as s:
        steps = np.diff(s.run(y, {x: np.zeros(3)}), axis=0)
    assert np.all(steps > 0) and not np.allclose(steps[0], steps[1])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_effect_runs_as_often_as_the_body_or_the_predicate(count: int) -> None:
    seen: list[str] = []

    def tell(word: str) -> Any:
        return tf.py_func(lambda x: seen.append(word) or x, [constant(np.float32([1.0, 2.0]))], tf.float32)

    def goes_on(i: Any, _: Any) -> Any:
        with tf.control_dependencies([tell("predicate")]):
            return i < x

    x, y = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [2])
    z = tf.while_loop(goes_on, lambda i, y: (i + 1, y + tf.reshape(tell("body"), [2])), [0, y])[1]
    with tf.Session() as s:
        assert s.run(z, {x: count, y: [0.0, 0.0]}).tolist() == [count, 2 * count]
    assert (seen.count("body"), seen.count("predicate")) == (count, count + 1)


def test_what_leaves_a_loop_is_there_in_every_iteration() -> None:
    size = 70_000  # too large to be a constant

    def filled(i: Any, value: float) -> Any:
        zero = tf.cast(tf.raw_ops.ZerosLike(x=i), tf.float32)
        return tf.fill([size], zero + value)

    def inner(j: Any, z: Any) -> Any:
        return j + 1, filled(j, 2.0) * p + z

    def outer(i: Any, y: Any) -> Any:
        large = filled(i, 1.0)
        z = tf.while_loop(lambda j, _: j < 3, inner, [0, y * large])[1]
        return i + 1, z - tf.square(large)

    x, p = tf.placeholder(tf.float32, [size]), tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda i, _: i < 3, outer, [0, x])[1]
    with tf.Session() as s:
        assert np.unique(s.run(y, {x: np.ones(size), p: 3.0})).tolist() == [1 + 3 * (18 - 1)]
