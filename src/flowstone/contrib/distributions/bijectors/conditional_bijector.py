"""Bijectors that depend on what a call gives beside the value."""

from __future__ import annotations

from typing import Any

from flowstone.contrib.distributions.bijectors.bijector import Bijector

__all__ = ["ConditionalBijector"]


class ConditionalBijector(Bijector):
    """A bijector whose `_forward`, `_inverse` and determinants take more keyword arguments: its condition.

    The arguments are `Bijector`'s.
    """

    def forward(self, x: Any, name: str = "forward", **condition_kwargs: Any) -> Any:
        """y = f(x) under a condition."""
        return self._call_forward(x, name, **condition_kwargs)

    def inverse(self, y: Any, name: str = "inverse", **condition_kwargs: Any) -> Any:
        """The x with f(x) = y under a condition."""
        return self._call_inverse(y, name, **condition_kwargs)

    def forward_log_det_jacobian(  # type: ignore[override]
        self, x: Any, event_ndims: Any = None, name: str = "forward_log_det_jacobian", **condition_kwargs: Any
    ) -> Any:
        """log |det dy/dx| at x under a condition; see `Bijector`."""
        return self._call_forward_log_det_jacobian(x, event_ndims, name, **condition_kwargs)

    def inverse_log_det_jacobian(  # type: ignore[override]
        self, y: Any, event_ndims: Any = None, name: str = "inverse_log_det_jacobian", **condition_kwargs: Any
    ) -> Any:
        """log |det dx/dy| at y under a condition; see `Bijector`."""
        return self._call_inverse_log_det_jacobian(y, event_ndims, name, **condition_kwargs)
