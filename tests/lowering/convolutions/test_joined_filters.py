"""Filters side by side, and the gradients of relus as parts of one result."""

from __future__ import annotations

import numpy as np

import flowstone as tf
from flowstone.lowering.convolutions.joined_filters import filters_op, relu_gradient_op

RNG = np.random.default_rng(3)


def values(*dims: int) -> np.ndarray:
    return RNG.standard_normal(dims).astype("f")


def test_filters_are_joined_by_their_outputs() -> None:
    given = [values(3, 3, 4, n) for n in (2, 1, 5)]
    joined = filters_op([tf.constant(each) for each in given], name="joined")
    assert joined.shape.as_list() == [3, 3, 4, 8]
    with tf.Session() as s:
        np.testing.assert_array_equal(s.run(joined), np.concatenate(given, -1))


def test_each_gradient_is_in_its_part_of_the_channels() -> None:
    sizes = [(2, 3, 3, n) for n in (2, 4)]
    gradients, features = [values(*each) for each in sizes], [values(*each) for each in sizes]
    operands = [[tf.constant(x) for x in each] for each in (gradients, features)]
    joined = relu_gradient_op(*operands, name="joined")
    assert joined.shape.as_list() == [2, 3, 3, 6]
    with tf.Session() as s:
        expected = np.concatenate([g * (f > 0) for g, f in zip(gradients, features)], -1)
        np.testing.assert_array_equal(s.run(joined), expected)
