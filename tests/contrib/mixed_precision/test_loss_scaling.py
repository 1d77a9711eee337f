"""`tf.train.experimental`: scaled losses; the numbers of the steps are TensorFlow 1.15.5's."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("nothing_set")

# The scale, the good steps, the variable's first element and the global step after each gradient.
GRADIENTS = [1, 1, 1, np.inf, 2, np.nan, np.nan, np.nan, np.nan, 1]
STEPS = [
    (8, 1, 0, 1),
    (8, 2, -1.5, 2),
    (16, 0, -3.25, 3),
    (8, 0, -3.25, 3),
    (8, 1, -6.125, 4),
    (4, 0, -6.125, 4),
    (2, 0, -6.125, 4),
    (1, 0, -6.125, 4),
    (1, 0, -6.125, 4),
    (1, 1, -8.5625, 5),
]


def test_a_dynamic_scale_follows_the_gradients() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        scale = tf.train.experimental.DynamicLossScale(8, 3, 2.0)
        optimizer = tf.train.experimental.MixedPrecisionLossScaleOptimizer(
            tf.train.MomentumOptimizer(1.0, 0.5), scale
        )
        x, gradient = tf.Variable([1.0, 2.0]), tf.placeholder(tf.float32, [])
        step = tf.train.get_or_create_global_step()
        train = optimizer.minimize(tf.reduce_sum(x * gradient), step)
        names = [each.name for each in tf.global_variables()]
        assert names[:2] == ["current_loss_scale:0", "good_steps:0"]
        assert [each.name for each in tf.trainable_variables()] == ["Variable:0"]
        session.run(tf.global_variables_initializer())
        for value, expected in zip(GRADIENTS, STEPS, strict=True):
            session.run(train, {gradient: value})
            found = session.run([*tf.global_variables()[:2], x[0], step])
            np.testing.assert_allclose(found, expected)
    assert repr(scale) == "DynamicLossScale(initial_loss_scale=8.0, increment_period=3, multiplier=2.0)"


def test_a_fixed_scale_leaves_the_step_as_it_is() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.Variable(tf.ones([3, 2]))
        optimizer = tf.train.experimental.MixedPrecisionLossScaleOptimizer(
            tf.train.GradientDescentOptimizer(0.5), 128
        )
        train = optimizer.minimize(tf.reduce_sum(tf.gather(x, [0, 2])))  # a sparse gradient
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_array_equal(session.run(x), [[0.5, 0.5], [1, 1], [0.5, 0.5]])


def test_the_graph_rewrite_wraps_an_optimizer_once() -> None:
    try:
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.Variable(2.0)
            optimizer = tf.train.experimental.enable_mixed_precision_graph_rewrite(
                tf.train.GradientDescentOptimizer(0.1)
            )
            train = optimizer.minimize(x * x)
            session.run(tf.global_variables_initializer())
            session.run(train)
            found = session.run(tf.global_variables())
            np.testing.assert_allclose(found, [1.6, 32768, 1], rtol=1e-6)
            with pytest.raises(ValueError, match="must not already be"):
                tf.train.experimental.enable_mixed_precision_graph_rewrite(optimizer)
            assert tf.config.optimizer.get_experimental_options()["auto_mixed_precision"]
    finally:
        tf.train.experimental.disable_mixed_precision_graph_rewrite()
    assert not tf.config.optimizer.get_experimental_options()["auto_mixed_precision"]


def test_errors() -> None:
    experimental = tf.train.experimental
    with pytest.raises(ValueError, match="at least 1"):
        experimental.FixedLossScale(0.5)
    with pytest.raises(ValueError, match="Could not interpret loss scale identifier: x"):
        experimental.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(1.0), "x")
    with pytest.raises(ValueError, match='"opt" must be an instance of'):
        experimental.enable_mixed_precision_graph_rewrite(3)
