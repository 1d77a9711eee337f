"""Posteriors of normal distributions with a known scale."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = ["normal_conjugates_known_scale_posterior", "normal_conjugates_known_scale_predictive"]


def _posterior(prior: Any, scale: Any, s: Any, n: Any) -> Any:
    """The mean and the variance of the posterior of the mean."""
    if not isinstance(prior, tf.distributions.Normal):
        raise TypeError("Expected prior to be an instance of type Normal")
    if s.dtype != prior.dtype:
        raise TypeError(f"Observation sum s.dtype does not match prior dtype: {s.dtype} vs. {prior.dtype}")
    n = tf.cast(n, prior.dtype)
    prior_variance, variance = tf.square(prior.scale), tf.square(scale)
    posterior_variance = 1.0 / (1.0 / prior_variance + n / variance)
    return (prior.loc / prior_variance + s / variance) * posterior_variance, posterior_variance


def normal_conjugates_known_scale_posterior(prior: Any, scale: Any, s: Any, n: Any) -> Any:
    """The posterior `Normal` of the mean of n normal observations.

    Args:
        prior: the `Normal` of the mean before.
        scale: the observations' standard deviation.
        s: their sum, a tensor of the prior's type.
        n: how many there are.

    TypeError for another prior, or a sum of another type.
    """
    mean, variance = _posterior(prior, scale, s, n)
    return tf.distributions.Normal(loc=mean, scale=tf.sqrt(variance))


def normal_conjugates_known_scale_predictive(prior: Any, scale: Any, s: Any, n: Any) -> Any:
    """The `Normal` of the next observation after n; the arguments are as of the posterior."""
    mean, variance = _posterior(prior, scale, s, n)
    return tf.distributions.Normal(loc=mean, scale=tf.sqrt(variance + tf.square(scale)))
