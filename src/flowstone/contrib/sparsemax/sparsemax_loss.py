"""The loss whose gradient is sparsemax(logits) - labels."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["sparsemax_loss"]


def sparsemax_loss(logits: Any, sparsemax: Any, labels: Any, name: str | None = None) -> Any:
    """The loss of each row, [batch].

    `logits`, their `sparsemax` and `labels` (a distribution a row) are [batch, classes] floats.
    """
    with tf.name_scope(name, "sparsemax_loss", [logits, sparsemax, labels]):
        logits = tf.convert_to_tensor(logits, name="logits")
        sparsemax = tf.convert_to_tensor(sparsemax, name="sparsemax")
        labels = tf.convert_to_tensor(labels, name="labels")
        # Outside the support a term is 0, also for logits of -infinity.
        in_support = sparsemax * (logits - 0.5 * sparsemax)
        of_sparsemax = tf.where(
            tf.logical_or(sparsemax > 0, tf.is_nan(sparsemax)), in_support, tf.zeros_like(logits)
        )
        of_labels = labels * (0.5 * labels - logits)
        of_labels = tf.where(
            tf.logical_and(tf.equal(labels, 0), tf.is_inf(logits)), tf.zeros_like(of_labels), of_labels
        )
        return tf.reduce_sum(of_sparsemax + of_labels, axis=1)
