"""The bijector that changes nothing."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector

__all__ = ["Identity"]


class Identity(Bijector):
    """y = x.

    Args:
        validate_args: see `Bijector`.
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "identity", event_ndims: Any = None) -> None:
        super().__init__(
            forward_min_event_ndims=0,
            is_constant_jacobian=True,
            validate_args=validate_args,
            name=name,
            event_ndims=event_ndims,
        )

    def _forward(self, x: Any) -> Any:
        return x

    def _inverse(self, y: Any) -> Any:
        return y

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return tf.constant(0.0, dtype=y.dtype)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return tf.constant(0.0, dtype=x.dtype)
