"""Distributions with skewness and tail weight."""

from __future__ import annotations

import functools
from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.affine_scalar import AffineScalar
from flowstone.contrib.distributions.bijectors.chain import Chain
from flowstone.contrib.distributions.bijectors.sinh_arcsinh import SinhArcsinh as Function
from flowstone.contrib.distributions.scalar_distribution import own_parameters
from flowstone.contrib.distributions.transformed_distribution import TransformedDistribution

__all__ = ["SinhArcsinh"]


class SinhArcsinh(TransformedDistribution):
    """loc + scale F(z) 2 / F₀(2), where F(z) = sinh((arcsinh(z) + skewness) tailweight), F₀ without skewness.

    Args:
        loc: floating.
        scale: floating.
        skewness: positive to shift mass to the right; 0 by default.
        tailweight: above 1 for heavier tails than z has; 1 by default.
        distribution: of z, of numbers; standard normal by default.
        validate_args, allow_nan_stats, name: see `Distribution`.
    """

    def __init__(
        self,
        loc: Any,
        scale: Any,
        skewness: Any = None,
        tailweight: Any = None,
        distribution: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "SinhArcsinh",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            self._loc = tf.convert_to_tensor(loc, name="loc")
            dtype = self._loc.dtype
            self._scale = tf.convert_to_tensor(scale, name="scale", dtype=dtype)
            self._tailweight = tf.convert_to_tensor(
                1.0 if tailweight is None else tailweight, dtype, "tailweight"
            )
            self._skewness = tf.convert_to_tensor(0.0 if skewness is None else skewness, dtype, "skewness")
            if distribution is None:
                distribution = tf.distributions.Normal(tf.zeros([], dtype=dtype), tf.ones([], dtype=dtype))
            function = Function(self._skewness, self._tailweight)
            plain = Function(tf.zeros_like(self._skewness), self._tailweight)
            scale = self._scale * 2.0 / plain.forward(tf.constant(2.0, dtype=dtype))
            bijector = Chain(
                [AffineScalar(shift=self._loc, scale=scale, validate_args=validate_args), function]
            )
        super().__init__(
            distribution=distribution,
            bijector=bijector,
            batch_shape=_broadcast_shape(self._loc, self._scale, self._tailweight, self._skewness),
            validate_args=validate_args,
            name=scope,
        )
        self._allow_nan_stats = allow_nan_stats
        self._initial_parameters = own_parameters(parameters)

    @property
    def loc(self) -> Any:
        """The location."""
        return self._loc

    @property
    def scale(self) -> Any:
        """The scale."""
        return self._scale

    @property
    def tailweight(self) -> Any:
        """The tail weight."""
        return self._tailweight

    @property
    def skewness(self) -> Any:
        """The skewness."""
        return self._skewness


def _broadcast_shape(*tensors: Any) -> Any:
    """The shape that tensors broadcast to: a TensorShape, or an int32 vector if it is not known."""
    static = functools.reduce(tf.broadcast_static_shape, [each.shape for each in tensors])
    if static.is_fully_defined():
        return static
    return functools.reduce(tf.broadcast_dynamic_shape, [tf.shape(each) for each in tensors])
