"""Entropies and bounds by samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.bayesflow.monte_carlo import draws, log_mean_exp
from flowstone.contrib.bayesflow.variational_inference import ELBOForms

__all__ = ["elbo_ratio", "entropy_shannon", "renyi_alpha", "renyi_ratio"]


def elbo_ratio(
    log_p: Callable[[Any], Any],
    q: Any,
    z: Any = None,
    n: int | None = None,
    seed: int | None = None,
    form: Any = None,
    name: str = "elbo_ratio",
) -> Any:
    """The expectation under q of log p(z) - log q(z): a lower bound of log ∫p.

    Args:
        log_p: the logarithm of p, of draws.
        q: a distribution.
        z: draws of q, in the first dimension.
        n: how many are drawn, in their place.
        seed: of the draws.
        form: of `ELBOForms`: ``sample``, or ``analytic_entropy``; by default the latter where q has one.
        name: the scope of its operations.

    ValueError unless one of z and n is given, or for another form.
    """
    _check(form)
    with tf.name_scope(name):
        z = draws(q, z, n, seed)
        return tf.reduce_mean(log_p(z), axis=0) + entropy_shannon(q, z=z, form=form)


def _check(form: Any) -> None:
    if form not in (None, ELBOForms.default, ELBOForms.sample, ELBOForms.analytic_entropy):
        raise ValueError(f"ELBOForm not handled by this function: {form}")


def entropy_shannon(
    p: Any,
    z: Any = None,
    n: int | None = None,
    seed: int | None = None,
    form: Any = None,
    name: str = "entropy_shannon",
) -> Any:
    """The entropy of p, in nats; the mean of -log p(z) over draws for the form ``sample``.

    The arguments are `elbo_ratio`'s.
    """
    _check(form)
    with tf.name_scope(name):
        if form is not ELBOForms.sample:
            try:
                return p.entropy(name="entropy")
            except NotImplementedError:
                if form is ELBOForms.analytic_entropy:
                    raise
        return -tf.reduce_mean(p.log_prob(draws(p, z, n, seed)), axis=0)


def renyi_ratio(
    log_p: Callable[[Any], Any],
    q: Any,
    alpha: Any,
    z: Any = None,
    n: int | None = None,
    seed: int | None = None,
    name: str = "renyi_ratio",
) -> Any:
    """log E_q[(p(z) / q(z))^(1 - alpha)] / (1 - alpha), which nears `elbo_ratio` as alpha nears 1.

    Args:
        log_p, q, z, n, seed, name: as of `elbo_ratio`.
        alpha: a number that is not 1.

    Li and Turner, "Rényi divergence variational inference", 2016.
    """
    with tf.name_scope(name):
        z = draws(q, z, n, seed)
        alpha = tf.convert_to_tensor(alpha, dtype=q.dtype, name="alpha")
        return log_mean_exp((1.0 - alpha) * (log_p(z) - q.log_prob(z))) / (1.0 - alpha)


def renyi_alpha(
    step: Any, decay_time: Any, alpha_min: float, alpha_max: float = 0.99999, name: str = "renyi_alpha"
) -> Any:
    """An alpha for `renyi_ratio` that falls from `alpha_max` at step 0 to `alpha_min` at `decay_time`.

    It falls slowly at first: by (exp(step / decay_time) - 1) / (e - 1) of the way.
    """
    with tf.name_scope(name):
        progress = tf.cast(step, tf.float32) / tf.cast(decay_time, tf.float32)
        way = tf.expm1(tf.clip_by_value(progress, 0.0, 1.0)) / math.expm1(1.0)
        return alpha_max - (alpha_max - alpha_min) * way
