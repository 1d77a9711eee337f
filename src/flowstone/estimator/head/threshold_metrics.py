"""Metrics of probabilities that depend on a threshold, and those of two classes."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["accuracy_baseline", "at_thresholds", "checked_thresholds", "mean_of", "threshold_names"]


def checked_thresholds(thresholds: Any) -> tuple[float, ...]:
    """The thresholds, numbers between 0 and 1; ValueError for others."""
    found = tuple(thresholds) if thresholds else ()
    for each in found:
        if each <= 0.0 or each >= 1.0:
            raise ValueError(f"thresholds not in (0, 1): {found}.")
    return found


def threshold_names(thresholds: tuple[float, ...]) -> list[str]:
    """The metrics' names, three for each threshold."""
    return [
        f"{kind}/positive_threshold_{threshold:g}"
        for threshold in thresholds
        for kind in ("accuracy", "precision", "recall")
    ]


def at_thresholds(
    labels: Any, probabilities: Any, weights: Any, thresholds: tuple[float, ...]
) -> dict[str, Any]:
    """Accuracy, precision and recall at each threshold."""
    found = {}
    for threshold in thresholds:
        above = tf.to_float(tf.greater_equal(probabilities, threshold))
        end = f"positive_threshold_{threshold:g}"
        found[f"accuracy/{end}"] = tf.metrics.accuracy(labels, above, weights)
        precision, update = tf.metrics.precision_at_thresholds(labels, probabilities, [threshold], weights)
        found[f"precision/{end}"] = tf.squeeze(precision), tf.squeeze(update)
        recall, update = tf.metrics.recall_at_thresholds(labels, probabilities, [threshold], weights)
        found[f"recall/{end}"] = tf.squeeze(recall), tf.squeeze(update)
    return found


def mean_of(values: Any, weights: Any, name: str | None = None) -> Any:
    """The weighted mean of values, whose weights may have a last axis of size 1."""
    values = tf.to_float(values)
    if isinstance(weights, tf.Tensor) and weights.shape.as_list() != values.shape.as_list():
        weights = weights * tf.ones_like(values)
    return tf.metrics.mean(values, weights=weights, name=name)


def accuracy_baseline(label_mean: Any) -> Any:
    """The accuracy of always predicting the more frequent of two classes, from the mean of labels."""
    value, update = label_mean
    return tf.maximum(value, 1 - value, name="accuracy_baseline"), tf.maximum(update, 1 - update)
