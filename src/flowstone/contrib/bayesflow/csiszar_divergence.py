"""Csiszár's f-divergences, by logarithms of ratios of densities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flowstone as tf
from flowstone.contrib.bayesflow.monte_carlo import expectation, log_mean_exp

__all__ = [
    "amari_alpha",
    "arithmetic_geometric",
    "chi_square",
    "csiszar_vimco",
    "dual_csiszar_function",
    "jeffreys",
    "jensen_shannon",
    "kl_forward",
    "kl_reverse",
    "log1p_abs",
    "modified_gan",
    "monte_carlo_csiszar_f_divergence",
    "pearson",
    "squared_hellinger",
    "symmetrized_csiszar_function",
    "t_power",
    "total_variation",
    "triangular",
]


# The functions are of logarithms: f(u) for u = exp(logu). Those that are self-normalised add a multiple of
# u - 1, so that f and its slope are 0 at u = 1.


def amari_alpha(logu: Any, alpha: float = 1.0, self_normalized: bool = False, name: str | None = None) -> Any:
    """Amari's f: -log u for alpha = 0, u log u for 1, else (u^alpha - 1) / (alpha (alpha - 1)).

    TypeError unless alpha is a number.
    """
    with tf.name_scope(name or "amari_alpha"):
        logu = tf.convert_to_tensor(logu, name="logu")
        if not isinstance(alpha, (int, float)):
            raise TypeError("`alpha` must be a known number.")
        if alpha == 0.0:
            f = -logu
        elif alpha == 1.0:
            f = tf.exp(logu) * logu
        else:
            f = tf.expm1(alpha * logu) / (alpha * (alpha - 1.0))
        if not self_normalized:
            return f
        slope = -1.0 if alpha == 1.0 else -1.0 / (alpha - 1.0)
        return f + slope * tf.expm1(logu)


def kl_reverse(logu: Any, self_normalized: bool = False, name: str | None = None) -> Any:
    """-log u, whose divergence is KL(q || p)."""
    with tf.name_scope(name or "kl_reverse"):
        logu = tf.convert_to_tensor(logu, name="logu")
        return amari_alpha(logu, alpha=0.0, self_normalized=self_normalized)


def kl_forward(logu: Any, self_normalized: bool = False, name: str | None = None) -> Any:
    """u log u, whose divergence is KL(p || q)."""
    with tf.name_scope(name or "kl_forward"):
        logu = tf.convert_to_tensor(logu, name="logu")
        return amari_alpha(logu, alpha=1.0, self_normalized=self_normalized)


def jensen_shannon(logu: Any, self_normalized: bool = False, name: str | None = None) -> Any:
    """u log u - (1 + u) log(1 + u), and (1 + u) log 2 if self-normalised."""
    with tf.name_scope(name or "jensen_shannon"):
        logu = tf.convert_to_tensor(logu, name="logu")
        total = tf.nn.softplus(logu)
        if self_normalized:
            total = total - math.log(2.0)
        return tf.exp(logu) * logu - (1.0 + tf.exp(logu)) * total


def arithmetic_geometric(logu: Any, self_normalized: bool = False, name: str | None = None) -> Any:
    """(1 + u) log((1 + u) / √u), and -(1 + u) log 2 if self-normalised."""
    with tf.name_scope(name or "arithmetic_geometric"):
        logu = tf.convert_to_tensor(logu, name="logu")
        total = tf.nn.softplus(logu) - 0.5 * logu
        if self_normalized:
            total = total - math.log(2.0)
        return (1.0 + tf.exp(logu)) * total


def total_variation(logu: Any, name: str | None = None) -> Any:
    """|u - 1| / 2."""
    with tf.name_scope(name or "total_variation"):
        logu = tf.convert_to_tensor(logu, name="logu")
        return 0.5 * tf.abs(tf.expm1(logu))


def pearson(logu: Any, name: str | None = None) -> Any:
    """(u - 1)²."""
    with tf.name_scope(name or "pearson"):
        logu = tf.convert_to_tensor(logu, name="logu")
        return tf.square(tf.expm1(logu))


def squared_hellinger(logu: Any, name: str | None = None) -> Any:
    """(√u - 1)²."""
    with tf.name_scope(name or "squared_hellinger"):
        logu = tf.convert_to_tensor(logu, name="logu")
        return tf.square(tf.expm1(0.5 * logu))


def triangular(logu: Any, name: str | None = None) -> Any:
    """(u - 1)² / (1 + u)."""
    with tf.name_scope(name or "triangular"):
        logu = tf.convert_to_tensor(logu, name="logu")
        return tf.square(tf.expm1(logu)) / (1.0 + tf.exp(logu))


def log1p_abs(logu: Any, name: str | None = None) -> Any:
    """u^sign(u - 1) - 1."""
    with tf.name_scope(name or "log1p_abs"):
        logu = tf.convert_to_tensor(logu, name="logu")
        return tf.expm1(tf.abs(logu))


def jeffreys(logu: Any, name: str | None = None) -> Any:
    """(u - 1) log(u) / 2."""
    with tf.name_scope(name or "jeffreys"):
        logu = tf.convert_to_tensor(logu, name="logu")
        return 0.5 * tf.expm1(logu) * logu


def chi_square(logu: Any, name: str | None = None) -> Any:
    """u² - 1."""
    with tf.name_scope(name or "chi_square"):
        logu = tf.convert_to_tensor(logu, name="logu")
        return tf.expm1(2.0 * logu)


def t_power(logu: Any, t: float, self_normalized: bool = False, name: str | None = None) -> Any:
    """s (u^t - 1), and -s t (u - 1) if self-normalised, with s = -1 for 0 < t < 1, else 1."""
    with tf.name_scope(name or "t_power"):
        logu = tf.convert_to_tensor(logu, name="logu")
        f = tf.expm1(t * logu)
        if self_normalized:
            f = f - t * tf.expm1(logu)
        return -f if 0.0 < t < 1.0 else f


def modified_gan(logu: Any, self_normalized: bool = False, name: str | None = None) -> Any:
    """log(1 + u) - log u, and (u - 1) / 2 if self-normalised."""
    with tf.name_scope(name or "modified_gan"):
        logu = tf.convert_to_tensor(logu, name="logu")
        f = tf.nn.softplus(logu) - logu
        return f + 0.5 * tf.expm1(logu) if self_normalized else f


def dual_csiszar_function(logu: Any, csiszar_function: Callable[[Any], Any], name: str | None = None) -> Any:
    """u f(1 / u): the function of the divergence with its arguments exchanged."""
    with tf.name_scope(name or "dual_csiszar_function"):
        logu = tf.convert_to_tensor(logu, name="logu")
        return tf.exp(logu) * csiszar_function(-logu)


def symmetrized_csiszar_function(
    logu: Any, csiszar_function: Callable[[Any], Any], name: str | None = None
) -> Any:
    """(f(u) + u f(1 / u)) / 2: the function of the mean of the divergences in both directions."""
    with tf.name_scope(name or "symmetrized_csiszar_function"):
        logu = tf.convert_to_tensor(logu, name="logu")
        return 0.5 * (csiszar_function(logu) + dual_csiszar_function(logu, csiszar_function))


def monte_carlo_csiszar_f_divergence(
    f: Callable[[Any], Any],
    p_log_prob: Callable[[Any], Any],
    q: Any,
    num_draws: int,
    use_reparametrization: bool | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """The mean of f(log p(x) - log q(x)) over draws x of q.

    Args:
        f: of the logarithm of p(x) / q(x).
        p_log_prob: the logarithm of p.
        q: a distribution.
        num_draws: how many draws.
        use_reparametrization: whether gradients flow through the draws; by default if q's can.
        seed: of the draws.
        name: the scope of its operations.

    TypeError if `p_log_prob` is not callable.
    """
    with tf.name_scope(name or "monte_carlo_csiszar_f_divergence"):
        if use_reparametrization is None:
            use_reparametrization = q.reparameterization_type == tf.distributions.FULLY_REPARAMETERIZED
        if not callable(p_log_prob):
            raise TypeError("`p_log_prob` must be a Python `callable` function.")
        return expectation(
            f=lambda x: f(p_log_prob(x) - q.log_prob(x)),
            samples=q.sample(num_draws, seed=seed),
            log_prob=q.log_prob,
            use_reparametrization=use_reparametrization,
        )


def csiszar_vimco(
    f: Callable[[Any], Any],
    p_log_prob: Callable[[Any], Any],
    q: Any,
    num_draws: int,
    num_batch_draws: int = 1,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """f of the mean of p(x) / q(x) over draws, with gradients of little variance for any q.

    The gradient of q's logarithm at a draw is weighted by what the draw adds to f over the geometric mean of
    the others (Mnih and Rezende, "Variational inference for Monte Carlo objectives", 2016).

    Args:
        f, p_log_prob, q, seed, name: as of `monte_carlo_csiszar_f_divergence`.
        num_draws: how many draws the inner mean is of, at least 2. ValueError for fewer.
        num_batch_draws: how many of these means are averaged.
    """
    with tf.name_scope(name or "csiszar_vimco"):
        if num_draws < 2:
            raise ValueError("Must specify num_draws > 1.")
        x = tf.stop_gradient(q.sample([num_draws, num_batch_draws], seed=seed))
        log_q = q.log_prob(x)
        logu = p_log_prob(x) - log_q
        f_mean = f(log_mean_exp(logu))
        # For each draw the mean with the geometric mean of the others in its place.
        others = (tf.reduce_sum(logu, axis=0) - logu) / (num_draws - 1.0)
        largest = tf.reduce_max(logu, axis=0)
        rest = tf.exp(log_mean_exp(logu) - largest) * num_draws - tf.exp(logu - largest)
        replaced = tf.log(tf.maximum(rest, 0.0) + tf.exp(others - largest)) + largest - math.log(num_draws)
        advantage = tf.stop_gradient(f_mean - f(replaced))
        weighted = tf.reduce_sum(log_q * advantage, axis=0)
        return tf.reduce_mean(f_mean + weighted - tf.stop_gradient(weighted), axis=0)
