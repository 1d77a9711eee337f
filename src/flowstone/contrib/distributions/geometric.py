"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.distributions.scalar_distribution import BroadcastDistribution
from flowstone.distributions.parameters import logits_and_probs

__all__ = ["Geometric"]


class Geometric(BroadcastDistribution):
    """The probability (1 - p)^k p of k failures before the first success.

    Args:
        logits: the log odds of success, floating.
        probs: p, in their place, in (0, 1].
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Geometric",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._logits, self._probs = logits_and_probs(logits, probs, False, validate_args)
            if validate_args:
                with tf.control_dependencies([tf.assert_positive(self._probs)]):
                    self._probs = tf.identity(self._probs)
        self._set_up(parameters, scope, [self._probs], is_reparameterized=False)

    @property
    def logits(self) -> Any:
        """The log odds of success."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probability of success."""
        return self._probs

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        least = np.finfo(self.dtype.as_numpy_dtype).tiny
        uniform = tf.random_uniform(self._sizes(n), minval=least, maxval=1.0, seed=seed, dtype=self.dtype)
        return tf.floor(tf.log(uniform) / tf.log1p(-self.probs))

    def _cdf(self, value: Any) -> Any:
        value = self._whole(value) if self.validate_args else tf.floor(value)
        value = value + tf.zeros_like(self.probs)
        below = value < 0.0
        inside = tf.where(below, tf.zeros_like(value), value)
        return tf.where(below, tf.zeros_like(value), -tf.expm1((1.0 + inside) * tf.log1p(-self.probs)))

    def _log_prob(self, value: Any) -> Any:
        value = self._whole(value) if self.validate_args else tf.floor(value)
        value = value + tf.zeros_like(self.probs)
        probs = self.probs + tf.zeros_like(value)
        # A sure success leaves 0 log 0, which is 0 here.
        safe = tf.where(tf.equal(value, 0.0), tf.zeros_like(probs), probs)
        return value * tf.log1p(-safe) + tf.log(probs)

    def _entropy(self) -> Any:
        probs = self.probs
        if self.validate_args:
            with tf.control_dependencies([tf.assert_less(probs, tf.ones([], probs.dtype))]):
                probs = tf.identity(probs)
        return (-tf.log(probs) * probs - tf.log1p(-probs) * (1.0 - probs)) / probs

    def _mean(self) -> Any:
        return tf.exp(-self.logits)

    def _variance(self) -> Any:
        return self._mean() / self.probs

    def _mode(self) -> Any:
        return tf.zeros(self.batch_shape_tensor(), dtype=self.dtype)
