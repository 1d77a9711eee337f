"""Metrics of the classes that a model ranks highest; each returns a value and its update."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.layers.metrics.average_precisions import average_precision_at_top_k
from flowstone.layers.metrics.rankings import name_at_k

Pair = Any  # a value and the operation that updates it


def streaming_recall_at_k(
    predictions: Any,
    labels: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The share of examples whose label is among the `k` classes of the highest predictions.

    Args:
        predictions: [batch, classes], float32.
        labels: [batch], int32 or int64.
    """
    found = tf.cast(tf.nn.in_top_k(predictions, labels, k), tf.float32)
    return tf.metrics.mean(found, weights, metrics_collections, updates_collections, name or f"recall_at_{k}")


def streaming_sparse_recall_at_k(
    predictions: Any,
    labels: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """Of the labels, the share among the `k` highest predictions; see `tf.metrics.recall_at_k`."""
    return tf.metrics.recall_at_k(
        labels, predictions, k, class_id, weights, metrics_collections, updates_collections, name
    )


def sparse_recall_at_top_k(
    labels: Any,
    top_k_predictions: Any,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """Of the labels, the share among the classes predicted; see `tf.metrics.recall_at_top_k`."""
    return tf.metrics.recall_at_top_k(
        labels,
        top_k_predictions,
        None,
        class_id,
        weights,
        metrics_collections,
        updates_collections,
        name or name_at_k("recall", None, class_id),
    )


def streaming_sparse_precision_at_k(
    predictions: Any,
    labels: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """Of the `k` highest predictions, the share that are labels; see `tf.metrics.precision_at_k`."""
    return tf.metrics.precision_at_k(
        labels, predictions, k, class_id, weights, metrics_collections, updates_collections, name
    )


def streaming_sparse_precision_at_top_k(
    top_k_predictions: Any,
    labels: Any,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """Of the classes predicted, the share that are labels; see `tf.metrics.precision_at_top_k`."""
    return tf.metrics.precision_at_top_k(
        labels,
        top_k_predictions,
        None,
        class_id,
        weights,
        metrics_collections,
        updates_collections,
        name or name_at_k("precision", None, class_id),
    )


def streaming_sparse_average_precision_at_k(
    predictions: Any,
    labels: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """The mean of the average precision; see `tf.metrics.average_precision_at_k`."""
    return tf.metrics.average_precision_at_k(
        labels, predictions, k, weights, metrics_collections, updates_collections, name
    )


def streaming_sparse_average_precision_at_top_k(
    top_k_predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """As `streaming_sparse_average_precision_at_k`, of classes [batch, k] that are ranked already.

    ValueError for a scalar.
    """
    return average_precision_at_top_k(
        top_k_predictions, labels, weights, metrics_collections, updates_collections, name
    )
