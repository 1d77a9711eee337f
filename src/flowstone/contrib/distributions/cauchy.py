"""Cauchy's distribution."""

from __future__ import annotations

import math
from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.scalar_distribution import BroadcastDistribution, positive

__all__ = ["Cauchy"]


class Cauchy(BroadcastDistribution):
    """The density 1 / (π scale (1 + z²)) with z = (x - loc) / scale. It has no mean.

    Args:
        loc: the median, floating.
        scale: half of the width at half of the height, positive.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self,
        loc: Any,
        scale: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Cauchy",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._loc = tf.identity(tf.convert_to_tensor(loc, name="loc"), name="loc")
            self._scale = positive(scale, validate_args, "scale")
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
        return self._quantile(tf.random_uniform(self._sizes(n), dtype=self.dtype, seed=seed))

    def _log_prob(self, value: Any) -> Any:
        return -tf.log1p(tf.square(self._z(value))) - math.log(math.pi) - tf.log(self.scale)

    def _cdf(self, value: Any) -> Any:
        return tf.atan(self._z(value)) / math.pi + 0.5

    def _log_cdf(self, value: Any) -> Any:
        return tf.log1p(2.0 / math.pi * tf.atan(self._z(value))) - math.log(2.0)

    def _entropy(self) -> Any:
        return math.log(4.0 * math.pi) + tf.log(self.scale * tf.ones_like(self.loc))

    def _quantile(self, value: Any) -> Any:
        return self.loc + self.scale * tf.tan(math.pi * (value - 0.5))

    def _mode(self) -> Any:
        return self.loc * tf.ones_like(self.scale)

    def _mean(self) -> Any:
        return self._undefined("mean")

    def _stddev(self) -> Any:
        return self._undefined("stddev")

    def _undefined(self, what: str) -> Any:
        if not self.allow_nan_stats:
            raise ValueError(f"`{what}` is undefined for Cauchy distribution.")
        return tf.fill(self.batch_shape_tensor(), tf.constant(math.nan, dtype=self.dtype))
