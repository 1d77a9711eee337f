"""Kumaraswamy's distribution."""

from __future__ import annotations

import math
from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.kumaraswamy import Kumaraswamy as Function
from flowstone.contrib.distributions.scalar_distribution import own_parameters
from flowstone.contrib.distributions.transformed_distribution import TransformedDistribution

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The density a b x^(a - 1) (1 - x^a)^(b - 1) of x in (0, 1).

    Args:
        concentration1: a, positive, floating; 1 by default.
        concentration0: b, positive, floating; 1 by default.
        validate_args, allow_nan_stats, name: see `Distribution`.

    The mode is not defined unless a > 1 and b > 1.
    """

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Kumaraswamy",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            one = 1.0 if concentration1 is None else concentration1
            zero = 1.0 if concentration0 is None else concentration0
            concentration1 = tf.convert_to_tensor(one, name="concentration1")
            concentration0 = tf.convert_to_tensor(zero, name="concentration0")
            bijector = Function(concentration1, concentration0, validate_args=validate_args)
            shape = tf.broadcast_static_shape(concentration1.shape, concentration0.shape)
            batch: Any = shape
            if not shape.is_fully_defined():
                batch = tf.broadcast_dynamic_shape(tf.shape(concentration1), tf.shape(concentration0))
            dtype = concentration1.dtype
            base = tf.distributions.Uniform(tf.zeros([], dtype=dtype), tf.ones([], dtype=dtype))
        super().__init__(base, bijector, batch_shape=batch, validate_args=validate_args, name=scope)
        self._allow_nan_stats = allow_nan_stats
        self._initial_parameters = own_parameters(parameters)

    @property
    def concentration1(self) -> Any:
        """The concentration a."""
        return self.bijector.concentration1

    @property
    def concentration0(self) -> Any:
        """The concentration b."""
        return self.bijector.concentration0

    def _entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        return 1.0 - 1.0 / b + (1.0 - 1.0 / a) * self._harmonic(b) - tf.log(a) - tf.log(b)

    @staticmethod
    def _harmonic(x: Any) -> Any:
        """The harmonic number H_x."""
        return tf.digamma(x + 1.0) - tf.digamma(tf.ones([], x.dtype))

    def _moment(self, power: float) -> Any:
        """The expectation of x^power."""
        a, b = self.concentration1, self.concentration0
        first = 1.0 + power / a
        return tf.exp(tf.log(b) + tf.lgamma(first) + tf.lgamma(b) - tf.lgamma(first + b))

    def _mean(self) -> Any:
        return self._moment(1.0)

    def _variance(self) -> Any:
        return self._moment(2.0) - tf.square(self._moment(1.0))

    def _mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        mode = ((a - 1.0) / (a * b - 1.0)) ** (1.0 / a)
        is_defined = tf.logical_and(a > 1.0, b > 1.0)
        if not self.allow_nan_stats:
            message = "Mode undefined for concentrations <= 1."
            with tf.control_dependencies([tf.Assert(tf.reduce_all(is_defined), [message])]):
                return tf.identity(mode)
        return tf.where(is_defined, mode, tf.fill(tf.shape(mode), tf.constant(math.nan, dtype=self.dtype)))
