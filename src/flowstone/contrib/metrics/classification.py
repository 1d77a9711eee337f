"""The accuracy of one batch, and the best F1 score of a stream."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.metrics.threshold_metrics import f1_score as f1_score


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """The share of predictions that equal the labels, weighted or not: a scalar of float32.

    Both are bools, integers or strings, of the same type and shape; else ValueError.
    """
    predictions, labels = tf.convert_to_tensor(predictions), tf.convert_to_tensor(labels)
    if not (labels.dtype.is_integer or labels.dtype in (tf.bool, tf.string)):
        raise ValueError(f"Labels should have bool, integer, or string dtype, not {labels.dtype!r}")
    if labels.dtype != predictions.dtype:
        raise ValueError(
            "Dtypes of predictions and labels should match. Given: predictions "
            f"({predictions.dtype!r}) and labels ({labels.dtype!r})"
        )
    labels.shape.assert_is_compatible_with(predictions.shape)
    with tf.name_scope(name, "accuracy", [labels]):
        correct = tf.cast(tf.equal(predictions, labels), tf.float32)
        if weights is None:
            return tf.reduce_mean(correct)
        correct = tf.multiply(correct, weights)
        total = tf.reduce_sum(tf.multiply(weights, tf.ones_like(correct)))
        return tf.div(tf.reduce_sum(correct), total)
