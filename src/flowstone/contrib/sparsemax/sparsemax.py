"""The point of the simplex nearest to each row: max(z - threshold, 0), with the threshold for which the sum
is 1."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["sparsemax"]


def sparsemax(logits: Any, name: str | None = None) -> Any:
    """The sparsemax of each row of `logits` [batch, classes], floats; of their shape and type.

    A row with NaN or infinity, or with nothing but -infinity, is NaN.
    """
    with tf.name_scope(name, "sparsemax", [logits]):
        logits = tf.convert_to_tensor(logits, name="logits")
        classes = tf.shape(logits)[1]
        # Moving a row does not change its sparsemax; this keeps the sums small.
        z = logits - tf.reduce_max(logits, axis=1, keep_dims=True)
        ordered, _ = tf.nn.top_k(z, k=classes)
        sums = tf.cumsum(ordered, axis=1)
        counts = tf.cast(tf.range(1, tf.cast(classes, logits.dtype) + 1), logits.dtype)
        support = tf.reduce_sum(tf.cast(1 + counts * ordered > sums, tf.int32), axis=1)
        safe = tf.maximum(support, 1)
        places = tf.stack([tf.range(0, tf.shape(logits)[0]), safe - 1], axis=1)
        threshold = (tf.gather_nd(sums, places) - 1) / tf.cast(support, logits.dtype)
        p = tf.maximum(tf.cast(0, logits.dtype), z - threshold[:, tf.newaxis])
        is_bad = tf.logical_or(tf.equal(support, 0), tf.reduce_any(tf.is_nan(z), axis=1))
        return tf.where(is_bad, tf.fill(tf.shape(p), tf.cast(float("nan"), logits.dtype)), p)
