"""Growing vectors as vectors without constraints."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import checked

__all__ = ["Ordered"]


class Ordered(Bijector):
    """y = [x₀, log(x₁ - x₀), log(x₂ - x₁), …] for growing vectors x [..., k].

    Args:
        validate_args: whether steps check that x grows.
        name: the scope of its operations.
    """

    def __init__(self, validate_args: bool = False, name: str = "ordered") -> None:
        super().__init__(forward_min_event_ndims=1, validate_args=validate_args, name=name)

    def _forward(self, x: Any) -> Any:
        x = checked(
            self.validate_args,
            x,
            lambda: tf.assert_positive(x[..., 1:] - x[..., :-1], message="Elements must grow."),
        )
        return tf.concat([x[..., :1], tf.log(x[..., 1:] - x[..., :-1])], axis=-1)

    def _inverse(self, y: Any) -> Any:
        return tf.cumsum(tf.concat([y[..., :1], tf.exp(y[..., 1:])], axis=-1), axis=-1)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return tf.reduce_sum(y[..., 1:], axis=-1)
