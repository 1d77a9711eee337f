"""A distribution with its batch in another shape."""

from __future__ import annotations

import math
from typing import Any

import flowstone as tf
from flowstone.distributions import Distribution
from flowstone.framework.tensors.node import static_value

__all__ = ["BatchReshape"]


class BatchReshape(Distribution):
    """A distribution with its batch in another shape of as many members.

    Args:
        distribution: the one of which it is made.
        batch_shape: the shape of the batch, a whole vector; one size may be -1.
        validate_args: whether steps check sizes that are not known.
        allow_nan_stats: see `Distribution`.
        name: the scope of its operations; ``BatchReshape`` and the distribution's by default.

    ValueError if the sizes are known not to match.
    """

    def __init__(
        self,
        distribution: Any,
        batch_shape: Any,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str | None = None,
    ) -> None:
        parameters = dict(locals())
        self._distribution = distribution
        with tf.name_scope(name or "BatchReshape" + distribution.name) as scope:
            if isinstance(batch_shape, tf.TensorShape):
                batch_shape = batch_shape.as_list()
            given = tf.convert_to_tensor(batch_shape, dtype=tf.int32, name="batch_shape")
            self._static_batch, self._batch = self._resolved(given, validate_args)
        super().__init__(
            dtype=distribution.dtype,
            reparameterization_type=distribution.reparameterization_type,
            validate_args=validate_args,
            allow_nan_stats=allow_nan_stats,
            parameters=parameters,
            name=scope,
        )

    def _resolved(self, given: Any, validate_args: bool) -> tuple[Any, Any]:
        """The shape of the batch as far as it is known, and as a tensor, both without -1."""
        if given.shape.ndims not in (None, 1):
            raise ValueError("`batch_shape_` must be a vector.")
        known, own = static_value(given), self.distribution.batch_shape
        if known is not None and None not in known.tolist():
            sizes = [int(size) for size in known]
            if sizes.count(-1) > 1 or min(sizes, default=0) < -1:
                raise ValueError("`batch_shape` elements must be >=-1, and only one may be -1.")
            if own.is_fully_defined():
                total: Any = own.num_elements()
                rest: Any = math.prod(size for size in sizes if size != -1)
                if -1 in sizes and rest and total % rest == 0:
                    sizes = [total // rest if size == -1 else size for size in sizes]
                if math.prod(sizes) != total:
                    raise ValueError(
                        f"`batch_shape` size ({math.prod(sizes)}) must match that of {own} ({total})."
                    )
                return tf.TensorShape(sizes), tf.constant(sizes, dtype=tf.int32)
            if -1 not in sizes:
                return tf.TensorShape(sizes), given
        total = tf.reduce_prod(self.distribution.batch_shape_tensor())
        rest = tf.maximum(tf.abs(tf.reduce_prod(given)), 1)
        batch = tf.where(given < 0, tf.fill(tf.shape(given), total // rest), given)
        if validate_args:
            message = "The batch's new shape has another count of members."
            with tf.control_dependencies([tf.assert_equal(tf.reduce_prod(batch), total, message=message)]):
                batch = tf.identity(batch)
        rank = given.shape[0].value if given.shape.ndims else None
        return tf.TensorShape(None if rank is None else [None] * rank), batch

    @property
    def distribution(self) -> Any:
        """The distribution of which it is made."""
        return self._distribution

    def _batch_shape(self) -> Any:
        return self._static_batch

    def _batch_shape_tensor(self) -> Any:
        return self._batch

    def _event_shape(self) -> Any:
        return self.distribution.event_shape

    def _event_shape_tensor(self) -> Any:
        return self.distribution.event_shape_tensor()

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        x = self.distribution.sample(sample_shape=n, seed=seed)
        return tf.reshape(x, tf.concat([[n], self._batch, self.event_shape_tensor()], axis=0))

    def _given_value(self, method: str, value: Any) -> Any:
        """A result [*sample_shape, *batch_shape] of a value [*sample_shape, *batch_shape, *event_shape]."""
        event, own = self.event_shape_tensor(), self.distribution.batch_shape_tensor()
        sizes = tf.shape(value)
        count = tf.size(sizes) - tf.size(self._batch) - tf.size(event)
        value = tf.broadcast_to(
            value,
            tf.broadcast_dynamic_shape(sizes, tf.concat([self._batch, event], axis=0)),
        )
        sample = tf.shape(value)[: tf.maximum(count, 0)]
        value = tf.reshape(value, tf.concat([sample, own, event], axis=0))
        result = getattr(self.distribution, method)(value)
        return tf.reshape(result, tf.concat([sample, self._batch], axis=0))

    def _log_prob(self, value: Any) -> Any:
        return self._given_value("log_prob", value)

    def _prob(self, value: Any) -> Any:
        return self._given_value("prob", value)

    def _log_cdf(self, value: Any) -> Any:
        return self._given_value("log_cdf", value)

    def _cdf(self, value: Any) -> Any:
        return self._given_value("cdf", value)

    def _log_survival_function(self, value: Any) -> Any:
        return self._given_value("log_survival_function", value)

    def _survival_function(self, value: Any) -> Any:
        return self._given_value("survival_function", value)

    def _statistic(self, method: str, event: Any = None) -> Any:
        event = self.event_shape_tensor() if event is None else event
        result = tf.reshape(getattr(self.distribution, method)(), tf.concat([self._batch, event], axis=0))
        return result

    def _entropy(self) -> Any:
        return self._statistic("entropy", [])

    def _mean(self) -> Any:
        return self._statistic("mean")

    def _mode(self) -> Any:
        return self._statistic("mode")

    def _stddev(self) -> Any:
        return self._statistic("stddev")

    def _variance(self) -> Any:
        return self._statistic("variance")

    def _covariance(self) -> Any:
        event = self.event_shape_tensor()
        return self._statistic("covariance", tf.concat([event, event], axis=0))
