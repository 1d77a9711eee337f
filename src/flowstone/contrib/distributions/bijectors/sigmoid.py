"""The logistic function as a bijector."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector

__all__ = ["Sigmoid"]


class Sigmoid(Bijector):
    """y = 1 / (1 + exp(-x)), element by element.

    Args:
        validate_args: whether steps check values.
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "sigmoid", event_ndims: Any = None) -> None:
        super().__init__(
            forward_min_event_ndims=0, validate_args=validate_args, name=name, event_ndims=event_ndims
        )

    def _forward(self, x: Any) -> Any:
        return tf.sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        return tf.log(y) - tf.log1p(-y)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -tf.log(y) - tf.log1p(-y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -tf.nn.softplus(-x) - tf.nn.softplus(x)
