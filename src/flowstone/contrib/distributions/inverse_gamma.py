"""The distribution of the inverses of gamma-distributed numbers."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.scalar_distribution import (
    BroadcastDistribution,
    own_parameters,
    positive,
)

__all__ = ["InverseGamma", "InverseGammaWithSoftplusConcentrationRate"]


class InverseGamma(BroadcastDistribution):
    """The density rate^a x^(-a - 1) exp(-rate / x) / Γ(a) of x > 0, with the concentration a.

    Args:
        concentration: a, positive, floating.
        rate: positive; both broadcast to the batch.
        validate_args, allow_nan_stats, name: see `Distribution`.

    The mean is not defined where a <= 1, the variance where a <= 2.
    """

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "InverseGamma",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._concentration = positive(concentration, validate_args, "concentration")
            self._rate = positive(rate, validate_args, "rate")
            tf.assert_same_float_dtype([self._concentration, self._rate])
        self._set_up(parameters, scope, [self._concentration, self._rate], is_reparameterized=False)

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> Any:
        return cls._all_of_shape(sample_shape, "concentration", "rate")

    @property
    def concentration(self) -> Any:
        """The concentration."""
        return self._concentration

    @property
    def rate(self) -> Any:
        """The rate."""
        return self._rate

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return 1.0 / tf.random_gamma([n], self.concentration, beta=self.rate, dtype=self.dtype, seed=seed)

    def _positive(self, value: Any) -> Any:
        return positive(value, True, "value") if self.validate_args else value

    def _log_prob(self, value: Any) -> Any:
        value = self._positive(value)
        a = self.concentration
        return -(1.0 + a) * tf.log(value) - self.rate / value - tf.lgamma(a) + a * tf.log(self.rate)

    def _cdf(self, value: Any) -> Any:
        return tf.igammac(self.concentration, self.rate / self._positive(value))

    def _entropy(self) -> Any:
        a = self.concentration
        return a + tf.log(self.rate) + tf.lgamma(a) - (1.0 + a) * tf.digamma(a)

    def _mean(self) -> Any:
        mean = self.rate / (self.concentration - 1.0)
        return self._where_defined(self.concentration > 1.0, mean, "mean undefined when concentration <= 1")

    def _variance(self) -> Any:
        a = self.concentration
        variance = tf.square(self.rate) / tf.square(a - 1.0) / (a - 2.0)
        return self._where_defined(a > 2.0, variance, "variance undefined when concentration <= 2")

    def _mode(self) -> Any:
        return self.rate / (1.0 + self.concentration)


class InverseGammaWithSoftplusConcentrationRate(InverseGamma):
    """`InverseGamma` of softplus(concentration) and softplus(rate)."""

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "InverseGammaWithSoftplusConcentrationRate",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            concentration = tf.nn.softplus(concentration, name="softplus_concentration")
            rate = tf.nn.softplus(rate, name="softplus_rate")
        super().__init__(concentration, rate, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)
