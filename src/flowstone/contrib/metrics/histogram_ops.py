"""The area under the ROC curve from two histograms of scores, which need little memory."""

from __future__ import annotations

from typing import Any

import flowstone as tf


def auc_using_histogram(
    boolean_labels: Any,
    scores: Any,
    score_range: Any,
    nbins: int = 100,
    collections: Any = None,
    check_shape: bool = True,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The area under the ROC curve, from histograms of the scores of true and of false labels.

    Args:
        boolean_labels: bools [batch].
        scores: numbers [batch].
        score_range: the least and the greatest score, two numbers; scores beyond count as these.
        nbins: the number of bins of the histograms.
        collections: is not used.
        check_shape: whether the static shapes are compared.
        name: the scope; default "auc_using_histogram".

    Returns a scalar of float32, which is not a number as long as a class has no score, and the operation that
    takes a batch in. ValueError for labels that are no bools and shapes that differ.
    """
    with tf.variable_scope(name, "auc_using_histogram", [boolean_labels, scores, score_range]):
        labels, scores = tf.convert_to_tensor(boolean_labels), tf.convert_to_tensor(scores)
        if labels.dtype != tf.bool:
            raise ValueError(f"boolean_labels must be bools, but are of {labels.dtype!r}")
        if check_shape:
            labels.shape.assert_is_compatible_with(scores.shape)
            labels.shape.with_rank(1)
        with tf.variable_scope(None, "hist_accumulate", [labels, scores]):
            true_counts, false_counts = (_counts(f"hist_{kind}_acc", nbins) for kind in ("true", "false"))
            bounds = tf.cast(tf.convert_to_tensor(score_range), scores.dtype)

            def counted(mask: Any) -> Any:
                chosen = tf.boolean_mask(scores, mask)
                return tf.histogram_fixed_width(chosen, bounds, nbins, dtype=tf.int64)

            update_op = tf.group(
                tf.assign_add(true_counts, counted(labels)),
                tf.assign_add(false_counts, counted(tf.logical_not(labels))),
                name="update_op",
            )
        counts = (true_counts, false_counts)
        hits, misses = (
            tf.cast(each, tf.float32) / tf.cast(tf.reduce_sum(each), tf.float32) for each in counts
        )
        above = tf.cumsum(hits, exclusive=True, reverse=True)
        # Scores of one bin are in either order equally often.
        return tf.reduce_sum(misses * (above + hits / 2.0), name="auc"), update_op


def _counts(name: str, size: int) -> Any:
    zeros, collections = tf.zeros_initializer(), [tf.GraphKeys.LOCAL_VARIABLES]
    return tf.get_variable(name, [size], tf.int64, zeros, trainable=False, collections=collections)
