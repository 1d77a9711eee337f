"""Bijectors of functions that are given."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector

__all__ = ["Inline"]


class Inline(Bijector):
    """A bijector whose functions are arguments. What is needed and was not given is a NotImplementedError.

    Args:
        forward_fn, inverse_fn: the function and its inverse.
        inverse_log_det_jacobian_fn, forward_log_det_jacobian_fn: their determinants' logarithms.
        forward_event_shape_fn, inverse_event_shape_fn: of TensorShapes; the identity by default.
        forward_event_shape_tensor_fn, inverse_event_shape_tensor_fn: of int32 vectors.
        is_constant_jacobian, validate_args, forward_min_event_ndims, inverse_min_event_ndims: see `Bijector`.
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(
        self,
        forward_fn: Any = None,
        inverse_fn: Any = None,
        inverse_log_det_jacobian_fn: Any = None,
        forward_log_det_jacobian_fn: Any = None,
        forward_event_shape_fn: Any = None,
        forward_event_shape_tensor_fn: Any = None,
        inverse_event_shape_fn: Any = None,
        inverse_event_shape_tensor_fn: Any = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        forward_min_event_ndims: int | None = None,
        inverse_min_event_ndims: int | None = None,
        name: str = "inline",
        event_ndims: Any = None,
    ) -> None:
        super().__init__(
            forward_min_event_ndims=forward_min_event_ndims,
            inverse_min_event_ndims=inverse_min_event_ndims,
            is_constant_jacobian=is_constant_jacobian,
            validate_args=validate_args,
            name=name,
            event_ndims=event_ndims,
        )
        self._functions = {
            "forward": forward_fn,
            "inverse": inverse_fn,
            "inverse_log_det_jacobian": inverse_log_det_jacobian_fn,
            "forward_log_det_jacobian": forward_log_det_jacobian_fn,
        }
        self._shape_functions = {
            "forward": (forward_event_shape_fn, forward_event_shape_tensor_fn),
            "inverse": (inverse_event_shape_fn, inverse_event_shape_tensor_fn),
        }

    def _result(self, what: str, value: Any, kwargs: dict[str, Any]) -> Any:
        function = self._functions[what]
        if function is None:
            raise NotImplementedError(f"Cannot call `{what}`: `{what}_fn` was not given.")
        return function(value, **kwargs)

    def _shape(self, direction: str, given: Any, tensor: bool) -> Any:
        function = self._shape_functions[direction][tensor]
        return given if function is None else function(given)

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return tf.TensorShape(self._shape("forward", input_shape, False))

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        return self._shape("forward", input_shape, True)

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return tf.TensorShape(self._shape("inverse", output_shape, False))

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        return self._shape("inverse", output_shape, True)

    def _forward(self, x: Any, **kwargs: Any) -> Any:
        return self._result("forward", x, kwargs)

    def _inverse(self, y: Any, **kwargs: Any) -> Any:
        return self._result("inverse", y, kwargs)

    def _inverse_log_det_jacobian(self, y: Any, **kwargs: Any) -> Any:
        return self._result("inverse_log_det_jacobian", y, kwargs)

    def _forward_log_det_jacobian(self, x: Any, **kwargs: Any) -> Any:
        return self._result("forward_log_det_jacobian", x, kwargs)
