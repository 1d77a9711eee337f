"""`tf.hessians`."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_a_quadratic_form_has_its_matrix():
    matrix = np.float64([[1, 2, 0], [2, 5, 3], [0, 3, 7]])
    x = tf.placeholder(tf.float64, [3])
    y = 0.5 * tf.reduce_sum(tf.reshape(x, [1, 3]) @ tf.constant(matrix) * x)
    (hessian,) = tf.hessians(y, x)
    assert hessian.shape.as_list() == [3, 3]
    np.testing.assert_allclose(tf.Session().run(hessian, {x: [1, 2, 3]}), matrix, atol=1e-12)


def test_other_ranks_and_linear_functions():
    x, z = tf.placeholder(tf.float32, [2, 2]), tf.placeholder(tf.float32, [2])
    (square,) = tf.hessians(tf.reduce_sum(x * x) + tf.reduce_sum(z), [x])
    found = tf.Session().run(square, {x: np.ones((2, 2))})
    np.testing.assert_array_equal(found.reshape(4, 4), 2 * np.eye(4))
    with pytest.raises(ValueError, match="None values not supported"):  # as in TensorFlow
        tf.hessians(tf.reduce_sum(z), z)


def test_an_unknown_shape_is_refused():
    x = tf.placeholder(tf.float32, [None])
    with pytest.raises(ValueError, match="static shape"):
        tf.hessians(tf.reduce_sum(x * x), x)
