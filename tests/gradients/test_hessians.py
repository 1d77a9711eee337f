"""`tf.hessians`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


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


@pytest.mark.parametrize("shape", [None, [None, 2]])
def test_hessians_by_tensors_of_unknown_shape(shape: Any) -> None:
    """A loop makes the rows; they are those of the static shape."""
    value = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    x, known = tf.placeholder(tf.float32, shape), tf.constant(value)
    results = [tf.hessians(tf.reduce_sum(v**3) + tf.reduce_prod(v), v)[0] for v in (x, known)]
    with tf.Session() as session:
        found, expected = session.run(results, {x: value})
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert results[0].shape.ndims == (None if shape is None else 4)
