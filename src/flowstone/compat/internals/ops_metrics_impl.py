"""`tensorflow.python.ops.metrics_impl`: what metrics that people write themselves take from TensorFlow's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.layers.metrics.average_precisions import average_precision_at_top_k
from flowstone.layers.metrics.classes import _streaming_confusion_matrix
from flowstone.layers.metrics.rankings import _streaming_count, label_sets, name_at_k
from flowstone.layers.metrics.state import aligned, with_fitting_weights
from flowstone.layers.metrics.thresholds import counts_at

__all__ = [
    "_aggregate_variable",
    "_at_k_name",
    "_confusion_matrix_at_thresholds",
    "_remove_squeezable_dimensions",
    "_safe_div",
    "_safe_scalar_div",
    "_streaming_confusion_matrix",
    "_streaming_sparse_average_precision_at_top_k",
    "_streaming_sparse_false_negative_at_k",
    "_streaming_sparse_false_positive_at_k",
    "_streaming_sparse_true_positive_at_k",
]

_SHORT_NAMES = {
    "tp": "true_positives",
    "fn": "false_negatives",
    "tn": "true_negatives",
    "fp": "false_positives",
}
_at_k_name = name_at_k


def _aggregate_variable(v: Any, collections: Any) -> Any:
    """The value of a metric's variable, added to the collections."""
    value = tf.identity(v)
    if collections:
        tf.add_to_collections(collections, value)
    return value


def _remove_squeezable_dimensions(predictions: Any, labels: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Predictions and labels of one rank, and weights that fit; labels and weights may be None.

    ValueError if the known shapes of predictions and labels differ.
    """
    if labels is not None:
        return aligned(predictions, labels, weights)
    predictions, weights = with_fitting_weights(predictions, weights)
    return predictions, None, weights


def _safe_div(numerator: Any, denominator: Any, name: str | None = None) -> Any:
    """numerator / denominator, and 0 where the denominator is not positive."""
    numerator, denominator = tf.convert_to_tensor(numerator), tf.convert_to_tensor(denominator)
    zeros = tf.zeros_like(numerator, dtype=denominator.dtype)
    is_positive = tf.greater(denominator, 0)
    return tf.where(is_positive, tf.truediv(numerator, denominator), zeros, name=name)


def _safe_scalar_div(numerator: Any, denominator: Any, name: str | None = None) -> Any:
    """numerator / denominator of scalars, and 0 if the denominator is 0."""
    return tf.div_no_nan(numerator, denominator, name=name)


def _confusion_matrix_at_thresholds(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any = None,
    includes: Sequence[str] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Variables of the counts at each threshold and their updates, by "tp", "fn", "tn" and "fp".

    ValueError for another key among `includes`; InvalidArgumentError in the step for predictions outside
    [0, 1].
    """
    wanted = list(_SHORT_NAMES) if includes is None else list(includes)
    for key in wanted:
        if key not in _SHORT_NAMES:
            raise ValueError(f"Invalid key: {key}.")
    counted = [_SHORT_NAMES[key] for key in wanted]
    values, updates = counts_at(thresholds, labels, predictions, weights, counted)
    return {key: values[_SHORT_NAMES[key]] for key in wanted}, {
        key: updates[_SHORT_NAMES[key]] for key in wanted
    }


def _streaming_sparse_average_precision_at_top_k(
    labels: Any,
    predictions_idx: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The mean average precision of the classes `predictions_idx`, best first, and its update."""
    given = (predictions_idx, labels, weights, metrics_collections, updates_collections, name)
    return average_precision_at_top_k(*given)


def _count_at_k(
    count: str,
    labels: Any,
    predictions_idx: Any,
    k: Any,
    class_id: int | None,
    weights: Any,
    name: str | None,
) -> tuple[Any, Any]:
    with tf.name_scope(name):
        sets = label_sets(labels, tf.convert_to_tensor(predictions_idx))
        return _streaming_count(count, sets, tf.cast(predictions_idx, tf.int64), k, class_id, weights)


def _streaming_sparse_true_positive_at_k(
    labels: Any,
    predictions_idx: Any,
    k: Any = None,
    class_id: int | None = None,
    weights: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """How many predicted classes are labels, and its update."""
    return _count_at_k("true_positive", labels, predictions_idx, k, class_id, weights, name)


def _streaming_sparse_false_positive_at_k(
    labels: Any,
    predictions_idx: Any,
    k: Any = None,
    class_id: int | None = None,
    weights: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """How many predicted classes are no labels, and its update."""
    return _count_at_k("false_positive", labels, predictions_idx, k, class_id, weights, name)


def _streaming_sparse_false_negative_at_k(
    labels: Any,
    predictions_idx: Any,
    k: Any,
    class_id: int | None = None,
    weights: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """How many labels were not predicted, and its update."""
    return _count_at_k("false_negative", labels, predictions_idx, k, class_id, weights, name)
