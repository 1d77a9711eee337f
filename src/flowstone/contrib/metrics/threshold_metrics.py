"""Metrics of predictions compared with thresholds: rates, points of curves, the best of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import flowstone as tf
from flowstone.layers.metrics.state import aligned, metric_variable, published, safe_ratio
from flowstone.layers.metrics.thresholds import counts_at
from flowstone.layers.weights_broadcast import broadcast_weights

Pair = Any  # a value and the operation that updates it
_SMALL = 1e-7  # what keeps quotients of counts finite
_COUNTED = 1e-6  # what a curve's points count more


def even_thresholds(number: int) -> list[float]:
    """From a little below 0 to a little above 1."""
    return [-_SMALL, *((i + 1) / (number - 1) for i in range(number - 2)), 1.0 + _SMALL]


# ---- rates of errors


def streaming_false_positive_rate(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """Of what is false, the share that is predicted true; a value and its update.

    Predictions and labels are bools, or numbers that are true unless 0, of the same shape.
    """
    return _rate("false_positive", "true_negative", predictions, labels, weights,
                 metrics_collections, updates_collections, name)  # fmt: skip


def streaming_false_negative_rate(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """Of what is true, the share that is predicted false; see `streaming_false_positive_rate`."""
    return _rate("false_negative", "true_positive", predictions, labels, weights,
                 metrics_collections, updates_collections, name)  # fmt: skip


def _rate(error: str, hit: str, predictions: Any, labels: Any, weights: Any, metrics_collections: Any,
          updates_collections: Any, name: str | None) -> Pair:  # fmt: skip
    with tf.variable_scope(name, f"{error}_rate", (predictions, labels, weights)):
        predictions, labels, weights = aligned(
            tf.cast(predictions, tf.bool), tf.cast(labels, tf.bool), weights
        )
        errors, more_errors = getattr(tf.metrics, f"{error}s")(labels, predictions, weights)
        hits, more_hits = getattr(tf.metrics, f"{hit}s")(labels, predictions, weights)
        value = safe_ratio(errors, errors + hits, "value")
        update_op = safe_ratio(more_errors, more_errors + more_hits, "update_op")
        return published(value, update_op, metrics_collections, updates_collections)


def streaming_false_positive_rate_at_thresholds(
    predictions: Any,
    labels: Any,
    thresholds: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """`streaming_false_positive_rate` where predictions in [0, 1] count as true above each threshold."""
    return _rate_at("false_positive", "true_negatives", "fpr", predictions, labels, thresholds, weights,
                    metrics_collections, updates_collections, name)  # fmt: skip


def streaming_false_negative_rate_at_thresholds(
    predictions: Any,
    labels: Any,
    thresholds: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """`streaming_false_negative_rate` where predictions in [0, 1] count as true above each threshold."""
    return _rate_at("false_negative", "true_positives", "fnr", predictions, labels, thresholds, weights,
                    metrics_collections, updates_collections, name)  # fmt: skip


def _rate_at(error: str, hits: str, short: str, predictions: Any, labels: Any, thresholds: Any, weights: Any,
             metrics_collections: Any, updates_collections: Any, name: str | None) -> Pair:  # fmt: skip
    with tf.variable_scope(name, f"{error}_rate_at_thresholds", (predictions, labels, weights)):
        errors = f"{error}s"
        values, updates = counts_at(thresholds, labels, predictions, weights, [errors, hits])

        def rate(counts: dict[str, Any], label: str) -> Any:
            return tf.div(counts[errors], _SMALL + counts[errors] + counts[hits], name=f"{short}_{label}")

        return published(
            rate(values, "value"), rate(updates, "update_op"), metrics_collections, updates_collections
        )


# ---- curves


def streaming_curve_points(
    labels: Any = None,
    predictions: Any = None,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
) -> Pair:
    """The points [num_thresholds, 2] of a curve, and their update.

    "ROC": the rates of false and of true positives; "PR": recall and precision. `labels` are bools,
    `predictions` in [0, 1]. ValueError for another curve.
    """
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    with tf.variable_scope(name, "curve_points", (labels, predictions, weights)):
        thresholds = even_thresholds(num_thresholds)
        values, updates = counts_at(thresholds, labels, predictions, weights)
        tp, fn, tn, fp = (
            values[n] for n in ("true_positives", "false_negatives", "true_negatives", "false_positives")
        )
        hit_rate = tf.div(tp + _COUNTED, tp + fn + _COUNTED)
        if curve == "ROC":
            points = tf.stack([tf.div(fp, fp + tn + _COUNTED), hit_rate], axis=1)
        else:
            points = tf.stack([hit_rate, tf.div(tp + _COUNTED, tp + fp + _COUNTED)], axis=1)
        return published(points, tf.group(*updates.values()), metrics_collections, updates_collections)


def _chosen(
    default_name: str,
    choose: Callable[[dict[str, Any], str], Any],
    labels: Any,
    predictions: Any,
    weights: Any,
    thresholds: list[float],
    counts: list[str],
    metrics_collections: Any,
    updates_collections: Any,
    name: str | None,
) -> Pair:
    """What `choose` makes of the counts at the thresholds, before and after the update."""
    with tf.variable_scope(name, default_name, (labels, predictions, weights)):
        values, updates = counts_at(thresholds, labels, predictions, weights, counts)
        value = choose(values, "value")
        update_op = choose(updates, "update_op")
        return published(value, update_op, metrics_collections, updates_collections)


def f1_score(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The best F1 score, the harmonic mean of precision and recall, over even thresholds; and its update.

    `labels` are bools, `predictions` in [0, 1].
    """

    def best(counts: dict[str, Any], _: str) -> Any:
        tp = counts["true_positives"]
        precision = tf.div(tp, _SMALL + tp + counts["false_positives"])
        recall = tf.div(tp, _SMALL + tp + counts["false_negatives"])
        return tf.reduce_max(2.0 * precision * recall / (precision + recall + _SMALL), name="Max")

    return _chosen(
        "f1", best, labels, predictions, weights, even_thresholds(num_thresholds),
        ["true_positives", "false_negatives", "false_positives"],
        metrics_collections, updates_collections, name,
    )  # fmt: skip


