"""The cumulative distribution function of Gumbel's distribution."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import checked

__all__ = ["Gumbel"]


class Gumbel(Bijector):
    """y = exp(-exp(-(x - loc) / scale)).

    Args:
        loc: floating.
        scale: floating, positive.
        validate_args: whether steps check the scale, and y to be in [0, 1].
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(
        self,
        loc: Any = 0.0,
        scale: Any = 1.0,
        validate_args: bool = False,
        name: str = "gumbel",
        event_ndims: Any = None,
    ) -> None:
        with tf.name_scope(name):
            self._loc = tf.convert_to_tensor(loc, name="loc")
            scale = tf.convert_to_tensor(scale, name="scale")
            if self._loc.dtype.base_dtype != scale.dtype.base_dtype:
                raise TypeError(f"loc has the type {self._loc.dtype.name}, but scale has {scale.dtype.name}.")
            self._scale = checked(
                validate_args,
                scale,
                lambda: tf.assert_positive(scale, message="Argument scale was not positive"),
            )
        super().__init__(
            forward_min_event_ndims=0, validate_args=validate_args, name=name, event_ndims=event_ndims
        )

    @property
    def loc(self) -> Any:
        """The location."""
        return self._loc

    @property
    def scale(self) -> Any:
        """The scale."""
        return self._scale

    def _forward(self, x: Any) -> Any:
        return tf.exp(-tf.exp(-(x - self.loc) / self.scale))

    def _inverse(self, y: Any) -> Any:
        return self.loc - self.scale * tf.log(-tf.log(self._valid_y(y)))

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        y = self._valid_y(y)
        return tf.log(self.scale / (-tf.log(y) * y))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        z = (x - self.loc) / self.scale
        return -z - tf.exp(-z) - tf.log(self.scale)

    def _valid_y(self, y: Any) -> Any:
        one = tf.ones([], y.dtype)
        y = checked(self.validate_args, y, lambda: tf.assert_non_negative(y, message="y must be at least 0."))
        return checked(
            self.validate_args, y, lambda: tf.assert_less_equal(y, one, message="y must be at most 1.")
        )
