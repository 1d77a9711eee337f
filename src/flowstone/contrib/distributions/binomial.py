"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.scalar_distribution import BroadcastDistribution
from flowstone.distributions.parameters import logits_and_probs, with_counts

__all__ = ["Binomial"]


class Binomial(BroadcastDistribution):
    """The probability of k successes in n trials: n! / (k! (n - k)!) p^k (1 - p)^(n - k).

    Args:
        total_count: n, floating, whole.
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
        name: str = "Binomial",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._total_count = tf.convert_to_tensor(total_count, name="total_count")
            if validate_args:
                self._total_count = with_counts(self._total_count)
            self._logits, self._probs = logits_and_probs(logits, probs, False, validate_args)
        self._set_up(
            parameters,
            scope,
            [self._total_count, self._probs],
            is_reparameterized=False,
            dtype=self._probs.dtype,
        )

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
        """The number of trials."""
        return self._total_count

    def _log_prob(self, value: Any) -> Any:
        counts = self._counts(value)
        n = self.total_count
        likelihood = counts * tf.log(self.probs) + (n - counts) * tf.log1p(-self.probs)
        return likelihood + tf.lgamma(1.0 + n) - tf.lgamma(1.0 + counts) - tf.lgamma(1.0 + n - counts)

    def _cdf(self, value: Any) -> Any:
        n, probs = self.total_count + tf.zeros_like(value), self.probs + tf.zeros_like(value)
        counts = tf.floor(self._counts(value)) + tf.zeros_like(n + probs)
        is_last = counts >= n
        # The regularised beta function is not defined for the last count, whose probability is 1.
        inside = tf.where(is_last, tf.zeros_like(counts), counts)
        cdf = tf.betainc(n - inside, 1.0 + inside, 1.0 - probs + tf.zeros_like(inside))
        return tf.where(is_last, tf.ones_like(cdf), cdf)

    def _counts(self, value: Any) -> Any:
        value = self._whole(value)
        if not self.validate_args:
            return value
        message = "total_count is not greater than or equal to counts"
        with tf.control_dependencies([tf.assert_less_equal(value, self.total_count, message=message)]):
            return tf.identity(value)

    def _mean(self) -> Any:
        return self.total_count * self.probs

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self.probs)

    def _mode(self) -> Any:
        return tf.floor((1.0 + self.total_count) * self.probs)
