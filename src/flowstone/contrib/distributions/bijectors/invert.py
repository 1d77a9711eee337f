"""A bijector with its directions exchanged."""

from __future__ import annotations

from typing import Any

from flowstone.contrib.distributions.bijectors.bijector import Bijector

__all__ = ["Invert"]


class Invert(Bijector):
    """The inverse of a bijector.

    Args:
        bijector: what is inverted. NotImplementedError if it maps several x to a y.
        validate_args: see `Bijector`.
        name: the scope of its operations; ``invert_`` and the bijector's name by default.
    """

    def __init__(self, bijector: Any, validate_args: bool = False, name: str | None = None) -> None:
        if not getattr(bijector, "_is_injective", True):
            raise NotImplementedError("Invert is not implemented for non-injective bijectors.")
        self._bijector = bijector
        super().__init__(
            graph_parents=bijector.graph_parents,
            forward_min_event_ndims=bijector.inverse_min_event_ndims,
            inverse_min_event_ndims=bijector.forward_min_event_ndims,
            is_constant_jacobian=bijector.is_constant_jacobian,
            validate_args=validate_args,
            dtype=bijector.dtype,
            name=name or f"invert_{bijector.name}",
            event_ndims=bijector.event_ndims,
        )

    @property
    def bijector(self) -> Any:
        """What is inverted."""
        return self._bijector

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return self.bijector.inverse_event_shape(input_shape)

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        return self.bijector.inverse_event_shape_tensor(input_shape)

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return self.bijector.forward_event_shape(output_shape)

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        return self.bijector.forward_event_shape_tensor(output_shape)

    def _forward(self, x: Any, **kwargs: Any) -> Any:
        return self.bijector.inverse(x, **kwargs)

    def _inverse(self, y: Any, **kwargs: Any) -> Any:
        return self.bijector.forward(y, **kwargs)

    def _inverse_log_det_jacobian(self, y: Any, **kwargs: Any) -> Any:
        ndims = self.bijector.forward_min_event_ndims
        return self.bijector.forward_log_det_jacobian(y, event_ndims=ndims, **kwargs)

    def _forward_log_det_jacobian(self, x: Any, **kwargs: Any) -> Any:
        ndims = self.bijector.inverse_min_event_ndims
        return self.bijector.inverse_log_det_jacobian(x, event_ndims=ndims, **kwargs)
