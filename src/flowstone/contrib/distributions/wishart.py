"""Wishart distributions of positive definite matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.contrib.distributions.distribution_util import gen_new_seed
from flowstone.distributions import Distribution
from flowstone.framework.tensors.node import static_value

__all__ = ["WishartCholesky", "WishartFull"]


class _WishartLinearOperator(Distribution):
    """The density |x|^((df - k - 1)/2) exp(-tr(S⁻¹ x)/2) / Z of matrices x [k, k], where S is the scale."""

    def _set_up(self, df: Any, scale_operator: Any, parameters: dict[str, Any], scope: str) -> None:
        self._cholesky = bool(parameters["cholesky_input_output_matrices"])
        validate_args = parameters["validate_args"]
        self._scale_operator = scale_operator
        self._df = tf.convert_to_tensor(df, dtype=scale_operator.dtype, name="df")
        size = scale_operator.domain_dimension.value
        size_tensor = scale_operator.domain_dimension_tensor() if size is None else size
        self._dimension = tf.cast(size_tensor, scale_operator.dtype, name="dimension")
        known = static_value(self._df)
        message = f"Degrees of freedom (df = {known}) cannot be less than dimension of scale matrix ({size})"
        if size is not None and known is not None and not np.all(known >= size):
            raise ValueError(message)
        if validate_args:
            check = tf.assert_less_equal(self._dimension, self._df, message=message)
            with tf.control_dependencies([check]):
                self._df = tf.identity(self._df)
        super().__init__(
            dtype=scale_operator.dtype,
            reparameterization_type=tf.distributions.FULLY_REPARAMETERIZED,
            validate_args=validate_args,
            allow_nan_stats=parameters["allow_nan_stats"],
            parameters=parameters,
            graph_parents=[self._df, self._dimension, *scale_operator.graph_parents],
            name=scope,
        )

    @property
    def df(self) -> Any:
        """The degrees of freedom."""
        return self._df

    @property
    def scale_operator(self) -> Any:
        """The Cholesky factor of the scale, a LinearOperator."""
        return self._scale_operator

    @property
    def cholesky_input_output_matrices(self) -> bool:
        """Whether draws, values and results are Cholesky factors of the matrices."""
        return self._cholesky

    @property
    def dimension(self) -> Any:
        """The size k of the matrices, floating."""
        return self._dimension

    def scale(self) -> Any:
        """The scale, or its Cholesky factor."""
        factor = self.scale_operator.to_dense()
        return factor if self._cholesky else tf.matmul(factor, factor, adjoint_b=True)

    def _event_shape(self) -> Any:
        size = self.scale_operator.domain_dimension
        return tf.TensorShape([size, size])

    def _event_shape_tensor(self) -> Any:
        size = self.scale_operator.domain_dimension_tensor()
        return tf.stack([size, size])

    def _batch_shape(self) -> Any:
        return self.scale_operator.batch_shape

    def _batch_shape_tensor(self) -> Any:
        return self.scale_operator.batch_shape_tensor()

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        """Bartlett's decomposition: normal numbers below the diagonal, roots of chi-squared ones in it."""
        sizes = tf.concat([[n], self.batch_shape_tensor(), self.event_shape_tensor()], axis=0)
        normal = tf.random_normal(sizes, dtype=self.dtype, seed=seed)
        batch_ones = tf.ones(self.batch_shape_tensor(), dtype=self.dtype)
        gamma = tf.random_gamma(
            [n],
            self._multi_gamma_sequence(0.5 * self.df * batch_ones),
            beta=0.5,
            dtype=self.dtype,
            seed=gen_new_seed(seed, "wishart"),
        )
        factor = tf.matrix_set_diag(tf.matrix_band_part(normal, -1, 0), tf.sqrt(gamma))
        factor = tf.matmul(tf.broadcast_to(self.scale_operator.to_dense(), sizes), factor)
        return factor if self._cholesky else tf.matmul(factor, factor, adjoint_b=True)

    def _log_prob(self, value: Any) -> Any:
        factor = value if self._cholesky else tf.cholesky(value)
        sizes = tf.broadcast_dynamic_shape(tf.shape(factor), tf.shape(self.scale_operator.to_dense()))
        scale = tf.broadcast_to(self.scale_operator.to_dense(), sizes)
        solved = tf.matrix_triangular_solve(scale, tf.broadcast_to(factor, sizes))
        trace = tf.reduce_sum(tf.square(solved), axis=[-2, -1])
        half_log_det = tf.reduce_sum(tf.log(tf.abs(tf.matrix_diag_part(factor))), axis=-1)
        log = (self.df - self.dimension - 1.0) * half_log_det - 0.5 * trace - self.log_normalization()
        if value.shape.ndims is not None and self.batch_shape.ndims is not None:
            log.set_shape(tf.broadcast_static_shape(value.shape[:-2], self.batch_shape))
        return log

    def _entropy(self) -> Any:
        half_dp1, half_df = 0.5 * self.dimension + 0.5, 0.5 * self.df
        return (
            self.dimension * (half_df + half_dp1 * math.log(2.0))
            + 2.0 * half_dp1 * self.scale_operator.log_abs_determinant()
            + self._multi_lgamma(half_df)
            + (half_dp1 - half_df) * self._multi_digamma(half_df)
        )

    def _square_scale(self) -> Any:
        factor = self.scale_operator.to_dense()
        return tf.matmul(factor, factor, adjoint_b=True)

    def _mean(self) -> Any:
        df = self.df[..., None, None]
        if self._cholesky:
            return tf.sqrt(df) * self.scale_operator.to_dense()
        return df * self._square_scale()

    def _variance(self) -> Any:
        scale = self._square_scale()
        diagonal = tf.sqrt(tf.matrix_diag_part(scale))[..., None]
        variance = tf.square(scale) + tf.square(tf.matmul(diagonal, diagonal, adjoint_b=True))
        variance = variance * self.df[..., None, None]
        return tf.cholesky(variance) if self._cholesky else variance

    def _stddev(self) -> Any:
        if self._cholesky:
            raise ValueError(
                "Computing std. dev. when is cholesky_input_output_matrices=True does not make sense."
            )
        return tf.cholesky(self._variance())  # as in TensorFlow

    def _mode(self) -> Any:
        s = self.df - self.dimension - 1.0
        s = tf.where(s < 0.0, tf.fill(tf.shape(s), tf.constant(math.nan, dtype=s.dtype)), s)[..., None, None]
        if self._cholesky:
            return tf.sqrt(s) * self.scale_operator.to_dense()
        return s * self._square_scale()

    def mean_log_det(self, name: str = "mean_log_det") -> Any:
        """The expectation of the logarithm of the determinant."""
        with self._scope(name):
            return (
                self._multi_digamma(0.5 * self.df)
                + self.dimension * math.log(2.0)
                + 2.0 * self.scale_operator.log_abs_determinant()
            )

    def log_normalization(self, name: str = "log_normalization") -> Any:
        """The logarithm of what the density is divided by."""
        with self._scope(name):
            return (
                self.df * self.scale_operator.log_abs_determinant()
                + 0.5 * self.df * self.dimension * math.log(2.0)
                + self._multi_lgamma(0.5 * self.df)
            )

    def _multi_gamma_sequence(self, a: Any) -> Any:
        """a, a - 1/2, a - 1, …, one for each of the k rows, in the last dimension."""
        steps = tf.range(tf.cast(self.dimension, tf.int32))
        return a[..., None] - 0.5 * tf.cast(steps, self.dtype)

    def _multi_lgamma(self, a: Any) -> Any:
        terms = tf.reduce_sum(tf.lgamma(self._multi_gamma_sequence(a)), axis=-1)
        return terms + 0.25 * self.dimension * (self.dimension - 1.0) * math.log(math.pi)

    def _multi_digamma(self, a: Any) -> Any:
        return tf.reduce_sum(tf.digamma(self._multi_gamma_sequence(a)), axis=-1)


