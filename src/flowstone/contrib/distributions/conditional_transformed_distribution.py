"""Transformed distributions under conditions of the bijector and of the distribution."""

from __future__ import annotations

from typing import Any

from flowstone.contrib.distributions.conditional_distribution import ConditionalDistribution
from flowstone.contrib.distributions.transformed_distribution import TransformedDistribution

__all__ = ["ConditionalTransformedDistribution"]


class ConditionalTransformedDistribution(ConditionalDistribution, TransformedDistribution):
    """A `TransformedDistribution` whose calls take `bijector_kwargs` and `distribution_kwargs`.

    The arguments are `TransformedDistribution`'s.
    """

    def __init__(
        self,
        distribution: Any,
        bijector: Any = None,
        batch_shape: Any = None,
        event_shape: Any = None,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        TransformedDistribution.__init__(
            self, distribution, bijector, batch_shape, event_shape, validate_args, name
        )

    def sample(
        self, sample_shape: Any = (), seed: int | None = None, name: str = "sample", **condition_kwargs: Any
    ) -> Any:
        """Independent draws under the conditions `bijector_kwargs` and `distribution_kwargs`."""
        return self._transformed_sample(
            sample_shape,
            seed,
            name,
            condition_kwargs.get("bijector_kwargs") or {},
            condition_kwargs.get("distribution_kwargs") or {},
        )

    def quantile(self, value: Any, name: str = "quantile") -> Any:
        """The x such that `value` is the probability of draws up to x."""
        return TransformedDistribution.quantile(self, value, name)
