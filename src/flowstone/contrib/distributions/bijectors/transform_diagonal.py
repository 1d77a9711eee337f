"""A bijector of the diagonals of matrices."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector

__all__ = ["TransformDiagonal"]


class TransformDiagonal(Bijector):
    """Applies a bijector to the diagonals of matrices [..., k, k], and leaves the rest.

    Args:
        diag_bijector: of vectors, or of numbers.
        validate_args: see `Bijector`.
        name: the scope of its operations.
    """

    def __init__(
        self, diag_bijector: Any, validate_args: bool = False, name: str = "transform_diagonal"
    ) -> None:
        self._diag_bijector = diag_bijector
        super().__init__(
            forward_min_event_ndims=2, inverse_min_event_ndims=2, validate_args=validate_args, name=name
        )

    def _forward(self, x: Any) -> Any:
        return tf.matrix_set_diag(x, self._diag_bijector.forward(tf.matrix_diag_part(x)))

    def _inverse(self, y: Any) -> Any:
        return tf.matrix_set_diag(y, self._diag_bijector.inverse(tf.matrix_diag_part(y)))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return self._diag_bijector.forward_log_det_jacobian(tf.matrix_diag_part(x), event_ndims=1)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return self._diag_bijector.inverse_log_det_jacobian(tf.matrix_diag_part(y), event_ndims=1)
