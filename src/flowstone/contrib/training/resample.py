"""Batches whose examples are repeated or left out at random, so that each is there at a given rate.

How often an example is there is drawn from a Poisson distribution of its rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.training.optimizers.moving_averages import assign_moving_average

__all__ = ["resample_at_rate", "weighted_resample"]


def _repeat_range(counts: Any, name: str | None = None) -> Any:
    """Every index i of the int32 vector `counts`, ``counts[i]`` times: [2, 0, 1] gives [0, 0, 2]."""
    with tf.name_scope(name, "repeat_range", [counts]):
        counts = tf.convert_to_tensor(counts)
        ends = tf.cumsum(counts)
        positions = tf.range(tf.reduce_sum(counts))
        return tf.searchsorted(ends, positions, side="right", out_type=tf.int32)


def resample_at_rate(
    inputs: Sequence[Any], rates: Any, scope: str | None = None, seed: int | None = None,
    back_prop: bool = False,
) -> list[Any]:  # fmt: skip
    """The examples of a batch, each repeated at its rate, in their order.

    `inputs`: tensors [batch, ...]; `rates`: the mean number of times, float [batch]. `back_prop`: whether
    gradients flow through how often an example is there; they are zero, so it changes nothing. Returns
    tensors [new batch, ...], where the new batch's size is random.
    """
    with tf.name_scope(scope, default_name="resample_at_rate", values=[*inputs, rates]):
        rates = tf.convert_to_tensor(rates, name="rates")
        counts = tf.cast(tf.random_poisson(rates, (), rates.dtype, seed=seed), tf.int32)
        indices = _repeat_range(counts)
        if not back_prop:
            indices = tf.stop_gradient(indices)
        return [tf.gather(each, indices) for each in inputs]


def weighted_resample(
    inputs: Sequence[Any],
    weights: Any,
    overall_rate: Any,
    scope: str | None = None,
    mean_decay: float = 0.999,
    seed: int | None = None,
) -> tuple[list[Any], Any]:
    """The examples of a batch, repeated in proportion to their weights.

    `inputs`: tensors [batch, ...]; `weights`: float [batch]; `overall_rate`: how many examples come out for
    one that comes in. The weights are relative to their mean over the batches so far, a moving average
    with `mean_decay`. Returns (tensors [new batch, ...], the rates that they were drawn at,
    float [new batch]).
    """
    with tf.name_scope(scope, default_name="weighted_resample", values=[*inputs, weights]):
        weights = tf.convert_to_tensor(weights)
        with tf.variable_scope("estimate_mean", values=[weights]):
            estimated = tf.get_local_variable("estimated_mean", initializer=tf.cast(0, weights.dtype))
            mean = assign_moving_average(estimated, tf.reduce_mean(weights), mean_decay)
        rates = weights * overall_rate / mean
        results = resample_at_rate([rates, *inputs], rates, scope="resample", seed=seed)
        return results[1:], results[0]
