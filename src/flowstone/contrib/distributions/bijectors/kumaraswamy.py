"""The inverse of the cumulative distribution function of Kumaraswamy's distribution."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import checked

__all__ = ["Kumaraswamy"]


class Kumaraswamy(Bijector):
    """y = (1 - (1 - x)^(1/b))^(1/a) for x in [0, 1].

    Args:
        concentration1: a, floating, positive; 1 by default.
        concentration0: b, floating, positive; 1 by default.
        validate_args: whether steps check the concentrations, and x and y to be in [0, 1].
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(
        self,
        concentration1: Any = None,
        concentration0: Any = None,
        validate_args: bool = False,
        name: str = "kumaraswamy",
        event_ndims: Any = None,
    ) -> None:
        with tf.name_scope(name):
            self._concentration1 = self._concentration(concentration1, validate_args, "concentration1")
            self._concentration0 = self._concentration(concentration0, validate_args, "concentration0")
        super().__init__(
            forward_min_event_ndims=0, validate_args=validate_args, name=name, event_ndims=event_ndims
        )

    @staticmethod
    def _concentration(value: Any, validate_args: bool, name: str) -> Any:
        value = tf.convert_to_tensor(1.0 if value is None else value, name=name)
        message = "Concentration parameter must be positive."
        return checked(validate_args, value, lambda: tf.assert_positive(value, message=message))

    @property
    def concentration1(self) -> Any:
        """The concentration a."""
        return self._concentration1

    @property
    def concentration0(self) -> Any:
        """The concentration b."""
        return self._concentration0

    def _forward(self, x: Any) -> Any:
        x = self._in_unit(x)
        return tf.exp(tf.log1p(-tf.exp(tf.log1p(-x) / self.concentration0)) / self.concentration1)

    def _inverse(self, y: Any) -> Any:
        y = self._in_unit(y)
        return tf.exp(tf.log1p(-((1.0 - y**self.concentration1) ** self.concentration0)))

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        y = self._in_unit(y)
        a, b = self.concentration1, self.concentration0
        return tf.log(a) + tf.log(b) + (a - 1.0) * tf.log(y) + (b - 1.0) * tf.log1p(-(y**a))

    def _in_unit(self, value: Any) -> Any:
        if not self.validate_args:
            return value
        one = tf.ones([], value.dtype)
        value = checked(True, value, lambda: tf.assert_non_negative(value, message="Values start at 0."))
        return checked(True, value, lambda: tf.assert_less_equal(value, one, message="Values end at 1."))
