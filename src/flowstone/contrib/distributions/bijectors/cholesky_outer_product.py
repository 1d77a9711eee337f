"""The product of a triangular matrix with its transpose."""

from __future__ import annotations

import math
from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import checked

__all__ = ["CholeskyOuterProduct"]


class CholeskyOuterProduct(Bijector):
    """y = x xᵀ for lower triangular x [..., k, k] with a positive diagonal.

    What is above the diagonal is left out.

    Args:
        validate_args: whether steps check that x is such a matrix.
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(
        self, validate_args: bool = False, name: str = "cholesky_outer_product", event_ndims: Any = None
    ) -> None:
        super().__init__(
            forward_min_event_ndims=2, validate_args=validate_args, name=name, event_ndims=event_ndims
        )

    def _forward(self, x: Any) -> Any:
        if self.validate_args:
            checks = [
                tf.assert_equal(tf.shape(x)[-2], tf.shape(x)[-1], message="x must be square matrices."),
                tf.assert_positive(tf.matrix_diag_part(x), message="x must have a positive diagonal."),
            ]
            with tf.control_dependencies(checks):
                x = tf.identity(x)
        x = tf.matrix_band_part(x, -1, 0)
        return tf.matmul(x, x, adjoint_b=True)

    def _inverse(self, y: Any) -> Any:
        return tf.cholesky(y)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -self._forward_log_det_jacobian(self._inverse(y))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        """k log 2 and the sum of (k - i) log x_ii, i from 0."""
        diagonal = tf.matrix_diag_part(x)
        diagonal = checked(
            self.validate_args,
            diagonal,
            lambda: tf.assert_positive(diagonal, message="x must have a positive diagonal."),
        )
        size = tf.shape(x)[-1]
        exponents = tf.cast(tf.range(size, 0, delta=-1), x.dtype.base_dtype)
        logarithms = tf.reduce_sum(exponents * tf.log(diagonal), axis=-1)
        return logarithms + tf.cast(size, x.dtype.base_dtype) * math.log(2.0)
