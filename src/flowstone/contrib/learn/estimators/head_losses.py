"""The losses of heads, one value an example or an output, and their weighted means."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = [
    "Loss",
    "log_loss_with_two_classes",
    "mean_squared_loss",
    "poisson_loss",
    "sigmoid_cross_entropy_loss",
    "softmax_cross_entropy_loss",
    "weighted_loss",
    "wrapped_loss",
]

# A function of labels, logits and weights: the loss that training lessens, and the one that metrics average.
Loss = Callable[[Any, Any, Any], "tuple[Any, Any]"]


def weighted_loss(values: Any, weights: Any) -> tuple[Any, Any]:
    """The mean of the weighted losses, and their sum over that of the weights."""
    if weights is None:
        loss = tf.reduce_mean(values, name="loss")
        return loss, loss
    weights = tf.broadcast_to(_of_rank(tf.to_float(weights), len(values.shape)), tf.shape(values))
    weighted = tf.multiply(values, weights, name="weighted_loss")
    loss = tf.reduce_mean(weighted, name="loss")
    return loss, tf.div(
        tf.reduce_sum(weighted), tf.to_float(tf.reduce_sum(weights)), name="weighted_average_loss"
    )


def _of_rank(values: Any, rank: int) -> Any:
    """The values with trailing axes of size 1 added or taken away."""
    while len(values.shape) > rank:
        values = tf.squeeze(values, [-1])
    while len(values.shape) < rank:
        values = tf.expand_dims(values, -1)
    return values


def log_loss_with_two_classes(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
    """The logistic loss: labels 0 or 1 and logits, both [batch, 1]."""
    with tf.name_scope(None, "log_loss_with_two_classes", (logits, labels)) as name:
        labels = tf.to_float(_of_rank(labels, 2))
        return weighted_loss(
            tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name=name), weights
        )


def softmax_cross_entropy_loss(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
    """The cross entropy of classes [batch] or [batch, 1] with logits [batch, classes].

    ValueError for labels that are not integers.
    """
    with tf.name_scope(None, "softmax_cross_entropy_loss", (logits, labels)) as name:
        if not labels.dtype.is_integer:
            raise ValueError(f"Labels dtype should be integer. Instead got {labels.dtype}.")
        if len(labels.shape) == 2:
            labels = tf.squeeze(labels, [1])
        return weighted_loss(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name), weights
        )


def sigmoid_cross_entropy_loss(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
    """The logistic losses of classes that do not exclude each other, labels 0 or 1, both [batch, classes]."""
    with tf.name_scope(None, "sigmoid_cross_entropy_loss", (logits, labels)) as name:
        values = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.to_float(labels), logits=logits, name=name)
        return weighted_loss(values, weights)


def mean_squared_loss(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
    """The squared differences, both [batch, outputs]."""
    with tf.name_scope(None, "mean_squared_loss", (logits, labels)) as name:
        logits, labels = _of_rank(tf.to_float(logits), 2), _of_rank(tf.to_float(labels), 2)
        logits.shape.assert_is_compatible_with(labels.shape)
        return weighted_loss(tf.square(logits - labels, name=name), weights)


def poisson_loss(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
    """The negative log-likelihood of counts, by logarithms of Poisson rates [batch, outputs]."""
    with tf.name_scope(None, "_poisson_loss", (logits, labels)) as name:
        logits, labels = _of_rank(tf.to_float(logits), 2), _of_rank(tf.to_float(labels), 2)
        logits.shape.assert_is_compatible_with(labels.shape)
        return weighted_loss(
            tf.nn.log_poisson_loss(targets=labels, log_input=logits, compute_full_loss=True, name=name),
            weights,
        )


def hinge_loss(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
    """The hinge losses of labels 0 or 1 [batch, 1]."""
    with tf.name_scope(None, "hinge_loss", (logits, labels)) as name:
        labels = _of_rank(labels, 2)
        none = tf.losses.Reduction.NONE
        return weighted_loss(tf.losses.hinge_loss(labels, logits, scope=name, reduction=none), weights)


def wrapped_loss(loss_fn: Callable[..., Any]) -> Loss:
    """A program's function of labels, logits and weights, which may give a pair as ours do.

    ValueError if it lacks one of these arguments.
    """
    names = inspect.signature(loss_fn).parameters
    for name in ("labels", "logits", "weights"):
        if name not in names:
            raise ValueError(f"Argument {name} not found in loss_fn.")

    def loss(labels: Any, logits: Any, weights: Any = None) -> tuple[Any, Any]:
        found = loss_fn(labels=labels, logits=logits, weights=weights)
        return found if isinstance(found, tuple) else (found, found)

    return loss
