"""Metrics of `tf.metrics` under the names and with the arguments of contrib: predictions come before labels.

Each function returns a value and an operation that takes a batch in; see the function of `tf.metrics` that it
calls.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.layers.metrics.thresholds import counts_at

Pair = Any  # a value and the operation that updates it


def _counts_at(count: str, predictions: Any, labels: Any, thresholds: Any, weights: Any) -> Pair:
    values, updates = counts_at(thresholds, labels, predictions, weights, [count])
    return values[count], updates[count]


def streaming_true_positives(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """How many predictions are rightly true; see `tf.metrics.true_positives`."""
    return tf.metrics.true_positives(
        labels, predictions, weights, metrics_collections, updates_collections, name
    )


def streaming_true_negatives(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """How many predictions are rightly false; see `tf.metrics.true_negatives`."""
    return tf.metrics.true_negatives(
        labels, predictions, weights, metrics_collections, updates_collections, name
    )


def streaming_false_positives(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """How many predictions are wrongly true; see `tf.metrics.false_positives`."""
    return tf.metrics.false_positives(
        labels, predictions, weights, metrics_collections, updates_collections, name
    )


def streaming_false_negatives(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """How many predictions are wrongly false; see `tf.metrics.false_negatives`."""
    return tf.metrics.false_negatives(
        labels, predictions, weights, metrics_collections, updates_collections, name
    )


def streaming_mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The mean of all values; see `tf.metrics.mean`."""
    return tf.metrics.mean(values, weights, metrics_collections, updates_collections, name)


def streaming_mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The mean of each element; see `tf.metrics.mean_tensor`."""
    return tf.metrics.mean_tensor(values, weights, metrics_collections, updates_collections, name)


def streaming_accuracy(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The share of predictions that equal the labels; see `tf.metrics.accuracy`."""
    return tf.metrics.accuracy(labels, predictions, weights, metrics_collections, updates_collections, name)


def streaming_precision(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """Of what is predicted true, the share that is; see `tf.metrics.precision`."""
    return tf.metrics.precision(labels, predictions, weights, metrics_collections, updates_collections, name)


def streaming_recall(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """Of what is true, the share that is predicted so; see `tf.metrics.recall`."""
    return tf.metrics.recall(labels, predictions, weights, metrics_collections, updates_collections, name)


def streaming_mean_absolute_error(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """See `tf.metrics.mean_absolute_error`."""
    return tf.metrics.mean_absolute_error(
        labels, predictions, weights, metrics_collections, updates_collections, name
    )


def streaming_mean_squared_error(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """See `tf.metrics.mean_squared_error`."""
    return tf.metrics.mean_squared_error(
        labels, predictions, weights, metrics_collections, updates_collections, name
    )


def streaming_root_mean_squared_error(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """See `tf.metrics.root_mean_squared_error`."""
    return tf.metrics.root_mean_squared_error(
        labels, predictions, weights, metrics_collections, updates_collections, name
    )


def streaming_mean_relative_error(
    predictions: Any,
    labels: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """See `tf.metrics.mean_relative_error`."""
    return tf.metrics.mean_relative_error(
        labels, predictions, normalizer, weights, metrics_collections, updates_collections, name
    )


def streaming_mean_cosine_distance(
    predictions: Any,
    labels: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """See `tf.metrics.mean_cosine_distance`."""
    return tf.metrics.mean_cosine_distance(
        labels, predictions, dim, weights, metrics_collections, updates_collections, name
    )


def streaming_percentage_less(
    values: Any,
    threshold: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The share of values below `threshold`; see `tf.metrics.percentage_below`."""
    return tf.metrics.percentage_below(
        values, threshold, weights, metrics_collections, updates_collections, name
    )


def streaming_mean_iou(
    predictions: Any,
    labels: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The mean of intersection over union by class; see `tf.metrics.mean_iou`."""
    return tf.metrics.mean_iou(
        labels, predictions, num_classes, weights, metrics_collections, updates_collections, name
    )


def streaming_specificity_at_sensitivity(
    predictions: Any,
    labels: Any,
    sensitivity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """See `tf.metrics.specificity_at_sensitivity`."""
    return tf.metrics.specificity_at_sensitivity(
        labels,
        predictions,
        sensitivity,
        weights,
        num_thresholds,
        metrics_collections,
        updates_collections,
        name,
    )


def streaming_sensitivity_at_specificity(
    predictions: Any,
    labels: Any,
    specificity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """See `tf.metrics.sensitivity_at_specificity`."""
    return tf.metrics.sensitivity_at_specificity(
        labels,
        predictions,
        specificity,
        weights,
        num_thresholds,
        metrics_collections,
        updates_collections,
        name,
    )


def streaming_precision_at_thresholds(
    predictions: Any,
    labels: Any,
    thresholds: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """See `tf.metrics.precision_at_thresholds`."""
    return tf.metrics.precision_at_thresholds(
        labels, predictions, thresholds, weights, metrics_collections, updates_collections, name
    )


def streaming_recall_at_thresholds(
    predictions: Any,
    labels: Any,
    thresholds: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """See `tf.metrics.recall_at_thresholds`."""
    return tf.metrics.recall_at_thresholds(
        labels, predictions, thresholds, weights, metrics_collections, updates_collections, name
    )


def streaming_true_positives_at_thresholds(
    predictions: Any, labels: Any, thresholds: Any, weights: Any = None
) -> Pair:
    """See `tf.metrics.true_positives_at_thresholds`."""
    return _counts_at("true_positives", predictions, labels, thresholds, weights)


def streaming_true_negatives_at_thresholds(
    predictions: Any, labels: Any, thresholds: Any, weights: Any = None
) -> Pair:
    """See `tf.metrics.true_negatives_at_thresholds`."""
    return _counts_at("true_negatives", predictions, labels, thresholds, weights)


def streaming_false_positives_at_thresholds(
    predictions: Any, labels: Any, thresholds: Any, weights: Any = None
) -> Pair:
    """See `tf.metrics.false_positives_at_thresholds`."""
    return _counts_at("false_positives", predictions, labels, thresholds, weights)


def streaming_false_negatives_at_thresholds(
    predictions: Any, labels: Any, thresholds: Any, weights: Any = None
) -> Pair:
    """See `tf.metrics.false_negatives_at_thresholds`."""
    return _counts_at("false_negatives", predictions, labels, thresholds, weights)


def streaming_auc(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
) -> Pair:
    """The area under a curve, "ROC" or "PR", from its points at thresholds; see `tf.metrics.auc`."""
    return tf.metrics.auc(
        labels,
        predictions,
        weights,
        num_thresholds,
        metrics_collections,
        updates_collections,
        curve=curve,
        name=name,
    )
