"""Expectations by samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flowstone as tf

__all__ = ["expectation", "expectation_importance_sampler", "expectation_importance_sampler_logspace"]


def expectation(
    f: Callable[[Any], Any],
    samples: Any,
    log_prob: Callable[[Any], Any] | None = None,
    use_reparametrization: bool = True,
    axis: Any = 0,
    keep_dims: bool = False,
    name: str | None = None,
) -> Any:
    """The mean of f(samples), with gradients by the parameters of the samples' distribution.

    Args:
        f: the function.
        samples: draws, in the first dimension.
        log_prob: of the distribution; for draws whose gradients do not flow, by which theirs are found.
        use_reparametrization: whether gradients flow through the draws.
        axis: the dimensions of the mean.
        keep_dims: whether they stay, of size 1.
        name: the scope of its operations, ``expectation`` by default.

    ValueError if `log_prob` is needed but not callable.
    """
    with tf.name_scope(name or "expectation"):
        if not callable(f):
            raise ValueError("`f` must be a callable function.")
        if use_reparametrization:
            return tf.reduce_mean(f(samples), axis=axis, keepdims=keep_dims)
        if not callable(log_prob):
            raise ValueError("`log_prob` must be a callable function.")
        x = tf.stop_gradient(samples)
        log, value = log_prob(x), f(x)
        # The second term is 0, but its gradient is that of the probabilities.
        value = value + tf.stop_gradient(value) * (log - tf.stop_gradient(log))
        return tf.reduce_mean(value, axis=axis, keepdims=keep_dims)


def draws(distribution: Any, z: Any, n: Any, seed: Any) -> Any:
    """The draws z, or n new ones. ValueError unless one of both is given."""
    if (n is None) == (z is None):
        raise ValueError(f'Must specify exactly one of arguments "n" and "z".  Found: n = {n}, z = {z}')
    return distribution.sample(n, seed=seed) if z is None else tf.convert_to_tensor(z, name="z")


def expectation_importance_sampler(
    f: Callable[[Any], Any],
    log_p: Callable[[Any], Any],
    sampling_dist_q: Any,
    z: Any = None,
    n: int | None = None,
    seed: int | None = None,
    name: str = "expectation_importance_sampler",
) -> Any:
    """The mean of f(z) p(z) / q(z) over draws z of q.

    Args:
        f: of draws; of either sign.
        log_p: the logarithm of p.
        sampling_dist_q: q.
        z: draws, in the first dimension.
        n: how many are drawn, in their place.
        seed: of the draws.
        name: the scope of its operations.

    ValueError unless one of z and n is given.
    """
    with tf.name_scope(name):
        z = draws(sampling_dist_q, z, n, seed)
        log_weights = log_p(z) - sampling_dist_q.log_prob(z)
        largest = tf.stop_gradient(tf.reduce_max(log_weights, axis=0))
        return tf.exp(largest) * tf.reduce_mean(f(z) * tf.exp(log_weights - largest), axis=0)


def expectation_importance_sampler_logspace(
    log_f: Callable[[Any], Any],
    log_p: Callable[[Any], Any],
    sampling_dist_q: Any,
    z: Any = None,
    n: int | None = None,
    seed: int | None = None,
    name: str = "expectation_importance_sampler_logspace",
) -> Any:
    """The logarithm of the mean of f(z) p(z) / q(z) over draws z of q, by the logarithm of f."""
    with tf.name_scope(name):
        z = draws(sampling_dist_q, z, n, seed)
        return log_mean_exp(log_f(z) + log_p(z) - sampling_dist_q.log_prob(z))


def log_mean_exp(values: Any, axis: int = 0) -> Any:
    """The logarithm of the mean of exp(values) along an axis."""
    count = tf.cast(tf.shape(values)[axis], values.dtype)
    return tf.reduce_logsumexp(values, axis=axis) - tf.log(count)
