"""Distributions of one value."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.distributions import Distribution

__all__ = ["Deterministic", "VectorDeterministic"]


class _BaseDeterministic(Distribution):
    """The distribution of the one value `loc`, or of what lies within tolerances of it."""

    _event_rank = 0

    def _set_up(self, loc: Any, atol: Any, rtol: Any, parameters: dict[str, Any], name: str) -> None:
        validate_args = parameters["validate_args"]
        with tf.name_scope(name) as scope:
            self._loc = tf.convert_to_tensor(loc, name="loc")
            self._atol, self._rtol = self._tolerance(atol, "atol"), self._tolerance(rtol, "rtol")
            self._slack = self._atol + self._rtol * tf.abs(self._loc)
            if validate_args:
                checks = [
                    tf.assert_non_negative(self._slack, message="Arguments 'atol' and 'rtol' must be >= 0")
                ]
                with tf.control_dependencies(checks):
                    self._slack = tf.identity(self._slack)
        super().__init__(
            dtype=self._loc.dtype,
            reparameterization_type=tf.distributions.NOT_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=parameters["allow_nan_stats"],
            parameters=parameters,
            graph_parents=[self._loc],
            name=scope,
        )

    def _tolerance(self, value: Any, name: str) -> Any:
        return tf.convert_to_tensor(0 if value is None else value, dtype=self._loc.dtype, name=name)

    @property
    def loc(self) -> Any:
        """The value."""
        return self._loc

    @property
    def atol(self) -> Any:
        """The absolute tolerance."""
        return self._atol

    @property
    def rtol(self) -> Any:
        """The relative tolerance."""
        return self._rtol

    def _batch_shape(self) -> Any:
        shape = self.loc.shape
        return shape if not self._event_rank or shape.ndims is None else shape[:-1]

    def _batch_shape_tensor(self) -> Any:
        shape = tf.shape(self.loc)
        return shape[:-1] if self._event_rank else shape

    def _event_shape(self) -> Any:
        return tf.TensorShape(
            [] if not self._event_rank else [self.loc.shape.with_rank_at_least(1)[-1].value]
        )

    def _event_shape_tensor(self) -> Any:
        return tf.shape(self.loc)[-1:] if self._event_rank else tf.constant([], dtype=tf.int32)

    def _prob(self, value: Any) -> Any:
        is_near = tf.abs(value - self.loc) <= self._slack
        if self._event_rank:
            is_near = tf.reduce_all(is_near, axis=-1)
        return tf.cast(is_near, self.dtype)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return tf.broadcast_to(self.loc, tf.concat([[n], tf.shape(self.loc)], axis=0))

    def _entropy(self) -> Any:
        return tf.zeros(self.batch_shape_tensor(), dtype=self.dtype)

    def _mean(self) -> Any:
        return tf.identity(self.loc)

    def _variance(self) -> Any:
        return tf.zeros_like(self.loc)

    def _mode(self) -> Any:
        return self.mean()


class Deterministic(_BaseDeterministic):
    """A number that is always `loc`: what lies within atol + rtol |loc| of it has the probability 1.

    Args:
        loc: the numbers; their shape is the batch.
        atol: the absolute tolerance, 0 by default.
        rtol: the relative one, 0 by default.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self,
        loc: Any,
        atol: Any = None,
        rtol: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "Deterministic",
    ) -> None:
        self._set_up(loc, atol, rtol, dict(locals()), name)

    def _cdf(self, value: Any) -> Any:
        return tf.cast(value >= self.loc - self._slack, self.dtype)


class VectorDeterministic(_BaseDeterministic):
    """A vector that is always `loc` [..., k]: see `Deterministic`."""

    _event_rank = 1

    def __init__(
        self,
        loc: Any,
        atol: Any = None,
        rtol: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorDeterministic",
    ) -> None:
        self._set_up(loc, atol, rtol, dict(locals()), name)
        if self.loc.shape.ndims == 0:
            raise ValueError("Argument loc must have rank at least 1")
