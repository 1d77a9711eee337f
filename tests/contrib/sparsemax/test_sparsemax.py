"""Sparsemax: its definition, its loss and the loss's gradient, and rows that are not finite.

The last rows' values are those of TensorFlow 1.15.
"""

from __future__ import annotations

import numpy as np

import flowstone as tf

LOGITS = np.random.RandomState(0).randn(6, 5).astype("f")
NAN = float("nan")


def test_the_nearest_point_of_the_simplex() -> None:
    p = tf.contrib.sparsemax.sparsemax(tf.constant(LOGITS))
    with tf.Session() as session:
        found = session.run(p)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
    assert (found == 0).any()
    for row, z in zip(found, LOGITS):
        threshold = (z - row)[row > 0]
        np.testing.assert_allclose(threshold, threshold[0], atol=1e-6)
        assert (z[row == 0] <= threshold[0] + 1e-6).all()


def test_the_gradient_of_the_loss_is_the_difference_to_the_labels() -> None:
    logits, labels = tf.constant(LOGITS), tf.one_hot([0, 1, 2, 3, 4, 0], 5)
    p = tf.contrib.sparsemax.sparsemax(logits)
    loss = tf.contrib.sparsemax.sparsemax_loss(logits, p, labels)
    gradient = tf.gradients(loss, logits)[0]
    with tf.Session() as session:
        losses, slope, expected = session.run([loss, gradient, p - labels])
    assert (losses >= 0).all()
    np.testing.assert_allclose(slope, expected, atol=1e-5)


def test_rows_that_are_not_finite() -> None:
    logits = tf.constant([[1.0, -np.inf, 0.5], [-np.inf] * 3, [NAN, 1, 2], [np.inf, 1, 2]], tf.float32)
    p = tf.contrib.sparsemax.sparsemax(logits)
    loss = tf.contrib.sparsemax.sparsemax_loss(logits, p, tf.constant([[1.0, 0, 0]] * 4))
    with tf.Session() as session:
        found, losses = session.run([p, loss])
    np.testing.assert_allclose(found, [[0.75, 0, 0.25], [NAN] * 3, [NAN] * 3, [NAN] * 3])
    np.testing.assert_allclose(losses, [0.0625, NAN, NAN, NAN])
