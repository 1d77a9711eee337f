"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.distribution_util import gen_new_seed
from flowstone.contrib.distributions.scalar_distribution import BroadcastDistribution, positive
from flowstone.distributions.parameters import logits_and_probs

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BroadcastDistribution):
    """The probability Γ(k + n) / (k! Γ(n)) p^k (1 - p)^n of k successes before n failures.

    Args:
        total_count: n, positive, floating; need not be whole.
        logits: the log odds of success, floating.
        probs: p, in their place.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self,
        total_count: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NegativeBinomial",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._logits, self._probs = logits_and_probs(logits, probs, False, validate_args)
            self._total_count = positive(total_count, validate_args, "total_count", self._probs.dtype)
        self._set_up(parameters, scope, [self._total_count, self._probs], is_reparameterized=False)

    @property
    def logits(self) -> Any:
        """The log odds of success."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probability of success."""
        return self._probs

    @property
    def total_count(self) -> Any:
        """The number of failures."""
        return self._total_count

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        # A Poisson distribution whose rate is drawn from a gamma distribution.
        rate = tf.random_gamma([n], self.total_count, beta=tf.exp(-self.logits), dtype=self.dtype, seed=seed)
        other = gen_new_seed(seed, "negative_binom")
        return tf.random_poisson(rate, [], dtype=self.dtype, seed=other)

    def _cdf(self, value: Any) -> Any:
        value = self._whole(value)
        return tf.betainc(self.total_count, 1.0 + value, tf.sigmoid(-self.logits))

    def _log_prob(self, value: Any) -> Any:
        value = self._whole(value)
        n = self.total_count
        likelihood = n * tf.log_sigmoid(-self.logits) + value * tf.log_sigmoid(self.logits)
        return likelihood + tf.lgamma(n + value) - tf.lgamma(1.0 + value) - tf.lgamma(n)

    def _mean(self) -> Any:
        return self.total_count * tf.exp(self.logits)

    def _mode(self) -> Any:
        count = self.total_count
        adjusted = tf.where(count > 1.0, count - 1.0, tf.zeros_like(count))
        return tf.floor(adjusted * tf.exp(self.logits))

    def _variance(self) -> Any:
        return self._mean() / tf.sigmoid(-self.logits)
