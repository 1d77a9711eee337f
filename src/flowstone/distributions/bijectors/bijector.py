"""The base class of bijectors: differentiable functions with an inverse.

A bijector remembers which y it computed of which x, and the logarithm of the Jacobian's determinant there. Of
a tensor that it made itself it gives back the tensor that it made it of, without a computation. What a
subclass does not define of the two determinants is the other's negative.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import TensorShape, as_shape

__all__ = ["Bijector"]


@dataclass
class _Mapping:
    """One x with its y; the logarithm of |dx/dy| there if it is known."""

    x: Tensor
    y: Tensor
    inverse_log_det_jacobian: Tensor | None = None


class Bijector:
    """A function `forward` with an `inverse`. Subclasses define `_forward`, `_inverse` and one of
    `_forward_log_det_jacobian` and `_inverse_log_det_jacobian`.

    Args:
        event_ndims: how many of the last dimensions are one event; a number, or an int32 scalar.
        graph_parents: tensors that the bijector was made of. ValueError for another thing.
        is_constant_jacobian: whether the determinant depends on no x.
        validate_args: whether steps check values.
        dtype: of x and y; None for any. TypeError for tensors of other types.
        name: the scope of its operations, the class's name by default.
    """

    def __init__(
        self,
        event_ndims: Any = None,
        graph_parents: list[Any] | None = None,
        is_constant_jacobian: bool = False,
        validate_args: bool = False,
        dtype: Any = None,
        name: str | None = None,
    ) -> None:
        for index, parent in enumerate(graph_parents or ()):
            if not isinstance(parent, Tensor):
                raise ValueError(f"Graph parent item {index} is not a Tensor; {parent}.")
        self._name = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()
        self._graph_parents = list(graph_parents or ())
        self._is_constant_jacobian, self._validate_args = is_constant_jacobian, validate_args
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._event_ndims = None
        if event_ndims is not None:
            with get_default_graph().name_scope(self._name):
                self._event_ndims = convert_to_tensor(event_ndims, dtypes.int32, name="event_ndims")
        self._mappings: list[_Mapping] = []
        self._constant_jacobian: Tensor | None = None

    @property
    def event_ndims(self) -> Tensor | None:
        """How many of the last dimensions are one event, an int32 scalar, or None."""
        return self._event_ndims

    @property
    def graph_parents(self) -> list[Tensor]:
        """The tensors that it was made of."""
        return self._graph_parents

    @property
    def is_constant_jacobian(self) -> bool:
        """Whether the Jacobian's determinant depends on no x."""
        return self._is_constant_jacobian

    @property
    def validate_args(self) -> bool:
        """Whether steps check values."""
        return self._validate_args

    @property
    def dtype(self) -> Any:
        """The type of x and y; None for any."""
        return self._dtype

    @property
    def name(self) -> str:
        """The scope of its operations."""
        return self._name

    # ---- shapes

    def _forward_event_shape(self, input_shape: TensorShape) -> TensorShape:
        return input_shape

    def _inverse_event_shape(self, output_shape: TensorShape) -> TensorShape:
        return output_shape

    def _forward_event_shape_tensor(self, input_shape: Tensor) -> Tensor:
        return input_shape

    def _inverse_event_shape_tensor(self, output_shape: Tensor) -> Tensor:
        return output_shape

    def forward_event_shape(self, input_shape: Any) -> TensorShape:
        """What is known of the event shape of y, given that of x."""
        return as_shape(self._forward_event_shape(as_shape(input_shape)))

    def inverse_event_shape(self, output_shape: Any) -> TensorShape:
        """What is known of the event shape of x, given that of y."""
        return as_shape(self._inverse_event_shape(as_shape(output_shape)))

    def forward_event_shape_tensor(
        self, input_shape: Any, name: str = "forward_event_shape_tensor"
    ) -> Tensor:
        """The event shape of y, an int32 vector, given that of x."""
        with self._scope(name):
            return self._forward_event_shape_tensor(
                convert_to_tensor(input_shape, dtypes.int32, name="input_shape")
            )

    def inverse_event_shape_tensor(
        self, output_shape: Any, name: str = "inverse_event_shape_tensor"
    ) -> Tensor:
        """The event shape of x, an int32 vector, given that of y."""
        with self._scope(name):
            return self._inverse_event_shape_tensor(
                convert_to_tensor(output_shape, dtypes.int32, name="output_shape")
            )

    # ---- the function

    def forward(self, x: Any, name: str = "forward") -> Tensor:
        """y = f(x)."""
        with self._scope(name):
            return self._mapped_from(self._tensor(x, "x")).y

    def inverse(self, y: Any, name: str = "inverse") -> Tensor:
        """The x with f(x) = y."""
        with self._scope(name):
            return self._mapped_to(self._tensor(y, "y")).x

    def forward_log_det_jacobian(self, x: Any, name: str = "forward_log_det_jacobian") -> Tensor:
        """log |det dy/dx| at x."""
        with self._scope(name):
            x = self._tensor(x, "x")
            constant = self._constant_in(x)
            if constant is not None:
                return F.Neg(constant)
            known = next((each for each in self._mappings if each.x is x), None)
            if known is not None and known.inverse_log_det_jacobian is not None:
                return F.Neg(known.inverse_log_det_jacobian)
            try:
                result = self._forward_log_det_jacobian(x)
            except NotImplementedError:
                return F.Neg(self._remember(self._mapped_from(x)))
            if known is not None or self.is_constant_jacobian:
                self._keep(known, F.Neg(result))
            return result

    def inverse_log_det_jacobian(self, y: Any, name: str = "inverse_log_det_jacobian") -> Tensor:
        """log |det dx/dy| at y."""
        with self._scope(name):
            y = self._tensor(y, "y")
            constant = self._constant_in(y)
            if constant is not None:
                return constant
            known = next((each for each in self._mappings if each.y is y), None)
            if known is not None and known.inverse_log_det_jacobian is not None:
                return known.inverse_log_det_jacobian
            try:
                result = self._inverse_log_det_jacobian(y)
            except NotImplementedError:
                result = F.Neg(self._forward_log_det_jacobian(self._mapped_to(y).x))
            return self._keep(known, result)

    def _constant_in(self, tensor: Tensor) -> Tensor | None:
        """The determinant's logarithm that is the same everywhere, if it is known in the tensor's graph."""
        known = self._constant_jacobian
        return known if known is not None and known.graph is tensor.graph else None

    def _remember(self, mapping: _Mapping) -> Tensor:
        return self._keep(mapping, self._inverse_log_det_jacobian(mapping.y))

    def _keep(self, mapping: _Mapping | None, inverse_log_det_jacobian: Tensor) -> Tensor:
        if self.is_constant_jacobian:
            self._constant_jacobian = inverse_log_det_jacobian
        if mapping is not None:
            mapping.inverse_log_det_jacobian = inverse_log_det_jacobian
        return inverse_log_det_jacobian

    def _mapped_from(self, x: Tensor) -> _Mapping:
        known = next((each for each in self._mappings if each.x is x), None)
        return known or self._added(_Mapping(x, self._forward(x)))

    def _mapped_to(self, y: Tensor) -> _Mapping:
        known = next((each for each in self._mappings if each.y is y), None)
        return known or self._added(_Mapping(self._inverse(y), y))

    def _added(self, mapping: _Mapping) -> _Mapping:
        self._mappings.append(mapping)
        return mapping

    def _tensor(self, value: Any, name: str) -> Tensor:
        tensor = convert_to_tensor(value, name=name)
        if self._dtype is not None and tensor.dtype.base_dtype != self._dtype:
            raise TypeError(
                f"Input had dtype {tensor.dtype.base_dtype.name} but expected {self._dtype.name}."
            )
        return tensor

    def _forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError("forward not implemented.")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError("inverse not implemented")

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        raise NotImplementedError("forward_log_det_jacobian not implemented.")

    def _inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        raise NotImplementedError("inverse_log_det_jacobian not implemented.")

    def _event_dims_tensor(self, sample: Tensor) -> Tensor:
        """The axes of `sample` that are the event, an int32 vector."""
        if self._event_ndims is None:
            raise ValueError("Jacobian cannot be tiled with None event_ndims")
        count, rank = static_value(self._event_ndims), sample.shape.ndims
        if count is not None and rank is not None:
            return convert_to_tensor(list(range(rank - int(count), rank)), dtypes.int32)
        return F.Range(F.Rank(sample) - self._event_ndims, F.Rank(sample), 1)

    @contextlib.contextmanager
    def _scope(self, name: str) -> Iterator[None]:
        with get_default_graph().name_scope(self.name), get_default_graph().name_scope(name):
            yield
