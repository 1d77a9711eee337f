"""The relaxed categorical distribution of vectors that are nearly one-hot."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.distributions.bijectors.exp import Exp
from flowstone.contrib.distributions.onehot_categorical import last_size
from flowstone.contrib.distributions.scalar_distribution import own_parameters, positive
from flowstone.contrib.distributions.transformed_distribution import TransformedDistribution
from flowstone.distributions import Distribution
from flowstone.distributions.parameters import logits_and_probs

__all__ = ["ExpRelaxedOneHotCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedOneHotCategorical(Distribution):
    """The logarithms of draws from `RelaxedOneHotCategorical`.

    A draw is log_softmax((logits + Gumbel noise) / temperature).

    Args:
        temperature: positive, floating.
        logits: unnormalised log probabilities [..., k], floating.
        probs: probabilities, in their place.
        dtype: of draws; that of the logits by default.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "ExpRelaxedOneHotCategorical",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._logits, self._probs = logits_and_probs(logits, probs, True, validate_args)
            dtype = tf.as_dtype(dtype or self._logits.dtype)
            temperature = tf.cast(temperature, self._logits.dtype)
            self._temperature = positive(temperature, validate_args, "temperature")
            self._temperature_column = tf.reshape(temperature, [-1, 1], name="temperature_2d")
            self._event_size = last_size(self._logits)
        super().__init__(
            dtype=dtype,
            reparameterization_type=tf.distributions.FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            graph_parents=[self._logits, self._probs, self._temperature],
            name=scope,
        )

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self._temperature

    @property
    def logits(self) -> Any:
        """The unnormalised log probabilities [*batch_shape, k]."""
        return self._logits

    @property
    def probs(self) -> Any:
        """The probabilities [*batch_shape, k]."""
        return self._probs

    @property
    def event_size(self) -> Any:
        """The number of classes, an int32 scalar."""
        return self._event_size

    def _batch_shape(self) -> Any:
        return self.logits.shape[:-1]

    def _batch_shape_tensor(self) -> Any:
        return tf.shape(self.logits)[:-1]

    def _event_shape(self) -> Any:
        return self.logits.shape.with_rank_at_least(1)[-1:]

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self.logits)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        if self._temperature.shape.ndims != 0:
            return self._sample_of_batch(n, seed)
        sizes = tf.concat([[n], tf.shape(self.logits)], axis=0)
        logits = self.logits * tf.ones(sizes, dtype=self.dtype)
        logits = tf.reshape(logits, [-1, self.event_size])
        uniform = self._uniform(tf.shape(logits), seed)
        noisy = tf.div(-tf.log(-tf.log(uniform)) + logits, self._temperature_column)
        return tf.reshape(tf.nn.log_softmax(noisy), sizes)

    def _sample_of_batch(self, n: Any, seed: int | None) -> Any:
        temperature = self._temperature[..., None]
        logits = self.logits * tf.ones_like(temperature)
        uniform = self._uniform(tf.concat([[n], tf.shape(logits)], axis=0), seed)
        return tf.nn.log_softmax((logits - tf.log(-tf.log(uniform))) / temperature)

    def _uniform(self, sizes: Any, seed: int | None) -> Any:
        tiny = np.finfo(self.dtype.as_numpy_dtype).tiny
        return tf.random_uniform(sizes, minval=tiny, maxval=1.0, dtype=self.dtype, seed=seed)

    def _log_prob(self, value: Any) -> Any:
        size = tf.cast(self.event_size, self.dtype)
        normalization = tf.lgamma(size) + (size - 1.0) * tf.log(self.temperature)
        terms = tf.nn.log_softmax(self.logits - value * self._temperature[..., None])
        return normalization + tf.reduce_sum(terms, axis=-1)


class RelaxedOneHotCategorical(TransformedDistribution):
    """Shares [k] that near a draw of `OneHotCategorical` as the temperature falls, with gradients.

    Maddison et al., "The concrete distribution", 2017; Jang et al., "Categorical reparameterization with
    Gumbel-softmax", 2017. The arguments are those of `ExpRelaxedOneHotCategorical`.
    """

    def __init__(
        self,
        temperature: Any,
        logits: Any = None,
        probs: Any = None,
        dtype: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "RelaxedOneHotCategorical",
    ) -> None:
        parameters = dict(locals())
        base = ExpRelaxedOneHotCategorical(
            temperature,
            logits=logits,
            probs=probs,
            dtype=dtype,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
        )
        super().__init__(base, Exp(validate_args=validate_args), name=name)
        self._initial_parameters = own_parameters(parameters)
