"""A function that makes a distribution skew and its tails heavy or light."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import checked

__all__ = ["SinhArcsinh"]


class SinhArcsinh(Bijector):
    """y = sinh((arcsinh(x) + skewness) tailweight) (Jones and Pewsey, "Sinh-arcsinh distributions", 2009).

    Args:
        skewness: floating; positive ones shift mass to the right; 0 by default.
        tailweight: positive; above 1 for heavy tails, below 1 for light ones; 1 by default.
        validate_args: whether steps check the tailweight.
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(
        self,
        skewness: Any = None,
        tailweight: Any = None,
        validate_args: bool = False,
        name: str = "SinhArcsinh",
        event_ndims: Any = None,
    ) -> None:
        with tf.name_scope(name):
            self._tailweight = tf.convert_to_tensor(
                1.0 if tailweight is None else tailweight, name="tailweight"
            )
            dtype = self._tailweight.dtype if skewness is None else None
            self._skewness = tf.convert_to_tensor(
                0.0 if skewness is None else skewness, dtype, name="skewness"
            )
            if self._tailweight.dtype.base_dtype != self._skewness.dtype.base_dtype:
                raise TypeError(
                    f"skewness has the type {self._skewness.dtype.name}, but tailweight has "
                    f"{self._tailweight.dtype.name}."
                )
            message = "Argument tailweight was not positive"
            self._tailweight = checked(
                validate_args, self._tailweight, lambda: tf.assert_positive(self._tailweight, message=message)
            )
        super().__init__(
            forward_min_event_ndims=0, validate_args=validate_args, name=name, event_ndims=event_ndims
        )

    @property
    def skewness(self) -> Any:
        """The skewness."""
        return self._skewness

    @property
    def tailweight(self) -> Any:
        """The tailweight."""
        return self._tailweight

    def _forward(self, x: Any) -> Any:
        return tf.sinh((tf.asinh(x) + self.skewness) * self.tailweight)

    def _inverse(self, y: Any) -> Any:
        return tf.sinh(tf.asinh(y) / self.tailweight - self.skewness)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        angle = tf.asinh(y) / self.tailweight - self.skewness
        return _log_cosh(angle) - tf.log(self.tailweight) - 0.5 * _log1p_square(y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        angle = (tf.asinh(x) + self.skewness) * self.tailweight
        return _log_cosh(angle) + tf.log(self.tailweight) - 0.5 * _log1p_square(x)


def _log_cosh(x: Any) -> Any:
    """log cosh(x) without overflow."""
    size = tf.abs(x)
    return size + tf.nn.softplus(-2.0 * size) - tf.log(tf.constant(2.0, size.dtype))


def _log1p_square(x: Any) -> Any:
    """log(1 + x²) without overflow."""
    size = tf.abs(x)
    is_large = size > float(x.dtype.max) ** 0.5 / 2.0
    small = tf.where(is_large, tf.ones_like(size), size)
    large = tf.where(is_large, size, tf.ones_like(size))
    return tf.where(is_large, 2.0 * tf.log(large), tf.log1p(tf.square(small)))
