"""`tf.contrib.nn`: values of TensorFlow 1.15.5."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf


def test_scaled_softplus() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, alpha = tf.constant([[-1.0, 0.5], [2.0, 3.0]]), tf.constant(0.7)
        soft, clipped = tf.contrib.nn.scaled_softplus(x, alpha), tf.contrib.nn.scaled_softplus(x, 0.7, 2.0)
        values = session.run([soft, clipped, tf.gradients(clipped, x)[0], tf.gradients(soft, alpha)[0]])
    np.testing.assert_allclose(values[0], [[0.1503809, 0.77892786], [2.0390906, 3.009569]], rtol=1e-6)
    np.testing.assert_allclose(values[1], [[0.1503809, 0.77892786], [2.0, 2.0]], rtol=1e-6)
    np.testing.assert_allclose(values[2], [[0.19332129, 0.67134744], [0.0, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(values[3], 1.4071048, rtol=1e-6)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        values = session.run(tf.contrib.nn.alpha_dropout(tf.fill([100000], 2.0), 0.7, seed=1))
        np.testing.assert_allclose(np.unique(values), [-1.0595481, 2.1759973], rtol=1e-6)
        assert abs(np.mean(values > 0) - 0.7) < 0.01
        normal = tf.random_normal([200000], seed=2)
        dropped = session.run(tf.contrib.nn.alpha_dropout(normal, 0.8, seed=3))
        assert abs(dropped.mean()) < 0.02 and abs(dropped.std() - 1) < 0.02
        assert tf.contrib.nn.alpha_dropout(normal, 1.0) is normal
        with pytest.raises(ValueError, match=r"range \(0, 1\]"):
            tf.contrib.nn.alpha_dropout(normal, 0.0)


def test_sampled_sparse_softmax_loss() -> None:
    weights = np.arange(12, dtype=np.float32).reshape(6, 2) / 10
    biases = np.arange(6, dtype=np.float32) / 5
    inputs = np.array([[1.0, 2.0], [-0.5, 0.3]], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        sampled = (
            tf.constant([4, 0, 2], tf.int64),
            tf.constant([[0.3], [0.4]]),
            tf.constant([0.3, 0.5, 0.1]),
        )
        labels = tf.constant([[1], [2]], tf.int64)
        loss = tf.contrib.nn.sampled_sparse_softmax_loss(weights, biases, labels, inputs, 3, 6, sampled)
        np.testing.assert_allclose(session.run(loss), [2.9428267, 1.2287893], rtol=1e-5)


def test_flipped_arguments() -> None:
    logits, labels = np.array([[1.0, 2.0, 0.0]], np.float32), np.array([[0.0, 1.0, 0.0]], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        flipped = tf.contrib.nn.deprecated_flipped_softmax_cross_entropy_with_logits(logits, labels)
        sparse = tf.contrib.nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits(logits, [1])
        sigmoid = tf.contrib.nn.deprecated_flipped_sigmoid_cross_entropy_with_logits(logits, labels)
        plain = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        values = session.run([flipped, sparse, plain, sigmoid])
    np.testing.assert_allclose(values[0], values[2], rtol=1e-5)
    np.testing.assert_allclose(values[1], values[2], rtol=1e-5)
    np.testing.assert_allclose(values[3], np.log1p(np.exp(logits)) - logits * labels, rtol=1e-5)
    assert tf.contrib.nn.conv1d_transpose is tf.nn.conv1d_transpose


def test_nth_element() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        values = tf.constant([[3, 1, 2], [6, 5, 4]])
        assert session.run(tf.contrib.nn.nth_element(values, 1)).tolist() == [2, 5]
        assert session.run(tf.contrib.nn.nth_element(values, 0, reverse=True)).tolist() == [3, 6]
