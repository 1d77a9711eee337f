"""The composition of bijectors."""

from __future__ import annotations

from typing import Any

import flowstone as tf
from flowstone.contrib.distributions.bijectors.bijector import Bijector

__all__ = ["Chain"]


class Chain(Bijector):
    """y = f₁(f₂(…fₙ(x))): the last bijector of the list is applied first.

    Args:
        bijectors: the list; none is the identity.
        validate_args: see `Bijector`.
        name: the scope of its operations; ``chain_of_`` and the bijectors' names by default.

    ValueError if two bijectors have different types, or one maps several x to a y.
    """

    def __init__(self, bijectors: Any = None, validate_args: bool = False, name: str | None = None) -> None:
        bijectors = tuple(bijectors or ())
        if not all(getattr(each, "_is_injective", True) for each in bijectors):
            raise NotImplementedError("A chain of bijectors that map several x to a y is not invertible.")
        dtypes = {each.dtype for each in bijectors if each.dtype is not None}
        if len(dtypes) > 1:
            names = ", ".join(sorted(each.name for each in dtypes))
            raise ValueError(f"incompatible dtypes: {names}")
        if name is None:
            name = "_of_".join(["chain"] + [each.name for each in bijectors]) if bijectors else "identity"
            name = name.replace("/", "")
        least, after = _least_ranks(bijectors)
        self._bijectors = bijectors
        super().__init__(
            graph_parents=[parent for each in bijectors for parent in each.graph_parents],
            forward_min_event_ndims=least,
            inverse_min_event_ndims=after,
            is_constant_jacobian=all(each.is_constant_jacobian for each in bijectors),
            validate_args=validate_args,
            dtype=next(iter(dtypes), None),
            name=name,
        )

    @property
    def bijectors(self) -> Any:
        """The bijectors, the last of which is applied first."""
        return self._bijectors

    def _shape_through(self, shape: Any, method: str, bijectors: Any) -> Any:
        for each in bijectors:
            shape = getattr(each, method)(shape)
        return shape

    def _forward_event_shape(self, input_shape: Any) -> Any:
        return self._shape_through(input_shape, "forward_event_shape", reversed(self.bijectors))

    def _forward_event_shape_tensor(self, input_shape: Any) -> Any:
        return self._shape_through(input_shape, "forward_event_shape_tensor", reversed(self.bijectors))

    def _inverse_event_shape(self, output_shape: Any) -> Any:
        return self._shape_through(output_shape, "inverse_event_shape", self.bijectors)

    def _inverse_event_shape_tensor(self, output_shape: Any) -> Any:
        return self._shape_through(output_shape, "inverse_event_shape_tensor", self.bijectors)

    def _forward(self, x: Any, **kwargs: Any) -> Any:
        for each in reversed(self.bijectors):
            x = each.forward(x, **kwargs.get(each.name, {}))
        return x

    def _inverse(self, y: Any, **kwargs: Any) -> Any:
        for each in self.bijectors:
            y = each.inverse(y, **kwargs.get(each.name, {}))
        return y

    def _forward_log_det_jacobian(self, x: Any, **kwargs: Any) -> Any:
        total = tf.zeros([], dtype=x.dtype.base_dtype)
        ndims = self.forward_min_event_ndims
        for each in reversed(self.bijectors):
            own = kwargs.get(each.name, {})
            total = total + each.forward_log_det_jacobian(x, event_ndims=ndims, **own)
            ndims = ndims - each.forward_min_event_ndims + each.inverse_min_event_ndims
            x = each.forward(x, **own)
        return total

    def _inverse_log_det_jacobian(self, y: Any, **kwargs: Any) -> Any:
        total = tf.zeros([], dtype=y.dtype.base_dtype)
        ndims = self.inverse_min_event_ndims
        for each in self.bijectors:
            own = kwargs.get(each.name, {})
            total = total + each.inverse_log_det_jacobian(y, event_ndims=ndims, **own)
            ndims = ndims - each.inverse_min_event_ndims + each.forward_min_event_ndims
            y = each.inverse(y, **own)
        return total


def _least_ranks(bijectors: Any) -> tuple[int, int]:
    """The least ranks of an x and of its y with which every bijector gets events of its least rank."""
    least = change = 0
    for each in reversed(bijectors):
        least = max(least, each.forward_min_event_ndims - change)
        change += each.inverse_min_event_ndims - each.forward_min_event_ndims
    return least, least + change
