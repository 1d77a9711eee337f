"""Numbers rounded up."""

from __future__ import annotations

import math
from typing import Any

import flowstone as tf
from flowstone.distributions import Distribution

__all__ = ["QuantizedDistribution"]


class QuantizedDistribution(Distribution):
    """⌈X⌉ of a number X: the probability of y is that of y - 1 < X <= y.

    Args:
        distribution: of X, with a `cdf`.
        low: the least value, which takes what is below it; a whole number, or None.
        high: the greatest value, which takes what is above `high` - 1; a whole number, or None.
        validate_args: whether steps check that bounds and values are whole, and low < high.
        name: the scope of its operations.
    """

    def __init__(
        self,
        distribution: Any,
        low: Any = None,
        high: Any = None,
        validate_args: bool = False,
        name: str = "QuantizedDistribution",
    ) -> None:
        parameters = dict(locals())
        self._dist = distribution
        dtype = distribution.dtype
        with tf.name_scope(name) as scope:
            self._low = None if low is None else tf.cast(tf.ceil(tf.convert_to_tensor(low, dtype)), dtype)
            self._high = None if high is None else tf.cast(tf.floor(tf.convert_to_tensor(high, dtype)), dtype)
            if validate_args:
                checks = [
                    tf.assert_equal(tf.floor(each), each, message="Bounds must be whole.")
                    for each in (
                        tf.convert_to_tensor(bound, dtype) for bound in (low, high) if bound is not None
                    )
                ]
                if self._low is not None and self._high is not None:
                    message = "low must be strictly less than high."
                    checks.append(tf.assert_less(self._low, self._high, message=message))
                with tf.control_dependencies(checks):
                    self._low = None if self._low is None else tf.identity(self._low)
                    self._high = None if self._high is None else tf.identity(self._high)
        super().__init__(
            dtype=dtype,
            reparameterization_type=tf.distributions.NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=distribution.allow_nan_stats,
            parameters=parameters,
            name=scope,
        )

    @property
    def distribution(self) -> Any:
        """The distribution of X."""
        return self._dist

    @property
    def low(self) -> Any:
        """The least value, or None."""
        return self._low

    @property
    def high(self) -> Any:
        """The greatest value, or None."""
        return self._high

    def _batch_shape(self) -> Any:
        return self.distribution.batch_shape

    def _batch_shape_tensor(self) -> Any:
        return self.distribution.batch_shape_tensor()

    def _event_shape(self) -> Any:
        return self.distribution.event_shape

    def _event_shape_tensor(self) -> Any:
        return self.distribution.event_shape_tensor()

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        y = tf.ceil(self.distribution.sample(sample_shape=n, seed=seed))
        y = y if self.low is None else tf.maximum(y, self.low)
        return y if self.high is None else tf.minimum(y, self.high)

    def _whole(self, value: Any) -> Any:
        if not self.validate_args:
            return value
        message = "value has non-integer components."
        with tf.control_dependencies([tf.assert_equal(value, tf.floor(value), message=message)]):
            return tf.identity(value)

    def _log_prob(self, value: Any) -> Any:
        """The difference of survival functions where they are smaller than the cumulative ones."""
        value = self._whole(value)
        try:
            log_survival, log_below = self._log_bounds("log_survival_function", value)
            log_cdf, log_cdf_below = self._log_bounds("log_cdf", value)
        except NotImplementedError:
            return tf.log(self._prob(value))
        by_survival = log_survival < log_cdf
        big = tf.where(by_survival, log_below, log_cdf)
        small = tf.where(by_survival, log_survival, log_cdf_below)
        return _log_difference(big, small)

    def _log_bounds(self, method: str, value: Any) -> Any:
        return getattr(self, f"_{method}")(value), getattr(self, f"_{method}")(value - 1.0)

    def _prob(self, value: Any) -> Any:
        value = self._whole(value)
        try:
            survival, below = self._survival_function(value), self._survival_function(value - 1.0)
        except NotImplementedError:
            return self._cdf(value) - self._cdf(value - 1.0)
        cdf, cdf_below = self._cdf(value), self._cdf(value - 1.0)
        return tf.where(survival < cdf, below - survival, cdf - cdf_below)

    def _bounded(self, value: Any, result: Any, below: float, above: float) -> Any:
        """The result, with constants below the least value and from the greatest one on."""
        j = tf.floor(value) + tf.zeros_like(result)
        if self.low is not None:
            result = tf.where(j < self.low, tf.fill(tf.shape(result), tf.constant(below, self.dtype)), result)
        if self.high is not None:
            result = tf.where(
                j >= self.high, tf.fill(tf.shape(result), tf.constant(above, self.dtype)), result
            )
        return result

    def _log_cdf(self, value: Any) -> Any:
        value = self._whole(value)
        return self._bounded(value, self.distribution.log_cdf(tf.floor(value)), -math.inf, 0.0)

    def _cdf(self, value: Any) -> Any:
        value = self._whole(value)
        return self._bounded(value, self.distribution.cdf(tf.floor(value)), 0.0, 1.0)

    def _log_survival_function(self, value: Any) -> Any:
        value = self._whole(value)
        result = self.distribution.log_survival_function(tf.floor(value))
        return self._bounded(value, result, 0.0, -math.inf)

    def _survival_function(self, value: Any) -> Any:
        value = self._whole(value)
        return self._bounded(value, self.distribution.survival_function(tf.floor(value)), 1.0, 0.0)


def _log_difference(big: Any, small: Any) -> Any:
    """log(exp(big) - exp(small)), -inf for both -inf."""
    is_nothing = tf.is_inf(big)
    safe = tf.where(is_nothing, tf.zeros_like(big), big)
    result = safe + tf.log1p(-tf.exp(small - safe))
    return tf.where(is_nothing, big, result)
