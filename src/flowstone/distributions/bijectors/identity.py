"""The bijector that changes nothing."""

from __future__ import annotations

from typing import Any

from flowstone.distributions.bijectors.bijector import Bijector
from flowstone.framework.tensors.tensor import Tensor
from flowstone.ops.arrays.constants import constant

__all__ = ["Identity"]


class Identity(Bijector):
    """y = x.

    Args:
        validate_args, name: see `Bijector`.
        event_ndims: how many dimensions of x are an event.
    """

    def __init__(self, validate_args: bool = False, event_ndims: Any = 0, name: str = "identity") -> None:
        super().__init__(
            event_ndims=event_ndims, is_constant_jacobian=True, validate_args=validate_args, name=name
        )

    def _forward(self, x: Tensor) -> Tensor:
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        return y

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        return constant(0.0, y.dtype.base_dtype)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return constant(0.0, x.dtype.base_dtype)
