"""Covariance and correlation of two streams of numbers, by counts, means and the sum of products.

Batches are merged as Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing
Sample Variances" (1979), merge variances.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.layers.metrics.state import aligned, metric_variable, published
from flowstone.layers.weights_broadcast import broadcast_weights

Pair = Any  # a value and the operation that updates it


def streaming_covariance(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Pair:  # fmt: skip
    """The unbiased sample covariance of predictions and labels of the same shape.

    `weights`: how often an element counts. Returns a value, 0 for less than two elements, and its update.
    ValueError if the shapes differ.
    """
    with tf.variable_scope(name, "covariance", (predictions, labels, weights)):
        predictions, labels, weights = aligned(predictions, labels, weights)
        predictions, labels = tf.cast(predictions, tf.float32), tf.cast(labels, tf.float32)
        count = metric_variable([], tf.float32, name="count")
        mean_prediction = metric_variable([], tf.float32, name="mean_prediction")
        mean_label = metric_variable([], tf.float32, name="mean_label")
        comoment = metric_variable([], tf.float32, name="comoment")
        batch_count, weighted_predictions, weighted_labels, weights = _weighted(predictions, labels, weights)
        new_count = tf.assign_add(count, batch_count)
        old_count = new_count - batch_count
        batch_prediction = tf.div_no_nan(tf.reduce_sum(weighted_predictions), batch_count)
        prediction_change = (batch_prediction - mean_prediction) * tf.div_no_nan(batch_count, new_count)
        batch_label = tf.div_no_nan(tf.reduce_sum(weighted_labels), batch_count)
        label_change = (batch_label - mean_label) * tf.div_no_nan(batch_count, new_count)
        products = (predictions - batch_prediction) * (labels - batch_label)
        if weights is not None:
            products *= weights
        # The means before the batch: mean + change is the new one, the batch's is further on.
        moved = (batch_prediction - mean_prediction) * (batch_label - mean_label)
        change = tf.reduce_sum(products) + moved * tf.div_no_nan(old_count * batch_count, new_count)
        with tf.control_dependencies([change, prediction_change, label_change]):
            new_comoment = tf.assign_add(comoment, change)
            means = [
                tf.assign_add(mean_prediction, prediction_change),
                tf.assign_add(mean_label, label_change),
            ]
        covariance = tf.div_no_nan(comoment, tf.maximum(count - 1.0, 0.0), name="covariance")
        with tf.control_dependencies(means):
            update_op = tf.div_no_nan(new_comoment, tf.maximum(new_count - 1.0, 0.0), name="update_op")
        return published(covariance, update_op, metrics_collections, updates_collections)


def _weighted(predictions: Any, labels: Any, weights: Any) -> tuple[Any, Any, Any, Any]:
    """How much a batch counts, the two tensors times the weights, and these in the tensors' shape."""
    if weights is None:
        return tf.cast(tf.size(labels), tf.float32), predictions, labels, None
    weights = broadcast_weights(tf.cast(weights, tf.float32), labels)
    return tf.reduce_sum(weights), predictions * weights, labels * weights, weights


def streaming_pearson_correlation(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Pair:
    """Pearson's coefficient of the correlation of predictions and labels; see `streaming_covariance`."""
    with tf.variable_scope(name, "pearson_r", (predictions, labels, weights)):
        predictions, labels, weights = aligned(predictions, labels, weights)
        if weights is not None:
            weights = broadcast_weights(tf.cast(weights, tf.float32), labels)
        both, both_update = streaming_covariance(predictions, labels, weights, name="covariance")
        first, first_update = streaming_covariance(
            predictions, predictions, weights, name="variance_predictions"
        )
        second, second_update = streaming_covariance(labels, labels, weights, name="variance_labels")
        value = tf.truediv(both, tf.sqrt(first) * tf.sqrt(second), name="pearson_r")
        update_op = tf.truediv(both_update, tf.sqrt(first_update) * tf.sqrt(second_update), name="update_op")
        return published(value, update_op, metrics_collections, updates_collections)
