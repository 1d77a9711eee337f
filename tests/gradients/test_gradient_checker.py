"""`compute_gradient` and `compute_gradient_error`."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.test import compute_gradient, compute_gradient_error


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as s:
        yield s


def test_jacobians_have_a_row_for_each_element_of_x():
    x = tf.constant([1.0, 2.0, 3.0], tf.float64)
    y = tf.reshape(x[:2] * x[1:], [2, 1])
    theoretical, numeric = compute_gradient(x, [3], y, [2, 1], x_init_value=[1, 2, 3])
    np.testing.assert_allclose(theoretical, [[2, 0], [1, 3], [0, 2]])
    np.testing.assert_allclose(numeric, theoretical, atol=1e-8)


def test_complex_elements_count_twice():
    x = tf.constant([1 + 2j, 3 - 1j], tf.complex128)
    theoretical, numeric = compute_gradient(x, [2], tf.exp(x) * x, [2], x_init_value=[1 + 2j, 3 - 1j])
    assert theoretical.shape == (4, 4)
    np.testing.assert_allclose(theoretical, numeric, rtol=1e-5)


def test_lists_of_xs_and_extra_feeds():
    x, z, k = (tf.placeholder(tf.float64, shape) for shape in ([2], [2], []))
    pairs = compute_gradient(
        [x, z], [[2], [2]], x * z * k, [2], x_init_value=[[1, 2], [3, 4]], extra_feed_dict={k: 10.0}
    )
    np.testing.assert_allclose(pairs[0][0], np.diag([30, 40]))
    np.testing.assert_allclose(pairs[1][0], np.diag([10, 20]))
    for theoretical, numeric in pairs:
        np.testing.assert_allclose(numeric, theoretical, atol=1e-6)


def test_a_wrong_gradient_is_found():
    tf.RegisterGradient("WrongSquare")(lambda op, dy: dy * op.inputs[0])
    x = tf.placeholder(tf.float64, [2])
    with tf.get_default_graph().gradient_override_map({"Square": "WrongSquare"}):
        wrong = tf.square(x)
    assert compute_gradient_error(x, [2], tf.square(x), [2], x_init_value=[1, 2]) < 1e-8
    assert compute_gradient_error(x, [2], wrong, [2], x_init_value=[1, 2]) == pytest.approx(2.0)


def test_slices_and_initialised_targets():
    v = tf.Variable(np.ones((3, 2)))
    y = tf.gather(v, [2, 0, 2])
    theoretical, numeric = compute_gradient(
        tf.convert_to_tensor(v), [3, 2], y, [3, 2], x_init_value=np.ones((3, 2)), init_targets=v.initializer
    )
    np.testing.assert_allclose(theoretical, numeric, atol=1e-9)


def test_misuse():
    x, n = tf.placeholder(tf.float64, [2]), tf.placeholder(tf.int32, [2])
    with pytest.raises(ValueError, match="x_init_value has shape"):
        compute_gradient(x, [2], x * x, [2], x_init_value=[1, 2, 3])
    with pytest.raises(ValueError, match="its type is int32"):
        compute_gradient(n, [2], n * n, [2])
