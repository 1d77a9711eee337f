"""Mixtures of the members of a batch."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.distribution_util import gen_new_seed
from flowstone.distributions import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A distribution that draws from one of the k members in the last dimension of a batch.

    Args:
        mixture_distribution: a `Categorical` of k classes with whole draws.
        components_distribution: one whose batch is [..., k].
        validate_args: whether steps check shapes that are not known.
        allow_nan_stats, name: see `Distribution`.

    ValueError if the shapes are known not to match, or the classes are not whole numbers.
    """

    def __init__(
        self,
        mixture_distribution: Any,
        components_distribution: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MixtureSameFamily",
    ) -> None:
        parameters = dict(locals())
        self._mixture, self._components = mixture_distribution, components_distribution
        if not tf.as_dtype(mixture_distribution.dtype).is_integer:
            raise ValueError(
                f"`mixture_distribution.dtype` ({mixture_distribution.dtype}) is not over integers"
            )
        if mixture_distribution.event_shape.ndims not in (None, 0):
            raise ValueError("`mixture_distribution` must have scalar `event_dim`s")
        self._check_shapes()
        with tf.name_scope(name) as scope:
            pass
        super().__init__(
            dtype=components_distribution.dtype,
            reparameterization_type=tf.distributions.NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            name=scope,
        )

    def _check_shapes(self) -> None:
        own, members = self._mixture.batch_shape, self._components.batch_shape.with_rank_at_least(1)
        scalar = own.ndims == 0
        if own.ndims is not None and not scalar and members.ndims is not None:
            if not own.is_compatible_with(members[:-1]):
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({own}) is not compatible with "
                    f"`components_distribution.batch_shape` ({members})."
                )
        count, classes = members[-1].value, self._mixture.logits.shape.with_rank_at_least(1)[-1].value
        if None not in (count, classes) and count != classes:
            raise ValueError(
                f"`mixture_distribution components` ({classes}) does not equal {count} of the batch."
            )

    @property
    def mixture_distribution(self) -> Any:
        """The distribution that chooses a member."""
        return self._mixture

    @property
    def components_distribution(self) -> Any:
        """The distribution whose members are mixed."""
        return self._components

    def _batch_shape(self) -> Any:
        shape = self.components_distribution.batch_shape
        return shape if shape.ndims is None else shape[:-1]

    def _batch_shape_tensor(self) -> Any:
        return self.components_distribution.batch_shape_tensor()[:-1]

    def _event_shape(self) -> Any:
        return self.components_distribution.event_shape

    def _event_shape_tensor(self) -> Any:
        return self.components_distribution.event_shape_tensor()

    def _event_rank(self) -> int:
        rank: int = self.event_shape.with_rank_at_least(0).ndims or 0
        return rank

    def _padded(self, value: Any) -> Any:
        """The value [..., 1, *event_shape], which broadcasts with the members."""
        return tf.expand_dims(value, -1 - self._event_rank())

    def _shares(self) -> Any:
        """The shares [..., k, 1 for each dimension of an event]."""
        probs = self.mixture_distribution.probs
        for _ in range(self._event_rank()):
            probs = probs[..., None]
        return probs

    def _log_shares(self) -> Any:
        return tf.nn.log_softmax(self.mixture_distribution.logits)

    def _log_prob(self, value: Any) -> Any:
        own = self.components_distribution.log_prob(self._padded(value))
        return tf.reduce_logsumexp(own + self._log_shares(), axis=-1)

    def _log_cdf(self, value: Any) -> Any:
        own = self.components_distribution.log_cdf(self._padded(value))
        return tf.reduce_logsumexp(own + self._log_shares(), axis=-1)

    def _mean(self) -> Any:
        axis = -1 - self._event_rank()
        return tf.reduce_sum(self._shares() * self.components_distribution.mean(), axis=axis)

    def _variance(self) -> Any:
        axis, shares = -1 - self._event_rank(), self._shares()
        means = self.components_distribution.mean()
        within = tf.reduce_sum(shares * self.components_distribution.variance(), axis=axis)
        distances = tf.squared_difference(means, self._padded(self._mean()))
        return within + tf.reduce_sum(shares * distances, axis=axis)

    def _covariance(self) -> Any:
        if self._event_rank() != 1:
            raise NotImplementedError("covariance is not implemented for events that are no vectors")
        shares = self._shares()[..., None]
        within = tf.reduce_sum(shares * self.components_distribution.covariance(), axis=-3)
        distances = self.components_distribution.mean() - self._padded(self._mean())
        products = distances[..., None] * distances[..., None, :]
        return within + tf.reduce_sum(shares * products, axis=-3)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        x = self.components_distribution.sample(n, seed=seed)
        size = self.mixture_distribution.logits.shape[-1].value
        size = tf.shape(self.mixture_distribution.logits)[-1] if size is None else size
        sizes = self.batch_shape_tensor()
        choice = self.mixture_distribution
        if choice.batch_shape.ndims == 0:
            draws = choice.sample(tf.concat([[n], sizes], axis=0), seed=gen_new_seed(seed, "mixture"))
        else:
            draws = choice.sample(n, seed=gen_new_seed(seed, "mixture"))
        mask = tf.one_hot(draws, size, dtype=x.dtype)
        for _ in range(self._event_rank()):
            mask = mask[..., None]
        return tf.reduce_sum(x * mask, axis=-1 - self._event_rank())
