"""Vectors of independent exponentially distributed numbers, scaled by a linear operator."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.affine_linear_operator import AffineLinearOperator
from flowstone.contrib.distributions.distribution_util import is_diagonal_scale, shapes_from_loc_and_scale
from flowstone.contrib.distributions.scalar_distribution import own_parameters
from flowstone.contrib.distributions.transformed_distribution import TransformedDistribution

__all__ = ["VectorExponentialLinearOperator"]


class VectorExponentialLinearOperator(TransformedDistribution):
    """The vectors scale x + loc for x [k] of independent exponentially distributed numbers of rate 1.

    Args:
        loc: [..., k], floating; zeros by default.
        scale: a LinearOperator [..., k, k].
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError without a scale, TypeError if it is not floating.
    """

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "VectorExponentialLinearOperator",
    ) -> None:
        parameters = dict(locals())
        if scale is None:
            raise ValueError("Missing required `scale` parameter.")
        if not scale.dtype.is_floating:
            raise TypeError("`scale` parameter must have floating-point dtype.")
        with tf.name_scope(name) as scope:
            loc = None if loc is None else tf.convert_to_tensor(loc, name="loc", dtype=scale.dtype)
            batch_shape, event_shape = shapes_from_loc_and_scale(loc, scale)
        base = tf.distributions.Exponential(tf.ones([], dtype=scale.dtype))
        base._allow_nan_stats = allow_nan_stats
        super().__init__(
            distribution=base,
            bijector=AffineLinearOperator(shift=loc, scale=scale, validate_args=validate_args),
            batch_shape=batch_shape,
            event_shape=event_shape,
            validate_args=validate_args,
            name=scope,
        )
        self._initial_parameters = own_parameters(parameters)

    @property
    def loc(self) -> Any:
        """The location, or None for zeros."""
        return self.bijector.shift

    @property
    def scale(self) -> Any:
        """The scale, a LinearOperator."""
        return self.bijector.scale

    def _zeros(self) -> Any:
        shape = tf.concat([self.batch_shape_tensor(), self.event_shape_tensor()], axis=0)
        return tf.zeros(shape, dtype=self.dtype)

    def _mean(self) -> Any:
        mean = tf.squeeze(self.scale.matmul((1.0 + self._zeros())[..., None]), -1)
        return mean if self.loc is None else mean + self.loc

    def _mode(self) -> Any:
        return self._zeros() if self.loc is None else self.loc + self._zeros()

    def _covariance(self) -> Any:
        if is_diagonal_scale(self.scale):
            return 1.0 * tf.matrix_diag(tf.square(self.scale.diag_part()))
        return 1.0 * self.scale.matmul(self.scale.to_dense(), adjoint_arg=True)

    def _variance(self) -> Any:
        if is_diagonal_scale(self.scale):
            return 1.0 * tf.square(self.scale.diag_part())
        return tf.matrix_diag_part(self._covariance())

    def _stddev(self) -> Any:
        if is_diagonal_scale(self.scale):
            return 1.0 * tf.abs(self.scale.diag_part())
        return tf.sqrt(self._variance())
