"""The softsign function as a bijector."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import checked

__all__ = ["Softsign"]


class Softsign(Bijector):
    """y = x / (1 + |x|), element by element.

    Args:
        validate_args: whether steps check values.
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "softsign", event_ndims: Any = None) -> None:
        super().__init__(
            forward_min_event_ndims=0, validate_args=validate_args, name=name, event_ndims=event_ndims
        )

    def _forward(self, x: Any) -> Any:
        return x / (1.0 + tf.abs(x))

    def _inverse(self, y: Any) -> Any:
        y = self._valid(y)
        return y / (1.0 - tf.abs(y))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -2.0 * tf.log1p(tf.abs(x))

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -2.0 * tf.log1p(-tf.abs(self._valid(y)))

    def _valid(self, y: Any) -> Any:
        one = tf.ones([], y.dtype)
        message = "Inverse transformation input must be between -1 and 1."
        return checked(self.validate_args, y, lambda: tf.assert_less(tf.abs(y), one, message=message))
