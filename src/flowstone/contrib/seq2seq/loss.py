"""The loss of sequences of logits, weighted by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = ["sequence_loss"]


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """The weighted cross-entropy of sequences.

    Args:
        logits: [batch, time, classes] floats.
        targets: [batch, time] integers.
        weights: [batch, time] floats; 0 where a sequence has ended.
        average_across_timesteps: whether to divide by the sum of the weights of all steps.
        average_across_batch: whether to divide by the sum of the weights of the batch.
        sum_over_timesteps: whether to divide the sum over the steps by the number of counted targets.
        sum_over_batch: likewise for the batch.
        softmax_loss_function: function of (labels, logits) used in place of the cross-entropy.

    Returns a scalar, or [batch], [time] or [batch, time] for what is not reduced. ValueError for other ranks,
    and for averaging and summing over the same dimension.
    """
    _check(logits, targets, weights)
    for dimension, averages, sums in (
        ("timesteps", average_across_timesteps, sum_over_timesteps),
        ("batch", average_across_batch, sum_over_batch),
    ):
        if averages and sums:
            raise ValueError(
                f"average_across_{dimension} and sum_over_{dimension} cannot be set to True at the same time."
            )
    with tf.name_scope(name, "sequence_loss", [logits, targets, weights]):
        classes = tf.shape(logits)[2]
        flat_logits, flat_targets = tf.reshape(logits, [-1, classes]), tf.reshape(targets, [-1])
        if softmax_loss_function is None:
            crossent = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=flat_targets, logits=flat_logits)
        else:
            crossent = softmax_loss_function(labels=flat_targets, logits=flat_logits)
        crossent *= tf.reshape(weights, [-1])
        return _reduced(
            crossent,
            logits,
            weights,
            (average_across_batch, average_across_timesteps),
            (sum_over_batch, sum_over_timesteps),
        )


def _reduced(
    crossent: Any, logits: Any, weights: Any, averages: tuple[bool, bool], sums: tuple[bool, bool]
) -> Any:
    if all(averages):
        return tf.div_no_nan(tf.reduce_sum(crossent), tf.reduce_sum(weights))
    if all(sums):
        counted = tf.cast(tf.count_nonzero(weights), crossent.dtype)
        return tf.div_no_nan(tf.reduce_sum(crossent), counted)
    crossent = tf.reshape(crossent, tf.shape(logits)[0:2])
    # As in TensorFlow, a mean over one dimension leaves the other as it is, even if that is to be summed.
    for reduced, is_mean in ((averages, True), (sums, False)):
        if any(reduced):
            axis = 0 if reduced[0] else 1
            total = tf.reduce_sum(crossent, axis=[axis])
            if is_mean:
                return tf.div_no_nan(total, tf.reduce_sum(weights, axis=[axis]))
            return tf.div_no_nan(total, tf.cast(tf.count_nonzero(weights, axis=axis), crossent.dtype))
    return crossent


def _check(logits: Any, targets: Any, weights: Any) -> None:
    if len(logits.get_shape()) != 3:
        raise ValueError("Logits must be a [batch_size x sequence_length x logits] tensor")
    if len(targets.get_shape()) != 2:
        raise ValueError("Targets must be a [batch_size x sequence_length] tensor")
    if len(weights.get_shape()) != 2:
        raise ValueError("Weights must be a [batch_size x sequence_length] tensor")
