"""What the published package takes from TensorFlow's module of Keras' backend."""

from __future__ import annotations

import numpy as np

import flowstone as tf
from flowstone.keras import foundation as K


def test_hard_sigmoid() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        np.testing.assert_allclose(session.run(K.hard_sigmoid([-3.0, 0.0, 1.0, 3.0])), [0, 0.5, 0.7, 1])


def test_random_numbers_are_seeded_by_numpy() -> None:
    drawn = []
    for _ in range(2):
        with tf.Graph().as_default(), tf.Session() as session:
            np.random.seed(3)
            tensors = [
                K.random_normal([500]),
                K.random_uniform([500], 2.0, 3.0),
                K.truncated_normal([500]),
                K.random_binomial([500], 0.25),
            ]
            drawn.append(session.run(tensors))
    for first, second in zip(*drawn):
        np.testing.assert_array_equal(first, second)
    normal, uniform, truncated, binomial = drawn[0]
    assert np.abs(normal).max() > 2 > np.abs(truncated).max()
    assert 2 <= uniform.min() < uniform.max() < 3
    assert 0.15 < binomial.mean() < 0.35
    assert set(np.unique(binomial)) == {0, 1}
