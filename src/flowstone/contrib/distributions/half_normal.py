"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.scalar_distribution import BroadcastDistribution, positive

__all__ = ["HalfNormal"]


class HalfNormal(BroadcastDistribution):
    """The distribution of |x| for normal x with mean 0.

    Args:
        scale: the standard deviation of x, positive, floating.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "HalfNormal"
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._scale = positive(scale, validate_args, "scale")
        self._set_up(parameters, scope, [self._scale])

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> Any:
        return cls._all_of_shape(sample_shape, "scale")

    @property
    def scale(self) -> Any:
        """The scale."""
        return self._scale

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return tf.abs(tf.random_normal(self._sizes(n), dtype=self.dtype, seed=seed) * self.scale)

    def _prob(self, value: Any) -> Any:
        height = math.sqrt(2.0 / math.pi) / self.scale
        density = height * tf.exp(-0.5 * tf.square(value / self.scale))
        return density * tf.cast(value >= 0.0, self.dtype)

    def _cdf(self, value: Any) -> Any:
        return tf.erf(tf.nn.relu(value) / self.scale / math.sqrt(2.0))

    def _entropy(self) -> Any:
        return 0.5 * tf.log(math.pi * tf.square(self.scale) / 2.0) + 0.5

    def _mean(self) -> Any:
        return self.scale * math.sqrt(2.0) / math.sqrt(math.pi)

    def _quantile(self, value: Any) -> Any:
        return math.sqrt(2.0) * self.scale * tf.math.erfinv(value)

    def _mode(self) -> Any:
        return tf.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _variance(self) -> Any:
        return tf.square(self.scale) * (1.0 - 2.0 / math.pi)
