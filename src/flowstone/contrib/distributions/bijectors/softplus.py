"""The softplus function as a bijector."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector
from flowstone.contrib.distributions.distribution_util import checked, softplus_inverse

__all__ = ["Softplus"]


class Softplus(Bijector):
    """y = c log(1 + exp(x / c)), element by element.

    Args:
        hinge_softness: c, not zero, floating; 1 by default. The whole numbers 0 and 1 are taken for
            `event_ndims`, which TensorFlow 1.4 has in this place.
        validate_args: whether steps check c.
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(
        self,
        hinge_softness: Any = None,
        validate_args: bool = False,
        name: str = "softplus",
        event_ndims: Any = None,
    ) -> None:
        if type(hinge_softness) is int and hinge_softness < 2:  # the rank, which TensorFlow 1.4 has here
            hinge_softness, event_ndims = None, hinge_softness
        with tf.name_scope(name):
            softness = (
                None if hinge_softness is None else tf.convert_to_tensor(hinge_softness, name="softness")
            )
            if softness is not None:
                zero, message = tf.zeros([], softness.dtype), "hinge_softness must be non-zero"
                softness = checked(
                    validate_args, softness, lambda: tf.assert_none_equal(softness, zero, message=message)
                )
        self._hinge_softness = softness
        super().__init__(
            forward_min_event_ndims=0, validate_args=validate_args, name=name, event_ndims=event_ndims
        )

    @property
    def hinge_softness(self) -> Any:
        """The softness c, or None."""
        return self._hinge_softness

    def _over_softness(self, value: Any) -> Any:
        return value if self.hinge_softness is None else value / tf.cast(self.hinge_softness, value.dtype)

    def _times_softness(self, value: Any) -> Any:
        return value if self.hinge_softness is None else value * tf.cast(self.hinge_softness, value.dtype)

    def _forward(self, x: Any) -> Any:
        return self._times_softness(tf.nn.softplus(self._over_softness(x)))

    def _inverse(self, y: Any) -> Any:
        return self._times_softness(softplus_inverse(self._over_softness(y)))

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -tf.log(-tf.expm1(-self._over_softness(y)))

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return -tf.nn.softplus(-self._over_softness(x))
