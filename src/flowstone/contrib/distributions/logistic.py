"""The logistic distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.distributions.scalar_distribution import BroadcastDistribution

__all__ = ["Logistic"]


class Logistic(BroadcastDistribution):
    """The cumulative distribution sigmoid((x - loc) / scale).

    Args:
        loc: the mean, floating.
        scale: positive; the standard deviation is scale π / √3.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Logistic",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            checks = [tf.assert_positive(scale)] if validate_args else []
            with tf.control_dependencies(checks):
                self._loc, self._scale = tf.identity(loc, name="loc"), tf.identity(scale, name="scale")
            tf.assert_same_float_dtype([self._loc, self._scale])
        self._set_up(parameters, scope, [self._loc, self._scale])

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> Any:
        return cls._all_of_shape(sample_shape, "loc", "scale")

    @property
    def loc(self) -> Any:
        """The location."""
        return self._loc

    @property
    def scale(self) -> Any:
        """The scale."""
        return self._scale

    def _z(self, value: Any) -> Any:
        return (value - self.loc) / self.scale

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        tiny = np.finfo(self.dtype.as_numpy_dtype).tiny
        uniform = tf.random_uniform(self._sizes(n), minval=tiny, maxval=1.0, dtype=self.dtype, seed=seed)
        return (tf.log(uniform) - tf.log1p(-1.0 * uniform)) * self.scale + self.loc

    def _log_prob(self, value: Any) -> Any:
        z = self._z(value)
        return -z - 2.0 * tf.nn.softplus(-z) - tf.log(self.scale)

    def _cdf(self, value: Any) -> Any:
        return tf.sigmoid(self._z(value))

    def _log_cdf(self, value: Any) -> Any:
        return -tf.nn.softplus(-self._z(value))

    def _survival_function(self, value: Any) -> Any:
        return tf.sigmoid(-self._z(value))

    def _log_survival_function(self, value: Any) -> Any:
        return -tf.nn.softplus(self._z(value))

    def _entropy(self) -> Any:
        return 2.0 + tf.log(self.scale * tf.ones_like(self.loc))

    def _mean(self) -> Any:
        return self.loc * tf.ones_like(self.scale)

    def _mode(self) -> Any:
        return self._mean()

    def _stddev(self) -> Any:
        return self.scale * tf.ones_like(self.loc) * math.pi / math.sqrt(3.0)
