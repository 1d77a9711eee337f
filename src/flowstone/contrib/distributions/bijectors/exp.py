"""The exponential function as a bijector."""

from __future__ import annotations

from typing import Any

from flowstone.contrib.distributions.bijectors.power_transform import PowerTransform

__all__ = ["Exp"]


class Exp(PowerTransform):
    """y = exp(x), element by element.

    Args:
        validate_args: whether steps check that y is positive.
        name: the scope of its operations.
        event_ndims: see `Bijector`.
    """

    def __init__(self, validate_args: bool = False, name: str = "exp", event_ndims: Any = None) -> None:
        super().__init__(validate_args=validate_args, name=name, event_ndims=event_ndims)
