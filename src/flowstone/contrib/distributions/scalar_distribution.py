"""What distributions share whose batch is the shape that their parameters broadcast to."""

from __future__ import annotations

import functools
import math
from typing import Any

import flowstone as tf
from flowstone.distributions import Distribution

__all__ = ["BroadcastDistribution", "own_parameters", "positive"]


class BroadcastDistribution(Distribution):
    """A distribution of numbers; of vectors if `_event` is overridden."""

    _batch_parameters: tuple[Any, ...]

    def _set_up(
        self,
        parameters: dict[str, Any],
        scope: str,
        batch_parameters: Any,
        is_reparameterized: bool = True,
        dtype: Any = None,
    ) -> None:
        """The base's constructor, called last in a subclass's: `parameters` are its arguments."""
        self._batch_parameters = tuple(batch_parameters)
        kinds = tf.distributions
        kind = kinds.FULLY_REPARAMETERIZED if is_reparameterized else kinds.NOT_REPARAMETERIZED
        super().__init__(
            dtype=dtype or self._batch_parameters[0].dtype.base_dtype,
            reparameterization_type=kind,
            validate_args=parameters["validate_args"],
            allow_nan_stats=parameters["allow_nan_stats"],
            parameters=parameters,
            graph_parents=list(self._batch_parameters),
            name=scope,
        )
        self._batch_shape()

    def _batch_shape(self) -> Any:
        shapes = [each.shape for each in self._batch_parameters]
        return functools.reduce(tf.broadcast_static_shape, shapes)

    def _batch_shape_tensor(self) -> Any:
        shapes = [tf.shape(each) for each in self._batch_parameters]
        return functools.reduce(tf.broadcast_dynamic_shape, shapes)

    def _event_shape(self) -> Any:
        return tf.TensorShape([])

    def _event_shape_tensor(self) -> Any:
        return tf.constant([], dtype=tf.int32)

    def _ones(self) -> Any:
        return tf.ones(self.batch_shape_tensor(), dtype=self.dtype)

    def _sizes(self, n: Any) -> Any:
        """[n, *batch_shape]"""
        return tf.concat([[n], self.batch_shape_tensor()], axis=0)

    def _where_defined(self, condition: Any, value: Any, message: str) -> Any:
        """The statistic where it is defined: elsewhere NaN, or an error of the step."""
        if self.allow_nan_stats:
            nan = tf.fill(tf.shape(value), tf.constant(math.nan, dtype=self.dtype))
            return tf.where(tf.broadcast_to(condition, tf.shape(value)), value, nan)
        with tf.control_dependencies([tf.Assert(tf.reduce_all(condition), [message])]):
            return tf.identity(value)

    def _whole(self, value: Any) -> Any:
        """The value, checked to be whole and not negative if arguments are validated."""
        if not self.validate_args:
            return value
        checks = [tf.assert_non_negative(value, message="Values must not be negative.")]
        if not value.dtype.is_integer:
            message = "Values must not have fractions."
            checks.append(tf.assert_equal(value, tf.floor(value), message=message))
        with tf.control_dependencies(checks):
            return tf.identity(value)


def positive(value: Any, validate_args: bool, name: str, dtype: Any = None) -> Any:
    """The value as a tensor of this name, checked to be positive if arguments are validated."""
    value = tf.convert_to_tensor(value, dtype=dtype, name=name)
    with tf.control_dependencies([tf.assert_positive(value)] if validate_args else []):
        return tf.identity(value, name=name)


def own_parameters(values: dict[str, Any]) -> dict[str, Any]:
    """The arguments among the local names at the start of a constructor."""
    return {name: value for name, value in values.items() if name != "self" and not name.startswith("__")}
