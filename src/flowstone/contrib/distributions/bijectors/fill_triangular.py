"""Vectors as triangular matrices."""

from __future__ import annotations

import math
from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import fill_triangular, fill_triangular_inverse

__all__ = ["FillTriangular"]


class FillTriangular(Bijector):
    """Vectors [..., k (k + 1) / 2] as triangular matrices [..., k, k]; see `fill_triangular`.

    Args:
        upper: whether the matrices are upper triangular.
        validate_args: see `Bijector`.
        name: the scope of its operations.
    """

    def __init__(
        self, upper: bool = False, validate_args: bool = False, name: str = "fill_triangular"
    ) -> None:
        self._upper = upper
        super().__init__(
            forward_min_event_ndims=1,
            inverse_min_event_ndims=2,
            validate_args=validate_args,
            name=name,
        )

    def _forward(self, x: Any) -> Any:
        return fill_triangular(x, upper=self._upper)

    def _inverse(self, y: Any) -> Any:
        return fill_triangular_inverse(y, upper=self._upper)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.zeros(tf.shape(x)[:-1], dtype=x.dtype)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return tf.zeros(tf.shape(y)[:-2], dtype=y.dtype)

    def _forward_event_shape(self, input_shape: Any) -> Any:
        shape = tf.TensorShape(input_shape).with_rank_at_least(1)
        count = shape[-1].value
        size = None
        if count is not None:
            size = (math.isqrt(1 + 8 * count) - 1) // 2
            if size * (size + 1) // 2 != count:
                raise ValueError(f"{count} numbers do not fill a triangle.")
        return shape[:-1].concatenate([size, size])

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        shape = tf.TensorShape(output_shape).with_rank_at_least(2)
        if not shape[-2].is_compatible_with(shape[-1]):
            raise ValueError(f"Matrices of the shape {shape} are not square.")
        size = shape[-1].value
        return shape[:-2].concatenate([None if size is None else size * (size + 1) // 2])

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        count = tf.cast(input_shape[-1], tf.float64)
        size = tf.cast(tf.round((tf.sqrt(1.0 + 8.0 * count) - 1.0) / 2.0), tf.int32)
        return tf.concat([input_shape[:-1], [size, size]], axis=0)

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        size = output_shape[-1]
        return tf.concat([output_shape[:-2], [size * (size + 1) // 2]], axis=0)
