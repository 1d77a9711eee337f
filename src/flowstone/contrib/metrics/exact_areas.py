"""Areas under curves from all predictions so far, each of which is a threshold; they are kept in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import flowstone as tf
from flowstone.contrib.metrics.metric_ops import streaming_concat

__all__ = ["AucData", "auc_with_confidence_intervals", "streaming_dynamic_auc"]


class AucData(NamedTuple):
    """An area under a curve, and the bounds of its confidence interval."""

    auc: Any
    lower: Any
    upper: Any


def _as_vector(values: Any, dtype: Any) -> Any:
    return tf.reshape(tf.cast(values, dtype), [-1])


def _checked_labels(labels: Any) -> Any:
    """The labels [n], int64; a step that has others than 0 and 1 fails."""
    labels = _as_vector(labels, tf.int64)
    checks = [
        tf.assert_greater_equal(
            labels, tf.zeros_like(labels), message="labels must be 0 or 1, at least one is <0"
        ),
        tf.assert_less_equal(
            labels, tf.ones_like(labels), message="labels must be 0 or 1, at least one is >1"
        ),
    ]
    with tf.control_dependencies(checks):
        return tf.identity(labels)


def _publish(value: Any, update_op: Any, metrics_collections: Any, updates_collections: Any) -> None:
    if metrics_collections:
        tf.add_to_collections(metrics_collections, value)
    if updates_collections:
        tf.add_to_collections(updates_collections, update_op)


def streaming_dynamic_auc(
    labels: Any,
    predictions: Any,
    curve: str = "ROC",
    metrics_collections: Any = (),
    updates_collections: Any = (),
    name: str | None = None,
    weights: Any = None,
) -> tuple[Any, Any]:
    """The area under a curve of all labels and predictions so far, float64, and the update that adds more.

    Args:
        labels: 0 or 1, any shape; predictions: numbers of the same shape.
        curve: "ROC", or "PR" for precision and recall; the area is that of trapezoids.
        weights: of the labels, none negative; None: all are 1.
        metrics_collections, updates_collections: where the area and the update are added.
        name: of the variables' scope.

    The area is 0 while there are labels of one kind only. Raises ValueError for other curves.
    """
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    with tf.variable_scope(name, default_name="dynamic_auc"):
        labels, predictions = _checked_labels(labels), _as_vector(predictions, tf.float64)
        kept, update_preds = streaming_concat(predictions, name="concat_preds")
        kept_labels, update_labels = streaming_concat(labels, name="concat_labels")
        updates = [update_labels, update_preds]
        kept_weights = None
        if weights is not None:
            given = tf.broadcast_to(tf.reshape(tf.cast(weights, tf.float64), [-1]), tf.shape(predictions))
            kept_weights, update_weights = streaming_concat(given, name="concat_weights")
            updates.append(update_weights)
        update_op = tf.group(*updates)
        auc = _area(kept_labels, kept, kept_weights, curve)
        _publish(auc, update_op, metrics_collections, updates_collections)
        return auc, update_op


def _area(labels: Any, predictions: Any, weights: Any, curve: str) -> Any:
    """The area of labels [n] and predictions [n]; 0 without both kinds of labels."""
    is_true = tf.equal(labels, 1)
    has_both = tf.logical_and(tf.reduce_any(is_true), tf.logical_not(tf.reduce_all(is_true)))
    weights = tf.ones_like(predictions) if weights is None else weights

    def area() -> Any:
        ordered, order = tf.nn.top_k(predictions, tf.size(predictions))
        amounts = tf.gather(weights, order)
        trues = tf.cumsum(tf.gather(tf.to_double(is_true), order) * amounts)
        falses = tf.cumsum(amounts) - trues
        # of equal predictions, the last one's sums are those of the threshold
        is_last = tf.concat([tf.not_equal(ordered[1:], ordered[:-1]), [True]], 0)
        trues, falses = tf.boolean_mask(trues, is_last), tf.boolean_mask(falses, is_last)
        recall = _with_first(trues / trues[-1], 0.0)
        if curve == "ROC":
            return _trapezoids(_with_first(falses / falses[-1], 0.0), recall)
        return _trapezoids(recall, _with_first(trues / (trues + falses), 1.0))

    return tf.cond(has_both, area, lambda: tf.zeros([], tf.float64))


def _with_first(values: Any, first: float) -> Any:
    return tf.concat([tf.constant([first], tf.float64), values], 0)


def _trapezoids(x: Any, y: Any) -> Any:
    return tf.reduce_sum((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2.0)


def auc_with_confidence_intervals(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    alpha: float = 0.95,
    logit_transformation: bool = True,
    metrics_collections: Any = (),
    updates_collections: Any = (),
    name: str | None = None,
) -> tuple[AucData, Any]:
    """The area under the ROC curve of all labels and predictions so far with a confidence interval, and the
    update that adds more.

    Args:
        labels: 0 or 1, any shape; predictions: numbers of the same shape.
        weights: a number, or one for each label; None: all are 1.
        alpha: the confidence, more than 0 and less than 1.
        logit_transformation: whether the interval is that of the logit, and so within 0 and 1.
        metrics_collections, updates_collections: where the result and the update are added.
        name: of the variables' scope.

    Returns an `AucData` of scalars, float32, all 0 while the weights of either kind
    of labels have a sum below 1. The variance is
    that of the placement values (DeLong, DeLong and Clarke-Pearson, 1988). Raises ValueError for another
    `alpha`.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1; currently {alpha:.02f}")
    with tf.variable_scope(name, default_name="auc_with_confidence_intervals"):
        labels, predictions = _checked_labels(labels), _as_vector(predictions, tf.float64)
        given = tf.ones_like(predictions, tf.float32) if weights is None else _as_vector(weights, tf.float32)
        given = tf.broadcast_to(given, tf.shape(predictions))
        kept, update_preds = streaming_concat(predictions, name="concat_preds")
        kept_labels, update_labels = streaming_concat(labels, name="concat_labels")
        kept_weights, update_weights = streaming_concat(given, name="concat_weights")
        update_op = tf.group(update_labels, update_preds, update_weights)
        found = _interval(kept_labels, kept, kept_weights, alpha, logit_transformation)
        _publish(found, update_op, metrics_collections, updates_collections)
        return found, update_op


