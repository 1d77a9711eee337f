"""Random Fourier features: the values of TensorFlow 1.15, and that they approximate the kernel."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib.kernel_methods.random_fourier_features import InvalidShapeError

Mapper = tf.contrib.kernel_methods.RandomFourierFeatureMapper


def test_values() -> None:
    mapper = Mapper(3, 4, stddev=2.0, seed=5, name="m")
    assert (mapper.name, mapper.input_dim, mapper.output_dim) == ("m", 3, 4)
    with tf.Session() as session:
        found = session.run(mapper.map(tf.constant([[1.0, 2.0, 3.0], [0.0, 0.5, 1.0]])))
    expected = [[0.6999, -0.6215, 0.3083, 0.4744], [0.57, -0.2636, -0.1462, -0.0277]]
    np.testing.assert_allclose(found, expected, atol=6e-5)


def test_products_approximate_the_kernel() -> None:
    x = np.random.RandomState(1).rand(5, 3).astype(np.float32)
    with tf.Session() as session:
        mapped = session.run(Mapper(3, 20000, stddev=0.7).map(tf.constant(x)))
    distances = ((x[:, None] - x[None]) ** 2).sum(2)
    np.testing.assert_allclose(mapped @ mapped.T, np.exp(-distances / (2 * 0.7**2)), atol=0.03)


def test_wrong_shapes() -> None:
    with pytest.raises(InvalidShapeError, match="expected 3 input features, got 4"):
        Mapper(3, 4).map(tf.zeros([2, 4]))
    with pytest.raises(InvalidShapeError, match=r"should be 2\. Got 1"):
        Mapper(3, 4).map(tf.zeros([2]))
