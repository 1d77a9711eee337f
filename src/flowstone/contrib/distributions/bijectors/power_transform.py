"""Powers, and the exponential as their limit."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import checked
from flowstone.framework.tensors.node import static_value

__all__ = ["PowerTransform"]


class PowerTransform(Bijector):
    """y = (1 + c x)^(1/c) for x >= -1/c, and exp(x) for c = 0.

    Args:
        power: c, a known number, not negative. ValueError for others.
        validate_args: whether steps check that x and y are where the function is defined.
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(
        self,
        power: Any = 0.0,
        validate_args: bool = False,
        name: str = "power_transform",
        event_ndims: Any = None,
    ) -> None:
        with tf.name_scope(name), tf.name_scope("init"):
            known = static_value(tf.convert_to_tensor(power, name="power"))
        if known is None or known < 0:
            raise ValueError("`power` must be a non-negative TF constant.")
        self._power = float(known)
        super().__init__(
            forward_min_event_ndims=0, validate_args=validate_args, name=name, event_ndims=event_ndims
        )

    @property
    def power(self) -> float:
        """The power c."""
        return self._power

    def _forward(self, x: Any) -> Any:
        x = self._valid_x(x)
        if self.power == 0.0:
            return tf.exp(x)
        return tf.exp(tf.log1p(x * self.power) / self.power)

    def _inverse(self, y: Any) -> Any:
        y = self._valid_y(y)
        if self.power == 0.0:
            return tf.log(y)
        return tf.expm1(tf.log(y) * self.power) / self.power

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return (self.power - 1.0) * tf.log(self._valid_y(y))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        x = self._valid_x(x)
        if self.power == 0.0:
            return x
        return (1.0 / self.power - 1.0) * tf.log1p(x * self.power)

    def _valid_x(self, x: Any) -> Any:
        message = f"Forward transformation input must be at least {-1.0 / self.power if self.power else 0.0}."
        return checked(
            self.validate_args and self.power != 0.0,
            x,
            lambda: tf.assert_non_negative(1.0 + self.power * x, message=message),
        )

    def _valid_y(self, y: Any) -> Any:
        return checked(
            self.validate_args,
            y,
            lambda: tf.assert_positive(y, message="Inverse transformation input must be greater than 0."),
        )
