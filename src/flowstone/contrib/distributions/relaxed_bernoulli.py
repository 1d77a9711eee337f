"""The relaxed Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.sigmoid import Sigmoid
from flowstone.contrib.distributions.logistic import Logistic
from flowstone.contrib.distributions.scalar_distribution import own_parameters, positive
from flowstone.contrib.distributions.transformed_distribution import TransformedDistribution
from flowstone.distributions.parameters import logits_and_probs

__all__ = ["RelaxedBernoulli"]


class RelaxedBernoulli(TransformedDistribution):
    """A number in (0, 1) that nears a draw of `Bernoulli` as the temperature falls, with gradients.

    Maddison et al., "The concrete distribution", 2017; Jang et al., "Categorical reparameterization with
    Gumbel-softmax", 2017.

    Args:
        temperature: positive, floating.
        logits: the log odds of 1.
        probs: the probability of 1, in their place.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedBernoulli",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._temperature = positive(temperature, validate_args, "temperature")
            self._logits, self._probs = logits_and_probs(logits, probs, False, validate_args)
            base = Logistic(
                self._logits / self._temperature,
                1.0 / self._temperature,
                validate_args=validate_args,
                allow_nan_stats=allow_nan_stats,
                name=name + "/Logistic",
            )
        super().__init__(base, Sigmoid(validate_args=validate_args), validate_args=validate_args, name=scope)
        self._initial_parameters = own_parameters(parameters)

    @classmethod
    def _param_shapes(cls, sample_shape: Any) -> Any:
        return cls._all_of_shape(sample_shape, "logits")

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self._temperature

    @property
    def logits(self) -> Any:
        """The log odds of 1."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probability of 1."""
        return self._probs
