"""`tf.contrib.boosted_trees.python.utils.losses`: losses of examples that can be derived twice.

Each function returns (the loss of every example, float32 [examples, 1]; an operation that does nothing).
"""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = [
    "per_example_exp_loss",
    "per_example_full_exp_loss",
    "per_example_logistic_loss",
    "per_example_maxent_loss",
    "per_example_quantile_regression_loss",
    "per_example_squared_hinge_loss",
    "per_example_squared_loss",
]


def per_example_squared_hinge_loss(labels: Any, weights: Any, predictions: Any) -> tuple[Any, Any]:
    """The square of the mean hinge loss of labels 0 and 1: float32, []."""
    loss = tf.losses.hinge_loss(labels=labels, logits=predictions, weights=weights)
    return tf.square(loss), tf.no_op()


def per_example_logistic_loss(labels: Any, weights: Any, predictions: Any) -> tuple[Any, Any]:
    """The logistic loss of labels 0 and 1, times weights."""
    labels = tf.to_float(labels)
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=predictions)
    return loss * weights, tf.no_op()


def per_example_quantile_regression_loss(
    labels: Any, weights: Any, predictions: Any, quantile: float
) -> tuple[Any, Any]:
    """The loss of which the quantile is the least, squared where it is small."""
    error = tf.to_float(labels) - predictions
    over = tf.where(error * quantile < 1.0, tf.square(quantile * error), quantile * error)
    rest = quantile - 1
    under = tf.where(error * rest < 1.0, tf.square(rest * error), rest * error)
    return tf.where(error > 0, over, under) * weights, tf.no_op()


def per_example_maxent_loss(
    labels: Any, weights: Any, logits: Any, num_classes: int, eps: float = 1e-15
) -> tuple[Any, Any]:
    """The negative logarithm of the probability of each example's class.

    Args:
        labels: classes, [examples] or [examples, 1].
        weights: of examples, [examples, 1], or None.
        logits: float32 [examples, classes].
        eps: what probabilities are kept from 0 and 1 by.
    """
    labels = tf.to_int64(labels)
    of_class = tf.one_hot(labels, num_classes)
    if len(of_class.get_shape()) > 2:
        of_class = tf.reduce_sum(of_class, [1])
    odds = tf.exp(logits)
    probabilities = odds / tf.add(tf.reduce_sum(odds, 1, keepdims=True), eps)
    found = tf.reduce_sum(of_class * probabilities, 1)
    zero = tf.zeros_like(found) + eps
    one = tf.ones_like(found) - eps
    found = tf.where(found >= eps, found, zero)
    found = tf.where(found <= 1.0, found, one)
    loss = tf.expand_dims(-tf.log(found), 1)
    return (loss if weights is None else loss * weights), tf.no_op()


def per_example_squared_loss(labels: Any, weights: Any, predictions: Any) -> tuple[Any, Any]:
    """The sum of squared differences of each example, times weights."""
    loss = tf.reduce_sum(tf.squared_difference(predictions, tf.to_float(labels)), 1, keepdims=True)
    return loss * weights, tf.no_op()


def _signs(labels: Any) -> Any:
    labels = tf.to_float(labels)
    return tf.where(labels > 0.0, tf.ones_like(labels), -tf.ones_like(labels))


def per_example_exp_loss(
    labels: Any, weights: Any, predictions: Any, name: str | None = None, eps: float = 0.1
) -> tuple[Any, Any]:
    """The exponential loss of labels 0 and 1, of the prediction's probability scaled to -1 … 1.

    Args:
        eps: a probability that is this far from 1/2 is certain.
    """
    with tf.name_scope(name, "exp_loss", [predictions, labels]):
        signs = _signs(labels)
        scaled = 1.0 / eps * tf.sigmoid(predictions) - 0.5 / eps
        scaled = tf.where(scaled < -1.0, -tf.ones_like(scaled), scaled)
        scaled = tf.where(scaled > 1.0, tf.ones_like(scaled), scaled)
        return tf.exp(-scaled * signs) * weights, tf.no_op()


def per_example_full_exp_loss(
    labels: Any, weights: Any, predictions: Any, name: str | None = None
) -> tuple[Any, Any]:
    """The exponential loss of labels 0 and 1, of the prediction itself."""
    with tf.name_scope(name, "full_exp_loss", [predictions, labels]):
        return tf.exp(-1.0 * predictions * _signs(labels)) * weights, tf.no_op()
