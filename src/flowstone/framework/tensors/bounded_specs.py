"""`BoundedTensorSpec`: the spec of tensors whose elements lie between two bounds, such as actions."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.tensors.type_specs import TensorSpec
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape

__all__ = ["BoundedTensorSpec"]


class BoundedTensorSpec(TensorSpec):
    """Tensors of a type and static shape between `minimum` and `maximum`, both included.

    Args:
        shape, dtype, name: as of `TensorSpec`.
        minimum, maximum: numbers or arrays that may be broadcast to the shape.

    Raises ValueError where a bound is None or does not fit the shape.
    """

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    def __init__(
        self, shape: Any, dtype: Any, minimum: Any = None, maximum: Any = None, name: str | None = None
    ) -> None:
        super().__init__(shape, dtype, name)
        if minimum is None or maximum is None:
            raise ValueError(f"minimum and maximum must be provided; but saw '{minimum}' and '{maximum}'")
        self._minimum = _bound("minimum", minimum, self.shape, self.dtype)
        self._maximum = _bound("maximum", maximum, self.shape, self.dtype)

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> BoundedTensorSpec:
        """The spec of another one, with the smallest and largest number of its type unless it has bounds."""
        limits = dtypes.as_dtype(spec.dtype)
        minimum = getattr(spec, "minimum", limits.min)
        maximum = getattr(spec, "maximum", limits.max)
        return cls(spec.shape, spec.dtype, minimum, maximum, name or getattr(spec, "name", None))

    @property
    def minimum(self) -> Any:
        """The lower bound, an array that cannot be changed."""
        return self._minimum

    @property
    def maximum(self) -> Any:
        """The upper bound, an array that cannot be changed."""
        return self._maximum

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundedTensorSpec):
            return False
        is_same = TensorSpec.from_spec(self) == TensorSpec.from_spec(other)
        bounds = (self.minimum, other.minimum), (self.maximum, other.maximum)
        return is_same and all(np.allclose(one, another) for one, another in bounds)

    def _serialize(self) -> tuple[Any, ...]:
        return self.shape, self.dtype, self._minimum, self._maximum, self.name

    def __reduce__(self) -> Any:
        return BoundedTensorSpec, self._serialize()

    def __repr__(self) -> str:
        return (
            f"BoundedTensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r}, "
            f"minimum={self.minimum!r}, maximum={self.maximum!r})"
        )


def _bound(name: str, value: Any, shape: TensorShape, dtype: DType) -> Any:
    bound = np.array(value, dtype.as_numpy_dtype)
    sizes = [1] * bound.ndim if shape.ndims is None else [1 if n is None else n for n in shape.as_list()]
    try:
        if len(np.broadcast_shapes(bound.shape, tuple(sizes))) > len(sizes):
            raise ValueError("more axes")
    except ValueError:
        problem = f"ValueError('Incompatible shapes for broadcasting: {bound.shape} and {shape}')"
        raise ValueError(f"{name} is not compatible with shape. Message: {problem}.") from None
    bound.setflags(write=False)
    return bound
