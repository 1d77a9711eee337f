"""Losses as means of weighted errors, gathered in the collection LOSSES.

Weights have the leading dimensions of the losses, from none to all: what is left of a loss behind them is
summed before it is multiplied. The mean is over the elements whose weight is not zero.
"""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.framework.arg_scope import add_arg_scope

__all__ = [
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


def _as_float(value: Any) -> Any:
    value = tf.convert_to_tensor(value)
    return value if value.dtype.base_dtype == tf.float32 else tf.cast(value, tf.float32)


def _checked(losses: Any, weights: Any) -> Any:
    """The weights, without a last dimension of size 1. ValueError for unknown ranks."""
    if losses.shape.ndims is None:
        raise ValueError("losses.get_shape().ndims cannot be None")
    if weights.shape.ndims is None:
        raise ValueError("weights.get_shape().ndims cannot be None")
    if weights.shape.ndims > 1 and weights.shape.as_list()[-1] in (None, 1):
        weights = tf.squeeze(weights, [-1])
    return weights


def _present(losses: Any, weights: Any) -> Any:
    """How many elements of the losses have a weight other than zero, a float scalar."""
    behind = losses.shape[weights.shape.ndims :]
    count = behind.num_elements() if behind.is_fully_defined() else None
    elements = tf.cast(tf.reduce_prod(tf.shape(losses)[weights.shape.ndims :]), tf.float32)
    present = tf.reduce_sum(tf.cast(tf.not_equal(weights, 0.0), tf.float32))
    return present * (elements if count is None else float(count))


def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: str | None = None) -> Any:
    """The mean of losses, each times its weight, over those whose weight is not zero; added to LOSSES.

    Args:
        losses: [batch, …].
        weights: a number, or a tensor with the leading dimensions of the losses.
        scope: the name scope; default "weighted_loss".

    Returns a scalar of the losses' type. ValueError for unknown ranks and shapes that do not fit.
    """
    with tf.name_scope(scope, "weighted_loss", [losses, weights]):
        losses = tf.convert_to_tensor(losses)
        dtype = losses.dtype.base_dtype
        losses, weights = _as_float(losses), _as_float(weights)
        weights = _checked(losses, weights)
        axes = list(range(weights.shape.ndims, losses.shape.ndims))
        total = tf.reduce_sum(tf.reduce_sum(losses, axes) * weights)
        mean = tf.div_no_nan(total, _present(losses, weights), name="value")
        mean = mean if dtype == tf.float32 else tf.cast(mean, dtype)
        add_loss(mean)
        return mean


# ---- gathering


