"""The absolute value, which two x have."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import checked

__all__ = ["AbsoluteValue"]


class AbsoluteValue(Bijector):
    """y = |x|, with the inverses (-y, y).

    Args:
        validate_args: whether steps check that y is not negative.
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    _is_injective = False

    def __init__(
        self, validate_args: bool = False, name: str = "absolute_value", event_ndims: Any = None
    ) -> None:
        super().__init__(
            forward_min_event_ndims=0,
            is_constant_jacobian=True,
            validate_args=validate_args,
            name=name,
            event_ndims=event_ndims,
        )

    def _forward(self, x: Any) -> Any:
        return tf.abs(x)

    def _inverse(self, y: Any) -> Any:
        y = checked(
            self.validate_args, y, lambda: tf.assert_non_negative(y, message="y must not be negative.")
        )
        return -y, y

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        zeros = tf.zeros([], dtype=y.dtype)
        zeros = checked(
            self.validate_args, zeros, lambda: tf.assert_non_negative(y, message="y must not be negative.")
        )
        return zeros, zeros
