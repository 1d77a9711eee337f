"""Values of images between pixels; the numbers are TensorFlow 1.15.5's."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

DATA = np.arange(24, dtype=np.float32).reshape(1, 3, 4, 2)
WARP = np.float32([[[0, 0], [1.5, 0.5], [-0.5, 1], [3.5, 2.2], [2, -3], [3, 2]]])


def test_values_and_gradients() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        data, warp = tf.constant(DATA), tf.constant(WARP)
        result = tf.contrib.resampler.resampler(data, warp)
        assert result.shape.as_list() == [1, 6, 2]
        found, by_data, by_warp = session.run([result, *tf.gradients(result**2, [data, warp])])
    np.testing.assert_allclose(found, [[[0, 1], [7, 8], [4, 4.5], [8.8, 9.2], [0, 0], [22, 23]]], rtol=1e-6)
    places = [[4, 16], [60, 240], [145, 68], [-648.32, -405.2], [0, 0], [-2026, -2026]]
    np.testing.assert_allclose(by_warp, [places], rtol=1e-5)
    top = [[0, 2], [3.5, 4], [3.5, 4], [0, 0]]
    middle = [[4, 4.5], [3.5, 4], [3.5, 4], [0, 0]]
    bottom = [[0, 0], [0, 0], [0, 0], [51.04, 53.36]]
    np.testing.assert_allclose(by_data, [[top, middle, bottom]], rtol=1e-6)


def test_shapes_that_are_known_in_the_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        data = tf.placeholder(tf.float64, [None, None, None, 2])
        warp = tf.placeholder(tf.float64, [None, None, 3, 2])
        result = tf.contrib.resampler.resampler(data, warp)
        fed = {data: np.tile(DATA, (2, 1, 1, 1)), warp: WARP.reshape(1, 2, 3, 2).repeat(2, 0)}
        found = session.run(result, fed)
    assert found.shape == (2, 2, 3, 2)
    np.testing.assert_allclose(found[1, 0], [[0, 1], [7, 8], [4, 4.5]], rtol=1e-6)


def test_other_shapes_are_refused() -> None:
    with tf.Graph().as_default():
        with pytest.raises(tf.errors.UnimplementedError, match="must be 2D"):
            tf.contrib.resampler.resampler(DATA, np.float32([[1, 2, 3]]))
        with pytest.raises(tf.errors.UnimplementedError, match="data_channels"):
            tf.contrib.resampler.resampler(DATA[0], WARP)
