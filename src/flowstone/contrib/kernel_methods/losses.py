"""The hinge loss of many classes (Crammer and Singer, 2001)."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["sparse_multiclass_hinge_loss"]


def sparse_multiclass_hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = tf.GraphKeys.LOSSES,
    reduction: str = tf.losses.Reduction.SUM_BY_NONZERO_WEIGHTS,
) -> Any:
    """By how much another class' logit, plus 1, is above that of the label; no less than 0.

    Args:
        labels: int32 or int64, [batch] or [batch, 1]; below the number of classes.
        logits: [batch, classes].
        weights: of examples, as `labels` or a scalar.
        scope, loss_collection, reduction: as of `tf.losses`.

    Raises ValueError for other ranks and types. Returns float32: [], or [batch] without a reduction.
    """
    with tf.name_scope(scope, "sparse_multiclass_hinge_loss", (logits, labels)) as scope:
        rank = logits.get_shape().ndims
        if rank != 2:
            raise ValueError(f"logits should have rank 2 ([batch_size, num_classes]). Given rank is {rank}")
        if labels.dtype not in (tf.int32, tf.int64):
            raise ValueError(f"Invalid dtype for labels: {labels.dtype}. Acceptable dtypes: int32 and int64")
        rank = labels.get_shape().ndims
        if rank not in (1, 2):
            raise ValueError(
                f"labels should have rank 1 ([batch_size]) or 2 ([batch_size, 1]). Given rank is {rank}"
            )
        classes, logits = tf.shape(logits)[1], tf.cast(logits, tf.float32)
        with tf.control_dependencies([tf.assert_less(labels, tf.cast(classes, labels.dtype))]):
            labels = tf.reshape(labels, [-1])
        weights = tf.convert_to_tensor(weights)
        rank = weights.get_shape().ndims
        if rank not in (0, 1, 2):
            raise ValueError(
                "non-scalar weights should have rank 1 ([batch_size]) or 2 ([batch_size, 1]). "
                f"Given rank is {rank}"
            )
        if rank:
            weights = tf.reshape(weights, [-1])
            weights.get_shape().assert_is_compatible_with(labels.get_shape())
        places = tf.stack([tf.range(tf.size(labels)), tf.cast(labels, tf.int32)], axis=1)
        own = tf.expand_dims(tf.gather_nd(logits, places), 1)
        others = tf.one_hot(labels, classes, on_value=0.0, off_value=1.0)
        losses = tf.reduce_max(tf.nn.relu(logits - own + others), axis=1)
        return tf.losses.compute_weighted_loss(losses, weights, scope, loss_collection, reduction)