@add_arg_scope
def add_loss(loss: Any, loss_collection: str | None = tf.GraphKeys.LOSSES) -> None:
    """Adds a loss to a collection; None adds it to none."""
    if loss_collection:
        tf.add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = tf.GraphKeys.LOSSES) -> list[Any]:
    """The losses so far whose names begin as `scope`, a regular expression, says."""
    return list(tf.get_collection(loss_collection, scope))


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The losses of weights so far."""
    return list(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES, scope))


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss") -> Any:
    """The sum of all losses, with or without those of weights. ValueError if there is none."""
    losses = get_losses()
    if add_regularization_losses:
        losses += get_regularization_losses()
    return tf.add_n(losses, name=name)


# ---- errors


def _both(predictions: Any, labels: Any) -> tuple[Any, Any]:
    """Predictions and labels as floats of the same shape. ValueError if the shapes differ."""
    if labels is None:
        raise ValueError("labels must be given")
    predictions, labels = tf.convert_to_tensor(predictions), tf.convert_to_tensor(labels)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return _as_float(predictions), _as_float(labels)


def absolute_difference(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None
) -> Any:
    """The mean of abs(predictions - labels), weighted; see `compute_weighted_loss`."""
    with tf.name_scope(scope, "absolute_difference", [predictions, labels, weights]) as scope:
        predictions, labels = _both(predictions, labels)
        return compute_weighted_loss(tf.abs(predictions - labels), weights, scope=scope)


def mean_squared_error(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None
) -> Any:
    """The mean of (predictions - labels) ** 2, weighted; see `compute_weighted_loss`."""
    with tf.name_scope(scope, "mean_squared_error", [predictions, labels, weights]) as scope:
        predictions, labels = _both(predictions, labels)
        return compute_weighted_loss(tf.squared_difference(predictions, labels), weights, scope=scope)


def log_loss(
    predictions: Any,
    labels: Any = None,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
) -> Any:
    """The mean of the cross entropy of probabilities and labels of 0 and 1, weighted.

    `epsilon` is added to what logarithms are taken of. See `compute_weighted_loss`.
    """
    with tf.name_scope(scope, "log_loss", [predictions, labels, weights]) as scope:
        predictions, labels = _both(predictions, labels)
        hits = -labels * tf.log(predictions + epsilon)
        losses = hits - (1 - labels) * tf.log(1 - predictions + epsilon)
        return compute_weighted_loss(losses, weights, scope=scope)


def hinge_loss(logits: Any, labels: Any = None, scope: str | None = None) -> Any:
    """max(0, 1 - sign * logits) for each element, where the sign is of labels of 0 and 1.

    It is not reduced, and added to no collection.
    """
    with tf.name_scope(scope, "hinge_loss", [logits, labels]):
        logits, labels = _both(logits, labels)
        signs = tf.subtract(2 * labels, tf.ones_like(labels))
        return tf.nn.relu(tf.subtract(tf.ones_like(labels), tf.multiply(signs, logits)))


def cosine_distance(
    predictions: Any,
    labels: Any = None,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    dim: int | None = None,
) -> Any:
    """The mean of 1 - sum(predictions * labels, axis) of vectors of length one, weighted.

    `dim` is the older name of `axis`. ValueError without either; see `compute_weighted_loss`.
    """
    axis = dim if axis is None else axis
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    with tf.name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]) as scope:
        predictions, labels = _both(predictions, labels)
        losses = 1 - tf.reduce_sum(tf.multiply(predictions, labels), [axis])
        return compute_weighted_loss(losses, weights, scope=scope)


def mean_pairwise_squared_error(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None
) -> Any:
    """How much differences of pairs of elements differ in predictions and labels, squared.

    Each example gives the mean over all pairs of its elements; examples, weighted, are added.

    `weights`: a number, or [batch]. ValueError for another shape. The loss is added to LOSSES.
    """
    with tf.name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        predictions, labels = _both(predictions, labels)
        differences = tf.subtract(predictions, labels)
        weights = _checked(differences, _as_float(weights))
        if weights.shape.ndims > 1:
            raise ValueError(f"weights must be a number or of rank 1, but are of shape {weights.shape}")
        axes = list(range(1, differences.shape.ndims or 0))
        elements = tf.cast(tf.reduce_prod(tf.shape(differences)[1:]), tf.float32)
        squares = tf.reduce_sum(tf.square(differences), axes)
        sums = tf.reduce_sum(differences, axes)
        first = 2.0 * tf.div_no_nan(squares, elements, name="value")
        second = 2.0 * tf.div_no_nan(tf.square(sums), tf.square(elements), name="value_1")
        loss = tf.reduce_sum((first - second) * weights, name="value_2")
        add_loss(loss)
        return loss


# ---- cross entropies


def sigmoid_cross_entropy(
    logits: Any,
    multi_class_labels: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
) -> Any:
    """The mean cross entropy of independent classes, weighted.

    `label_smoothing` moves labels towards 1/2 by this share. See `compute_weighted_loss`.
    """
    with tf.name_scope(scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels, weights]) as scope:
        logits, labels = tf.convert_to_tensor(logits), tf.convert_to_tensor(multi_class_labels)
        logits.shape.assert_is_compatible_with(labels.shape)
        labels = tf.cast(labels, logits.dtype)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, scope=scope)


def softmax_cross_entropy(
    logits: Any,
    onehot_labels: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
) -> Any:
    """The mean cross entropy of exclusive classes and labels that are distributions, weighted.

    `label_smoothing` moves labels towards the even distribution by this share. See `compute_weighted_loss`.
    """
    with tf.name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]) as scope:
        logits, labels = tf.convert_to_tensor(logits), tf.convert_to_tensor(onehot_labels)
        logits.shape.assert_is_compatible_with(labels.shape)
        labels = tf.cast(labels, logits.dtype)
        if label_smoothing > 0:
            classes = tf.cast(tf.shape(labels)[1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        losses = tf.nn.softmax_cross_entropy_with_logits(
            labels=tf.stop_gradient(labels), logits=logits, name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope=scope)


def sparse_softmax_cross_entropy(
    logits: Any, labels: Any, weights: Any = 1.0, scope: str | None = None
) -> Any:
    """The mean cross entropy of exclusive classes and labels [batch] or [batch, 1], weighted.

    See `compute_weighted_loss`.
    """
    with tf.name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]) as scope:
        labels = tf.convert_to_tensor(labels)
        labels = tf.reshape(labels, [-1])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=tf.convert_to_tensor(logits), name="xentropy"
        )
        return compute_weighted_loss(losses, weights, scope=scope)
