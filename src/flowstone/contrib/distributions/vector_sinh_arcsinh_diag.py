"""Vectors whose elements have skewness and tail weight."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.affine_linear_operator import AffineLinearOperator
from flowstone.contrib.distributions.bijectors.chain import Chain
from flowstone.contrib.distributions.bijectors.sinh_arcsinh import SinhArcsinh as Function
from flowstone.contrib.distributions.distribution_util import make_diag_scale, shapes_from_loc_and_scale
from flowstone.contrib.distributions.scalar_distribution import own_parameters
from flowstone.contrib.distributions.transformed_distribution import TransformedDistribution

__all__ = ["VectorSinhArcsinhDiag"]


class VectorSinhArcsinhDiag(TransformedDistribution):
    """loc + (c I + diag(d)) F(z) 2 / F₀(2) for vectors z [k]; see `SinhArcsinh`.

    Args:
        loc: [..., k], floating; zeros by default.
        scale_diag: d [..., k].
        scale_identity_multiplier: the number c; ones by default if there is no d either.
        skewness: [..., k] or a number; 0 by default.
        tailweight: [..., k] or a number; 1 by default.
        distribution: of the elements of z; standard normal by default.
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError if k cannot be told.
    """

    def __init__(
        self,
        loc: Any = None,
        scale_diag: Any = None,
        scale_identity_multiplier: Any = None,
        skewness: Any = None,
        tailweight: Any = None,
        distribution: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalLinearOperator",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            loc = None if loc is None else tf.convert_to_tensor(loc, name="loc")
            dtype = None if loc is None else loc.dtype
            self._tailweight = tf.convert_to_tensor(
                1.0 if tailweight is None else tailweight, dtype, "tailweight"
            )
            self._skewness = tf.convert_to_tensor(0.0 if skewness is None else skewness, dtype, "skewness")
            scale = make_diag_scale(loc, scale_diag, scale_identity_multiplier, validate_args=validate_args)
            batch_shape, event_shape = shapes_from_loc_and_scale(loc, scale)
            if distribution is None:
                zero = tf.zeros([], dtype=scale.dtype)
                distribution = tf.distributions.Normal(zero, tf.ones([], dtype=scale.dtype))
            function = Function(self._skewness, self._tailweight)
            plain = Function(tf.zeros_like(self._skewness), self._tailweight)
            factor = 2.0 / plain.forward(tf.constant(2.0, dtype=scale.dtype))
            diagonal = tf.linalg.LinearOperatorDiag(
                scale.diag_part() * factor, is_non_singular=True, is_self_adjoint=True
            )
            bijector = Chain([AffineLinearOperator(loc, diagonal, validate_args=validate_args), function])
        super().__init__(distribution, bijector, batch_shape, event_shape, validate_args, scope)
        self._own_loc, self._own_scale, self._allow_nan_stats = loc, scale, allow_nan_stats
        self._initial_parameters = own_parameters(parameters)

    @property
    def loc(self) -> Any:
        """The location, or None for zeros."""
        return self._own_loc

    @property
    def scale(self) -> Any:
        """The scale, a LinearOperator."""
        return self._own_scale

    @property
    def tailweight(self) -> Any:
        """The tail weight."""
        return self._tailweight

    @property
    def skewness(self) -> Any:
        """The skewness."""
        return self._skewness
