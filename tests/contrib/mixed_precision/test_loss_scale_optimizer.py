"""`tf.contrib.mixed_precision`: steps and scales as TensorFlow 1.15.5 gives them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flowstone as tf

mixed_precision = tf.contrib.mixed_precision


def test_scale_follows_finite_steps() -> None:
    """The expected scales, counts and values were printed by TensorFlow 1.15.5 for this program."""
    factors = [1, 1, 1, 1, math.inf, 1, math.nan, math.inf, 1, math.inf, math.inf, 1, 1, 1]
    scales = [64, 64, 128, 128, 128, 128, 64, 64, 64, 32, 32, 32, 32, 64]
    counts = [(1, 0), (2, 0), (0, 0), (1, 0), (0, 1), (1, 1), (0, 0), (0, 1), (1, 1)]
    counts += [(0, 0), (0, 1), (1, 1), (2, 1), (0, 0)]
    with tf.Graph().as_default(), tf.Session() as session:
        manager = mixed_precision.ExponentialUpdateLossScaleManager(64.0, 3, decr_ratio=0.5)
        x = tf.get_variable("x", initializer=[1.0, 2.0])
        factor = tf.placeholder(tf.float32, [])
        optimizer = mixed_precision.LossScaleOptimizer(tf.train.GradientDescentOptimizer(0.1), manager)
        pairs = optimizer.compute_gradients(tf.reduce_sum(x * x) * factor)
        train = optimizer.apply_gradients(pairs)
        names = [v.name for v in tf.global_variables()]
        assert names == ["loss_scale:0", "good_steps:0", "bad_steps:0", "x:0"]
        session.run(tf.global_variables_initializer())
        good, bad = tf.global_variables()[1:3]
        for value, scale, count in zip(factors, scales, counts, strict=True):
            session.run(train, {factor: value})
            assert session.run([manager.get_loss_scale(), good, bad]) == [scale, *count]
        np.testing.assert_allclose(session.run(x), [0.13421771, 0.26843542], rtol=1e-5)
        np.testing.assert_allclose(session.run(pairs[0][0], {factor: 1}), [0.26843542, 0.53687084], rtol=1e-5)


def test_rows_and_slots() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.get_variable("x", initializer=[[1.0], [2.0]])
        manager = mixed_precision.FixedLossScaleManager(8)
        momentum = tf.train.MomentumOptimizer(0.1, 0.9)
        optimizer = mixed_precision.LossScaleOptimizer(momentum, manager)
        assert isinstance(manager, mixed_precision.LossScaleManager)
        step = tf.train.get_or_create_global_step()
        train = optimizer.minimize(tf.reduce_sum(tf.gather(x, [1]) ** 2), step)
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(x), [[1.0], [1.6]], rtol=1e-6)
        assert session.run(step) == 1
        assert optimizer.get_name() == "Momentum"
        assert optimizer.get_slot_names() == ["momentum"]
        assert optimizer.variables() == momentum.variables()
        np.testing.assert_allclose(session.run(optimizer.get_slot(x, "momentum")), [[0.0], [4.0]])
        assert session.run([manager.get_loss_scale(), manager.update_loss_scale(True)]) == [8.0, None]


def test_bad_scales_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        mixed_precision.FixedLossScaleManager(0.5)
    with pytest.raises(TypeError, match="abstract"):
        mixed_precision.LossScaleManager()