def precision_at_recall(
    labels: Any,
    predictions: Any,
    target_recall: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The precision at the highest threshold where the recall is at least `target_recall`; and its update.

    ValueError unless that is in [0, 1].
    """
    if not 0 <= target_recall <= 1:
        raise ValueError("`target_recall` must be in the range [0, 1].")

    def chosen(counts: dict[str, Any], label: str) -> Any:
        tp, fn, fp = (counts[n] for n in ("true_positives", "false_negatives", "false_positives"))
        recalls = tf.div(tp, tp + fn + _SMALL)
        at = tf.reduce_sum(tf.cast(recalls >= target_recall, tf.int32)) - 1  # they fall with the thresholds
        return tf.div(tp[at] + _SMALL, tp[at] + fp[at] + _SMALL, name=label)

    return _chosen(
        "precision_at_recall", chosen, labels, predictions, weights, even_thresholds(num_thresholds), [],
        metrics_collections, updates_collections, name,
    )  # fmt: skip


def recall_at_precision(
    labels: Any,
    predictions: Any,
    precision: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
    strict_mode: bool = False,
) -> Pair:
    """The recall at the threshold where the precision is nearest to `precision`; and its update.

    `strict_mode`: of the thresholds with that precision at least the one where it is nearest; 0 if there is
    none. ValueError unless `precision` is in [0, 1].
    """
    if not 0 <= precision <= 1:
        raise ValueError("`precision` must be in the range [0, 1].")

    def chosen(counts: dict[str, Any], label: str) -> Any:
        tp, fn, fp = (counts[n] for n in ("true_positives", "false_negatives", "false_positives"))
        precisions = tf.div(tp, tp + fp + _SMALL)
        recalls = tf.div(tp, tp + fn + _SMALL)
        if not strict_mode:
            at = tf.argmin(tf.abs(precisions - precision), 0, output_type=tf.int32)
            return tf.identity(recalls[at], name=label)
        reached = precisions >= precision
        distances = tf.where(reached, precisions - precision, 2.0 * tf.ones_like(precisions))
        at = tf.argmin(distances, 0, output_type=tf.int32)
        return tf.where(reached[at], recalls[at], 0.0, name=label)

    return _chosen(
        "recall_at_precision", chosen, labels, predictions, weights, even_thresholds(num_thresholds), [],
        metrics_collections, updates_collections, name,
    )  # fmt: skip


# ---- by buckets


class PrecisionRecallData(NamedTuple):
    """Counts and quotients [num_thresholds] at even thresholds."""

    tp: Any
    fp: Any
    tn: Any
    fn: Any
    precision: Any
    recall: Any
    thresholds: Any


def _as_counts(labels: Any, predictions: Any) -> Any:
    """The labels, which must be bools, as floats; in the step predictions must be in [0, 1]."""
    labels, dtype = tf.convert_to_tensor(labels), predictions.dtype.base_dtype
    if labels.dtype != tf.bool:
        raise ValueError(f"labels must be of type tf.bool, but are of {labels.dtype!r}")
    least = tf.assert_greater_equal(predictions, tf.cast(0.0, dtype))
    most = tf.assert_less_equal(predictions, tf.cast(1.0, dtype))
    with tf.control_dependencies([least, most]):
        return tf.cast(labels, tf.float64)


def precision_recall_at_equal_thresholds(
    labels: Any, predictions: Any, weights: Any = None, num_thresholds: int | None = None,
    use_locking: bool | None = None, name: str | None = None,
) -> tuple[PrecisionRecallData, Any]:  # fmt: skip
    """Precision and recall at `num_thresholds` (201) thresholds from 0 to 1, with one count an element.

    A prediction counts in the bucket below it, so the work does not grow with the number of thresholds.
    `labels` are bools, `predictions` in [0, 1], of the same shape. Returns the data and an update.
    """
    number = 201 if num_thresholds is None else num_thresholds
    with tf.name_scope(name, "precision_recall_at_equal_thresholds", (labels, predictions, weights)):
        predictions = tf.convert_to_tensor(predictions)
        counts, factor = _as_counts(labels, predictions), tf.constant(1.0)
        if weights is not None:
            factor = broadcast_weights(tf.cast(weights, tf.float64), counts)
        factor = tf.cast(factor, tf.float64)
        hits_and_misses = [tf.reshape(each, [-1]) for each in (counts * factor, (1.0 - counts) * factor)]
        bucket = tf.cast(tf.floor(tf.reshape(predictions, [-1]) * (number - 1)), tf.int32)
        with tf.name_scope("variables"):
            buckets = [metric_variable([number], tf.float64, name=f"{kind}_buckets") for kind in ("tp", "fp")]
        with tf.name_scope("update_op"):
            updates = [
                tf.scatter_add(bins, bucket, amounts, use_locking=use_locking or False)
                for bins, amounts in zip(buckets, hits_and_misses)
            ]
        tp, fp = (tf.cumsum(bins, reverse=True, name=kind) for bins, kind in zip(buckets, ("tp", "fp")))
        tn, fn = tf.subtract(fp[0], fp), tf.subtract(tp[0], tp)
        least = tf.constant(_SMALL, tf.float64)
        precision, recall = tp / tf.maximum(least, tp + fp), tp / tf.maximum(least, tp + fn)
        dtype = predictions.dtype.base_dtype
        found = [tf.cast(each, dtype) for each in (tp, fp, tn, fn, precision, recall)]
        data = PrecisionRecallData._make([*found, tf.cast(tf.lin_space(0.0, 1.0, number), dtype)])
        return data, tf.group(*updates)
