"""The inverse of triangular matrices."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector

__all__ = ["MatrixInverseTriL"]


class MatrixInverseTriL(Bijector):
    """y = x⁻¹ for lower triangular x [..., k, k] whose diagonal has no zero.

    Args:
        validate_args: whether steps check that matrices are such.
        name: the scope of its operations.
    """

    def __init__(self, validate_args: bool = False, name: str = "matrix_inverse_tril") -> None:
        super().__init__(forward_min_event_ndims=2, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        x = self._valid(x)
        size = tf.shape(x)[-1]
        identity = tf.eye(size, batch_shape=tf.shape(x)[:-2], dtype=x.dtype)
        inverse = tf.matrix_triangular_solve(x, identity)
        inverse.set_shape(x.shape)
        return inverse

    def _inverse(self, y: Any) -> Any:
        return self._forward(y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        """-(k + 1) times the logarithm of the determinant of x."""
        x = self._valid(x)
        size = tf.cast(tf.shape(x)[-1], x.dtype.base_dtype)
        return -(1.0 + size) * tf.reduce_sum(tf.log(tf.abs(tf.matrix_diag_part(x))), axis=-1)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return self._forward_log_det_jacobian(y)

    def _valid(self, x: Any) -> Any:
        if not self.validate_args:
            return x
        checks = [
            tf.assert_rank_at_least(x, 2, message="Input must have rank at least 2."),
            tf.assert_equal(tf.shape(x)[-2], tf.shape(x)[-1], message="Input must be square."),
            tf.assert_equal(x, tf.matrix_band_part(x, -1, 0), message="Input must be lower triangular."),
            tf.assert_none_equal(
                tf.matrix_diag_part(x), tf.zeros([], x.dtype), message="The diagonal must have no zero."
            ),
        ]
        with tf.control_dependencies(checks):
            return tf.identity(x)
