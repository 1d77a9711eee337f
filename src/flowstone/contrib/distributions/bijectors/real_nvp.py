"""Affine coupling layers: one part of a vector scales and shifts the other."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector

__all__ = ["RealNVP", "real_nvp_default_template"]


class RealNVP(Bijector):
    """y = [x₀, x₁ exp(s(x₀)) + t(x₀)] for vectors (Dinh et al., "Density estimation using real NVP", 2017).

    Args:
        num_masked: how many of the first elements are x₀.
        shift_and_log_scale_fn: gives (t, s) of x₀ and the number of other elements; either may be None.
        is_constant_jacobian: whether s does not depend on x₀.
        validate_args: see `Bijector`.
        name: the scope of its operations; ``real_nvp`` by default.

    ValueError if there are not more elements than `num_masked`, or it is not positive.
    """

    def __init__(
        self,
        num_masked: int,
        shift_and_log_scale_fn: Any,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        name: str | None = None,
    ) -> None:
        if num_masked <= 0:
            raise ValueError("num_masked must be a positive integer.")
        self._num_masked = num_masked
        self._shift_and_log_scale_fn = shift_and_log_scale_fn
        self._input_depth: int | None = None
        super().__init__(
            forward_min_event_ndims=1,
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            name=name or "real_nvp",
        )

    def _parts(self, value: Any) -> Any:
        """Both parts of the vectors, and what the first gives for the second."""
        if self._input_depth is None:
            self._input_depth = value.shape.with_rank_at_least(1)[-1].value
            if self._input_depth is None:
                raise NotImplementedError("Rightmost dimension must be known prior to graph execution.")
            if self._num_masked >= self._input_depth:
                raise ValueError("Number of masked units must be smaller than the event size.")
        first, second = value[..., : self._num_masked], value[..., self._num_masked :]
        shift, log_scale = self._shift_and_log_scale_fn(first, self._input_depth - self._num_masked)
        return first, second, shift, log_scale

    def _forward(self, x: Any) -> Any:
        first, second, shift, log_scale = self._parts(x)
        if log_scale is not None:
            second = second * tf.exp(log_scale)
        return tf.concat([first, second if shift is None else second + shift], axis=-1)

    def _inverse(self, y: Any) -> Any:
        first, second, shift, log_scale = self._parts(y)
        if shift is not None:
            second = second - shift
        return tf.concat([first, second if log_scale is None else second * tf.exp(-log_scale)], axis=-1)

    def _inverse_log_det_jacobian(self, y: Any) -> Any:
        return -self._log_scale_sum(y)

    def _forward_log_det_jacobian(self, x: Any) -> Any:
        return self._log_scale_sum(x)

    def _log_scale_sum(self, value: Any) -> Any:
        log_scale = self._parts(value)[3]
        if log_scale is None:
            return tf.constant(0.0, dtype=value.dtype, name="log_det_jacobian")
        return tf.reduce_sum(log_scale, axis=-1)


def real_nvp_default_template(
    hidden_layers: Any,
    shift_only: bool = False,
    activation: Any = tf.nn.relu,
    name: str | None = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A template of dense layers that gives (shift, log_scale) for `RealNVP`.

    Args:
        hidden_layers: the units of each hidden layer.
        shift_only: whether log_scale is None.
        activation: of the hidden layers.
        name: ignored, as in TensorFlow: the template is ``real_nvp_default_template``.
        args, kwargs: more arguments of `tf.layers.dense`.
    """

    def build(x: Any, output_units: int) -> Any:
        is_vector = x.shape.ndims == 1
        x = x[None] if is_vector else x
        for units in hidden_layers:
            x = tf.layers.dense(x, units, activation, *args, **kwargs)
        x = tf.layers.dense(x, (1 if shift_only else 2) * output_units, None, *args, **kwargs)
        x = x[0] if is_vector else x
        return (x, None) if shift_only else tuple(tf.split(x, 2, axis=-1))

    return tf.make_template("real_nvp_default_template", build)