class WishartCholesky(_WishartLinearOperator):
    """The Wishart distribution by the Cholesky factor of its scale.

    Args:
        df: the degrees of freedom, floating, at least k.
        scale: the factor [..., k, k], lower triangular.
        cholesky_input_output_matrices: whether draws, values and results are Cholesky factors, too.
        validate_args: whether steps check the factor and `df`.
        allow_nan_stats, name: see `Distribution`.

    ValueError if `df` is known to be less than k.
    """

    def __init__(
        self,
        df: Any,
        scale: Any,
        cholesky_input_output_matrices: bool = False,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "WishartCholesky",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            factor = tf.convert_to_tensor(scale)
            if validate_args:
                checks = [
                    tf.assert_positive(
                        tf.matrix_diag_part(factor), message="Cholesky factor must have a positive diagonal."
                    ),
                    tf.assert_equal(
                        tf.shape(factor)[-1], tf.shape(factor)[-2], message="scale must be square."
                    ),
                ]
                with tf.control_dependencies(checks):
                    factor = tf.identity(factor)
            operator = tf.linalg.LinearOperatorLowerTriangular(
                tril=factor, is_non_singular=True, is_positive_definite=True, is_square=True
            )
            self._set_up(df, operator, parameters, scope)


class WishartFull(_WishartLinearOperator):
    """The Wishart distribution by its scale.

    Args:
        df: the degrees of freedom, floating, at least k.
        scale: the matrix [..., k, k], symmetric, positive definite.
        cholesky_input_output_matrices: whether draws, values and results are Cholesky factors.
        validate_args: whether steps check the scale and `df`.
        allow_nan_stats, name: see `Distribution`.

    ValueError if `df` is known to be less than k.
    """

    def __init__(
        self,
        df: Any,
        scale: Any,
        cholesky_input_output_matrices: bool = False,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "WishartFull",
    ) -> None:
        parameters = dict(locals())
        with tf.name_scope(name) as scope:
            matrix = tf.convert_to_tensor(scale)
            if validate_args:
                message = "scale must be symmetric."
                check = tf.assert_near(matrix, tf.matrix_transpose(matrix), message=message)
                with tf.control_dependencies([check]):
                    matrix = tf.identity(matrix)
            operator = tf.linalg.LinearOperatorLowerTriangular(
                tril=tf.cholesky(matrix), is_non_singular=True, is_positive_definite=True, is_square=True
            )
            self._set_up(df, operator, parameters, scope)
