"""Predictions and losses of linear layers."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["mean_squared_error_regressor", "softmax_classifier"]


def mean_squared_error_regressor(
    tensor_in: Any, labels: Any, weights: Any, biases: Any, name: str | None = None
) -> tuple[Any, Any]:
    """The predictions of a linear layer, and their mean squared error.

    Args:
        tensor_in: [batch, features]; labels: [batch] or [batch, outputs].
        weights: [features, outputs]; biases: [outputs].

    Predictions have the shape of the labels.
    """
    with tf.name_scope(name, "mean_squared_error_regressor", [tensor_in, labels]):
        predictions = tf.nn.xw_plus_b(tensor_in, weights, biases)
        if len(labels.shape) == 1 and len(predictions.shape) == 2:
            predictions = tf.squeeze(predictions, axis=[1])
        return predictions, tf.losses.mean_squared_error(labels, predictions)


def softmax_classifier(
    tensor_in: Any, labels: Any, weights: Any, biases: Any, class_weight: Any = None, name: str | None = None
) -> tuple[Any, Any]:
    """The probabilities of classes by a linear layer, and their cross-entropy.

    Args:
        tensor_in: [batch, features]; labels: [batch, classes], 1 for the right class.
        weights: [features, classes]; biases: [classes].
        class_weight: factors of the logits [classes].
    """
    with tf.name_scope(name, "softmax_classifier", [tensor_in, labels]):
        logits = tf.nn.xw_plus_b(tensor_in, weights, biases)
        if class_weight is not None:
            logits = tf.multiply(logits, class_weight)
        return tf.nn.softmax(logits), tf.losses.softmax_cross_entropy(labels, logits)
