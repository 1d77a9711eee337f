"""The square of numbers that are not negative."""

from __future__ import annotations

import math
from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import checked

__all__ = ["Square"]


class Square(Bijector):
    """y = x² for x >= 0, element by element.

    Args:
        validate_args: whether steps check values.
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "square", event_ndims: Any = None) -> None:
        super().__init__(
            forward_min_event_ndims=0, validate_args=validate_args, name=name, event_ndims=event_ndims
        )

    def _forward(self, x: Any) -> Any:
        return tf.square(self._valid(x))

    def _inverse(self, y: Any) -> Any:
        return tf.sqrt(self._valid(y))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return math.log(2.0) + tf.log(self._valid(x))

    def _valid(self, t: Any) -> Any:
        message = "All elements must be non-negative."
        return checked(self.validate_args, t, lambda: tf.assert_non_negative(t, message=message))
