"""An affine function of numbers."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import checked

__all__ = ["AffineScalar"]


class AffineScalar(Bijector):
    """y = scale x + shift, element by element.

    Args:
        shift: floating; nothing is added by default.
        scale: floating, not zero; 1 by default.
        validate_args: whether steps check that the scale is not zero.
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(
        self,
        shift: Any = None,
        scale: Any = None,
        validate_args: bool = False,
        name: str = "affine_scalar",
        event_ndims: Any = None,
    ) -> None:
        with tf.name_scope(name):
            self._shift = None if shift is None else tf.convert_to_tensor(shift, name="shift")
            self._scale = None if scale is None else tf.convert_to_tensor(scale, name="scale")
            if self._scale is not None:
                zero = tf.zeros([], self._scale.dtype)
                self._scale = checked(
                    validate_args, self._scale, lambda: tf.assert_none_equal(self._scale, zero)
                )
        super().__init__(
            forward_min_event_ndims=0,
            is_constant_jacobian=True,
            validate_args=validate_args,
            name=name,
            event_ndims=event_ndims,
        )

    @property
    def shift(self) -> Any:
        """What is added, or None."""
        return self._shift

    @property
    def scale(self) -> Any:
        """The factor, or None."""
        return self._scale

    def _forward(self, x: Any) -> Any:
        y = x if self.scale is None else x * self.scale
        return y if self.shift is None else y + self.shift

    def _inverse(self, y: Any) -> Any:
        x = y if self.shift is None else y - self.shift
        return x if self.scale is None else x / self.scale

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        if self.scale is None:
            return tf.zeros([], dtype=x.dtype.base_dtype)
        return tf.log(tf.abs(self.scale))
