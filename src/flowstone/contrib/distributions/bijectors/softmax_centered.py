"""The softmax of vectors with a zero appended."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector

__all__ = ["SigmoidCentered", "SoftmaxCentered"]


class SoftmaxCentered(Bijector):
    """y = softmax([x, 0]): vectors [..., k] to shares [..., k + 1] that add up to 1.

    Args:
        validate_args: see `Bijector`.
        name: the scope of its operations.
        event_ndims: 0, as in TensorFlow 1.4, for x that are single numbers: each becomes two shares.
    """

    def __init__(
        self, validate_args: bool = False, name: str = "softmax_centered", event_ndims: Any = None
    ) -> None:
        if type(validate_args) is int:  # the rank, which TensorFlow 1.4 has here
            validate_args, event_ndims = False, validate_args
        self._is_of_numbers = event_ndims == 0
        super().__init__(
            forward_min_event_ndims=0 if self._is_of_numbers else 1,
            inverse_min_event_ndims=1,
            validate_args=validate_args,
            name=name,
        )

    def _forward_event_shape(self, input_shape: Any) -> Any:
        shape = tf.TensorShape(input_shape)
        if self._is_of_numbers:
            return shape.concatenate([2])
        if not shape.ndims or shape[-1].value is None:
            return shape
        return shape[:-1].concatenate([shape[-1].value + 1])

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        if self._is_of_numbers:
            return tf.concat([input_shape, [2]], axis=0)
        return tf.concat([input_shape[:-1], input_shape[-1:] + 1], axis=0)

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        shape = tf.TensorShape(output_shape)
        if not shape.ndims or shape[-1].value is None:
            return shape
        if shape[-1].value <= 1 or (self._is_of_numbers and shape[-1].value != 2):
            raise ValueError(f"Shares of the shape {shape} are the softmax of no vector.")
        return shape[:-1] if self._is_of_numbers else shape[:-1].concatenate([shape[-1].value - 1])

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        if self._is_of_numbers:
            return output_shape[:-1]
        return tf.concat([output_shape[:-1], output_shape[-1:] - 1], axis=0)

    def _forward(self, x: Any) -> Any:
        x = x[..., None] if self._is_of_numbers else x
        return tf.nn.softmax(tf.concat([x, tf.zeros_like(x[..., :1])], axis=-1))

    def _inverse(self, y: Any) -> Any:
        logarithms = tf.log(y)
        x = logarithms[..., :-1] - logarithms[..., -1:]
        return x[..., 0] if self._is_of_numbers else x

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -tf.reduce_sum(tf.log(y), axis=-1)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        x = x[..., None] if self._is_of_numbers else x
        last = -tf.reduce_logsumexp(tf.concat([x, tf.zeros_like(x[..., :1])], axis=-1), axis=-1)
        return tf.reduce_sum(x, axis=-1) + (tf.cast(tf.shape(x)[-1], x.dtype) + 1.0) * last


class SigmoidCentered(SoftmaxCentered):
    """y = [sigmoid(x), 1 - sigmoid(x)]: numbers [...] to pairs of shares [..., 2].

    Args:
        validate_args: see `Bijector`.
        name: the scope of its operations.
    """

    def __init__(self, validate_args: bool = False, name: str = "sigmoid_centered") -> None:
        super().__init__(validate_args=validate_args, name=name, event_ndims=0)
