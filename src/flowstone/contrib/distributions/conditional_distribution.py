"""Distributions that depend on what a call gives beside the value."""

from __future__ import annotations

from functools import partial
from typing import Any

import flowstone as tf
from flowstone.distributions import Distribution

__all__ = ["ConditionalDistribution"]


class ConditionalDistribution(Distribution):
    """A distribution whose `_log_prob`, `_sample_n` and such take more keyword arguments: its condition.

    The arguments are `Distribution`'s.
    """

    def sample(
        self, sample_shape: Any = (), seed: int | None = None, name: str = "sample", **condition_kwargs: Any
    ) -> Any:
        """Independent draws under a condition."""
        return self._call_sample_n(sample_shape, seed, name, **condition_kwargs)

    def _under(self, condition: dict[str, Any], *methods: str) -> list[Any]:
        """The methods under the condition; as they are if no subclass defines them."""
        base = tf.distributions.Distribution
        own = {method: getattr(type(self), method) is not getattr(base, method) for method in methods}
        return [
            partial(getattr(self, method), **(condition if is_own else {})) for method, is_own in own.items()
        ]

    def log_prob(self, value: Any, name: str = "log_prob", **condition_kwargs: Any) -> Any:
        """The logarithm of the density under a condition."""
        first, second = self._under(condition_kwargs, "_log_prob", "_prob")
        return self._of_value(value, name, first, lambda x: tf.log(second(x)))

    def prob(self, value: Any, name: str = "prob", **condition_kwargs: Any) -> Any:
        """The density under a condition."""
        first, second = self._under(condition_kwargs, "_prob", "_log_prob")
        return self._of_value(value, name, first, lambda x: tf.exp(second(x)))

    def log_cdf(self, value: Any, name: str = "log_cdf", **condition_kwargs: Any) -> Any:
        """The logarithm of the probability of draws up to `value` under a condition."""
        first, second = self._under(condition_kwargs, "_log_cdf", "_cdf")
        return self._of_value(value, name, first, lambda x: tf.log(second(x)))

    def cdf(self, value: Any, name: str = "cdf", **condition_kwargs: Any) -> Any:
        """The probability of draws up to `value` under a condition."""
        first, second = self._under(condition_kwargs, "_cdf", "_log_cdf")
        return self._of_value(value, name, first, lambda x: tf.exp(second(x)))

    def log_survival_function(
        self, value: Any, name: str = "log_survival_function", **condition_kwargs: Any
    ) -> Any:
        """The logarithm of the probability of draws above `value` under a condition."""
        (first,) = self._under(condition_kwargs, "_log_survival_function")
        return self._of_value(value, name, first, lambda x: tf.log1p(-self.cdf(x, **condition_kwargs)))

    def survival_function(self, value: Any, name: str = "survival_function", **condition_kwargs: Any) -> Any:
        """The probability of draws above `value` under a condition."""
        (first,) = self._under(condition_kwargs, "_survival_function")
        return self._of_value(value, name, first, lambda x: 1.0 - self.cdf(x, **condition_kwargs))
