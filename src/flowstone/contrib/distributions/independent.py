"""Dimensions of a batch as dimensions of an event."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.scalar_distribution import own_parameters
from flowstone.distributions import Distribution, RegisterKL
from flowstone.framework.tensors.node import static_value

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last dimensions of the batch are dimensions of an event: the logarithms add up.

    Args:
        distribution: the one of which it is made.
        reinterpreted_batch_ndims: how many dimensions; by default all but the first.
        validate_args: see `Distribution`.
        name: the scope of its operations; ``Independent`` and the distribution's by default.
        reduce_batch_ndims: TensorFlow 1.4's word for `reinterpreted_batch_ndims`.

    ValueError if the batch is known to have fewer.
    """

    def __init__(
        self,
        distribution: Any,
        reinterpreted_batch_ndims: Any = None,
        validate_args: bool = False,
        name: str | None = None,
        reduce_batch_ndims: Any = None,
    ) -> None:
        parameters = own_parameters(dict(locals()))
        if reduce_batch_ndims is None:
            del parameters["reduce_batch_ndims"]
        else:
            reinterpreted_batch_ndims = reduce_batch_ndims
        with tf.name_scope(name or "Independent" + distribution.name) as scope:
            self._count = self._count_of(distribution, reinterpreted_batch_ndims, validate_args)
        self._distribution = distribution
        super().__init__(
            dtype=distribution.dtype,
            reparameterization_type=distribution.reparameterization_type,
            validate_args=validate_args,
            allow_nan_stats=distribution.allow_nan_stats,
            parameters=parameters,
            name=scope,
        )

    @staticmethod
    def _count_of(distribution: Any, count: Any, validate_args: bool) -> Any:
        """How many dimensions: a number, or a tensor whose value is not known."""
        rank = distribution.batch_shape.ndims
        if count is None:
            if rank is not None:
                return max(0, rank - 1)
            return tf.maximum(0, tf.size(distribution.batch_shape_tensor()) - 1)
        known = static_value(tf.convert_to_tensor(count, dtype=tf.int32, name="reinterpreted_batch_ndims"))
        if known is None:
            return tf.convert_to_tensor(count, dtype=tf.int32)
        message = "reinterpreted_batch_ndims({}) cannot exceed distribution.batch_ndims({})"
        if rank is not None and int(known) > rank:
            raise ValueError(message.format(int(known), rank))
        return int(known)

    @property
    def distribution(self) -> Any:
        """The distribution of which it is made."""
        return self._distribution

    @property
    def reinterpreted_batch_ndims(self) -> Any:
        """How many dimensions of the batch became an event's."""
        return self._count

    @property
    def reduce_batch_ndims(self) -> Any:
        """How many dimensions of the batch became an event's."""
        return self._count

    def _batch_shape(self) -> Any:
        shape = self.distribution.batch_shape
        if shape.ndims is None or not isinstance(self._count, int):
            return tf.TensorShape(None)
        return shape[: shape.ndims - self._count]

    def _event_shape(self) -> Any:
        shape = self.distribution.batch_shape
        if shape.ndims is None or not isinstance(self._count, int):
            return tf.TensorShape(None)
        return shape[shape.ndims - self._count :].concatenate(self.distribution.event_shape)

    def _batch_shape_tensor(self) -> Any:
        shape = self.distribution.batch_shape_tensor()
        return shape[: tf.size(shape) - self._count]

    def _event_shape_tensor(self) -> Any:
        shape = self.distribution.batch_shape_tensor()
        rest = shape[tf.size(shape) - self._count :]
        return tf.concat([rest, self.distribution.event_shape_tensor()], axis=0)

    def _sum(self, value: Any) -> Any:
        is_known = isinstance(self._count, int)
        axes = list(range(-self._count, 0)) if is_known else tf.range(-self._count, 0)
        return tf.reduce_sum(value, axis=axes)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return self.distribution.sample(sample_shape=n, seed=seed)

    def _log_prob(self, value: Any) -> Any:
        return self._sum(self.distribution.log_prob(value))

    def _entropy(self) -> Any:
        return self._sum(self.distribution.entropy())

    def _mean(self) -> Any:
        return self.distribution.mean()

    def _variance(self) -> Any:
        return self.distribution.variance()

    def _stddev(self) -> Any:
        return self.distribution.stddev()

    def _mode(self) -> Any:
        return self.distribution.mode()


@RegisterKL(Independent, Independent)
def _kl_independent(a: Independent, b: Independent, name: str = "kl_independent") -> Any:
    """The sum of the divergences of the distributions, over the dimensions that became an event's."""
    if a.event_shape.is_fully_defined() and b.event_shape.is_fully_defined():
        if a.event_shape != b.event_shape:
            raise ValueError("Event shapes do not match.")
        if a.distribution.event_shape != b.distribution.event_shape:
            raise NotImplementedError("KL between Independents with different event shapes not supported.")
    else:
        raise NotImplementedError(
            "KL between Independents whose event shapes are not known is not supported."
        )
    with tf.name_scope(name or "kl_independent"):
        count = a.event_shape.ndims - a.distribution.event_shape.ndims
        divergence = tf.distributions.kl_divergence(a.distribution, b.distribution)
        return tf.reduce_sum(divergence, axis=list(range(-count, 0)))