def _placements(values: Any, weights: Any, others: Any, other_weights: Any) -> Any:
    """Of each value the share of the others, by weight, that are less, and half of those that are equal."""
    order = tf.argsort(others, stable=True)
    ordered = tf.gather(others, order)
    sums = tf.concat([[0.0], tf.cumsum(tf.gather(other_weights, order))], 0)
    below, upto = (tf.searchsorted(ordered, values, side=side) for side in ("left", "right"))
    return (tf.gather(sums, below) + tf.gather(sums, upto)) / 2.0 / tf.reduce_sum(other_weights)


def _mean_and_variance(values: Any, weights: Any) -> tuple[Any, Any]:
    """The weighted mean of values, and the variance of it, as of a sample."""
    total = tf.reduce_sum(weights)
    mean = tf.reduce_sum(values * weights) / total
    squares = tf.reduce_sum(weights * tf.square(values - mean))
    return mean, squares / tf.maximum(total - 1.0, _LEAST) / total


_LEAST = 1e-7


def _interval(labels: Any, predictions: Any, weights: Any, alpha: float, is_logit: bool) -> AucData:
    is_true = tf.equal(labels, 1)
    amounts = weights * tf.to_float(is_true)
    others = tf.reduce_sum(weights - amounts)
    has_both = tf.logical_and(tf.reduce_sum(amounts) >= 1.0, others >= 1.0)

    def interval() -> tuple[Any, Any, Any]:
        no = tf.logical_not(is_true)
        of_true, of_false = (tf.boolean_mask(predictions, mask) for mask in (is_true, no))
        by_true, by_false = (tf.boolean_mask(weights, mask) for mask in (is_true, no))
        auc, of_first = _mean_and_variance(_placements(of_true, by_true, of_false, by_false), by_true)
        reverse = 1.0 - _placements(of_false, by_false, of_true, by_true)
        _, of_second = _mean_and_variance(reverse, by_false)
        half = _quantile(alpha) * tf.sqrt(of_first + of_second)
        if not is_logit:
            return auc, auc - half, auc + half
        logit = tf.log(auc / (1.0 - auc + _LEAST))
        half = half / (auc * (1.0 - auc))
        is_sure = tf.logical_or(tf.equal(auc, 0.0), tf.equal(auc, 1.0))  # the logit is infinite
        lower, upper = tf.sigmoid(logit - half), tf.sigmoid(logit + half)
        return auc, tf.where(is_sure, auc, lower), tf.where(is_sure, auc, upper)

    zero = tf.constant(0.0)
    return AucData(*tf.cond(has_both, interval, lambda: (zero, zero, zero)))


def _quantile(alpha: float) -> Any:
    """What a normal variable's absolute value stays below with this probability."""
    return tf.cast(tf.math.ndtri(tf.constant((1.0 + alpha) / 2.0, tf.float64)), tf.float32)
