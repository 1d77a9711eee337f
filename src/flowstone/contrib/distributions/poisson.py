"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.scalar_distribution import BroadcastDistribution, positive

__all__ = ["Poisson"]


class Poisson(BroadcastDistribution):
    """The probability rate^k exp(-rate) / k! of a count k.

    Args:
        rate: positive, floating.
        log_rate: its logarithm, in its place.
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError unless one of both is given. TypeError if it is not floating.
    """

    def __init__(
        self,
        rate: Any = None,
        log_rate: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Poisson",
    ) -> None:
        parameters = dict(locals())
        if (rate is None) == (log_rate is None):
            raise ValueError("Must specify exactly one of `rate` and `log_rate`.")
        with tf.name_scope(name) as scope:
            if log_rate is None:
                rate = tf.convert_to_tensor(rate, name="rate")
                self._rate = positive(rate, validate_args, "rate")
            else:
                log_rate = tf.convert_to_tensor(log_rate, name="log_rate")
                self._rate = tf.exp(log_rate)
            if not self._rate.dtype.is_floating:
                raise TypeError(f"rate must be floating, but its type is {self._rate.dtype.name}.")
            self._log_rate = tf.log(rate, name="log_rate") if log_rate is None else log_rate
        self._set_up(parameters, scope, [self._rate], is_reparameterized=False)

    @property
    def rate(self) -> Any:
        """The mean."""
        return self._rate

    @property
    def log_rate(self) -> Any:
        """The logarithm of the mean."""
        return self._log_rate

    def _log_prob(self, value: Any) -> Any:
        value = self._whole(value)
        return value * self.log_rate - tf.lgamma(1.0 + value) - self.rate

    def _cdf(self, value: Any) -> Any:
        return tf.igammac(1.0 + self._whole(value), self.rate)

    def _mean(self) -> Any:
        return tf.identity(self.rate)

    def _variance(self) -> Any:
        return tf.identity(self.rate)

    def _mode(self) -> Any:
        return tf.floor(self.rate)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return tf.random_poisson(self.rate, [n], dtype=self.dtype, seed=seed)
