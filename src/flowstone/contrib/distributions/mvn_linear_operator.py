"""Normal distributions of vectors whose scale is a linear operator."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.affine_linear_operator import AffineLinearOperator
from flowstone.contrib.distributions.distribution_util import is_diagonal_scale, shapes_from_loc_and_scale
from flowstone.contrib.distributions.scalar_distribution import own_parameters
from flowstone.contrib.distributions.transformed_distribution import TransformedDistribution
from flowstone.distributions import RegisterKL

__all__ = ["MultivariateNormalLinearOperator"]


class MultivariateNormalLinearOperator(TransformedDistribution):
    """The vectors scale z + loc of standard normal z [k].

    Args:
        loc: the mean [..., k], floating; zeros by default.
        scale: a LinearOperator [..., k, k]; the covariance is scale scaleᵀ.
        validate_args, allow_nan_stats, name: see `Distribution`.

    ValueError without a scale, TypeError if it is not floating.
    """

    def __init__(
        self,
        loc: Any = None,
        scale: Any = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalLinearOperator",
    ) -> None:
        parameters = dict(locals())
        if scale is None:
            raise ValueError("Missing required `scale` parameter.")
        if not scale.dtype.is_floating:
            raise TypeError("`scale` parameter must have floating-point dtype.")
        with tf.name_scope(name) as scope:
            loc = None if loc is None else tf.convert_to_tensor(loc, name="loc", dtype=scale.dtype)
            batch_shape, event_shape = shapes_from_loc_and_scale(loc, scale)
        base = tf.distributions.Normal(tf.zeros([], dtype=scale.dtype), tf.ones([], dtype=scale.dtype))
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
        """The mean, or None for zeros."""
        return self.bijector.shift

    @property
    def scale(self) -> Any:
        """The scale, a LinearOperator."""
        return self.bijector.scale

    def _mean(self) -> Any:
        shape: Any = self.batch_shape.concatenate(self.event_shape)
        is_known = shape.is_fully_defined()
        if is_known and self.loc is not None and self.loc.shape == shape:
            return tf.identity(self.loc)
        if not is_known:
            shape = tf.concat([self.batch_shape_tensor(), self.event_shape_tensor()], axis=0)
        mean = (
            tf.zeros(shape, self.dtype)
            if self.loc is None
            else tf.identity(self.loc) + tf.zeros(shape, self.dtype)
        )
        mean.set_shape(self.batch_shape.concatenate(self.event_shape))
        return mean

    def _mode(self) -> Any:
        return self._mean()

    def _covariance(self) -> Any:
        if is_diagonal_scale(self.scale):
            return tf.matrix_diag(tf.square(self.scale.diag_part()))
        return self.scale.matmul(self.scale.to_dense(), adjoint_arg=True)

    def _variance(self) -> Any:
        return self._diagonal() if is_diagonal_scale(self.scale) else tf.matrix_diag_part(self._covariance())

    def _diagonal(self) -> Any:
        return tf.square(self.scale.diag_part())

    def _stddev(self) -> Any:
        if is_diagonal_scale(self.scale):
            return tf.abs(self.scale.diag_part())
        return tf.sqrt(tf.matrix_diag_part(self._covariance()))


@RegisterKL(MultivariateNormalLinearOperator, MultivariateNormalLinearOperator)
def _kl_normal(a: Any, b: Any, name: str | None = None) -> Any:
    """log |B| - log |A| + (‖B⁻¹ A‖² + ‖B⁻¹ (μ_b - μ_a)‖² - k) / 2 for scales A and B."""
    with tf.name_scope(name or "kl_mvn"):
        if is_diagonal_scale(a.scale) and is_diagonal_scale(b.scale):
            whitened = (a.stddev() / b.stddev())[..., None]
        else:
            whitened = b.scale.solve(a.scale.to_dense())
        log_ratio = b.scale.log_abs_determinant() - a.scale.log_abs_determinant()
        size = tf.cast(a.scale.domain_dimension_tensor(), a.dtype)
        trace = -size + _squared(whitened)
        return log_ratio + 0.5 * (trace + _squared(b.scale.solve((b.mean() - a.mean())[..., None])))


def _squared(matrices: Any) -> Any:
    """The sums of the squares of matrices."""
    return tf.reduce_sum(tf.square(matrices), axis=[-2, -1])
