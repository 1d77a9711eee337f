"""`tf.custom_gradient`."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def test_a_function_brings_its_gradient(graph):
    @tf.custom_gradient
    def log1pexp(x):
        """Doc."""
        e = tf.exp(x)
        return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    x = tf.placeholder(tf.float32, [2], name="x")
    y = log1pexp(x)
    (dx,) = tf.gradients(y, x)
    assert log1pexp.__doc__ == "Doc." and y.name == "IdentityN:0"
    np.testing.assert_allclose(tf.Session().run(dx, {x: [0.0, 100.0]})[0], 0.5)


def test_several_arguments_and_results():
    @tf.custom_gradient
    def f(x, y):
        return (x + y, x * y), lambda a, b: (a + 10.0 * b, None)

    x, y = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    total, product = f(x, y)
    dx, dy = tf.gradients([total, product], [x, y])
    assert dy is None
    assert tf.Session().run([total, product, dx], {x: 2.0, y: 3.0}) == [5.0, 6.0, 11.0]


def test_variables_that_the_function_uses():
    v = tf.Variable([1.0, 2.0], use_resource=True)

    @tf.custom_gradient
    def f(x):
        def gradient(dy, variables=None):
            assert variables == [v]
            return dy * 2.0, [dy * 3.0]

        return v * x, gradient

    x = tf.placeholder(tf.float32, [2])
    found = tf.gradients(f(x), [x, v])
    session = tf.Session()
    session.run(v.initializer)
    np.testing.assert_array_equal(session.run(found, {x: [5, 6]}), [[2, 2], [3, 3]])


def test_misuse():
    x = tf.placeholder(tf.float32, [2])
    f = tf.custom_gradient(lambda x: (x * 2.0, lambda dy: (dy, dy)))
    with pytest.raises(ValueError, match="keywords arguments only"):
        f(x=x)
    with pytest.raises(ValueError, match="expected to return 1 gradients, but returned 2"):
        tf.gradients(f(x), x)
