"""Distributions whose parameters are made positive first."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.scalar_distribution import own_parameters
from flowstone.distributions import Bernoulli, Beta, Exponential, Gamma, Laplace, Normal, StudentT

__all__ = [
    "BernoulliWithSigmoidProbs",
    "BetaWithSoftplusConcentration",
    "ExponentialWithSoftplusRate",
    "GammaWithSoftplusConcentrationRate",
    "LaplaceWithSoftplusScale",
    "NormalWithSoftplusScale",
    "StudentTWithAbsDfSoftplusScale",
]


class BernoulliWithSigmoidProbs(Bernoulli):
    """`Bernoulli` of the probabilities sigmoid(logits)."""

    def __init__(
        self,
        logits: Any = None,
        dtype: Any = tf.int32,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "BernoulliWithSigmoidProbs",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            probs = tf.sigmoid(logits, name="sigmoid_probs")
        super().__init__(
            probs=probs, dtype=dtype, validate_args=validate_args, allow_nan_stats=allow_nan_stats, name=scope
        )
        self._initial_parameters = own_parameters(parameters)


class BetaWithSoftplusConcentration(Beta):
    """`Beta` of softplus(concentration1) and softplus(concentration0)."""

    def __init__(
        self,
        concentration1: Any,
        concentration0: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "BetaWithSoftplusConcentration",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            concentration1 = tf.nn.softplus(concentration1, name="softplus_concentration1")
            concentration0 = tf.nn.softplus(concentration0, name="softplus_concentration0")
        super().__init__(concentration1, concentration0, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)


class ExponentialWithSoftplusRate(Exponential):
    """`Exponential` of softplus(rate)."""

    def __init__(
        self,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExponentialWithSoftplusRate",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            rate = tf.nn.softplus(rate, name="softplus_rate")
        super().__init__(rate, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)


class GammaWithSoftplusConcentrationRate(Gamma):
    """`Gamma` of softplus(concentration) and softplus(rate)."""

    def __init__(
        self,
        concentration: Any,
        rate: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "GammaWithSoftplusConcentrationRate",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            concentration = tf.nn.softplus(concentration, name="softplus_concentration")
            rate = tf.nn.softplus(rate, name="softplus_rate")
        super().__init__(concentration, rate, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)


class LaplaceWithSoftplusScale(Laplace):
    """`Laplace` of the scale softplus(scale)."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "LaplaceWithSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            scale = tf.nn.softplus(scale, name="softplus_scale")
        super().__init__(loc, scale, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)


class NormalWithSoftplusScale(Normal):
    """`Normal` of the scale softplus(scale)."""

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "NormalWithSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            scale = tf.nn.softplus(scale, name="softplus_scale")
        super().__init__(loc, scale, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)


class StudentTWithAbsDfSoftplusScale(StudentT):
    """`StudentT` of floor(|df|) degrees of freedom and the scale softplus(scale)."""

    def __init__(
        self,
        df: Any,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "StudentTWithAbsDfSoftplusScale",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            df = tf.floor(tf.abs(df))
            scale = tf.nn.softplus(scale, name="softplus_scale")
        super().__init__(df, loc, scale, validate_args, allow_nan_stats, scope)
        self._initial_parameters = own_parameters(parameters)
