"""`tf.TensorArraySpec`: what a TensorArray holds."""

from __future__ import annotations

from typing import Any

from flowstone.framework.tensors.type_specs import TypeSpec
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import as_shape
from flowstone.ops.lists.tensor_array import TensorArray

__all__ = ["TensorArraySpec"]


class TensorArraySpec(TypeSpec):
    """A TensorArray whose elements have this type and static shape."""

    def __init__(
        self, element_shape: Any = None, dtype: Any = dtypes.float32, dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:  # fmt: skip
        self._element_shape, self._dtype = as_shape(element_shape), dtypes.as_dtype(dtype)
        self._dynamic_size, self._infer_shape = dynamic_size, infer_shape

    @classmethod
    def from_value(cls, value: TensorArray) -> TensorArraySpec:
        """That of an array. TypeError if it is none."""
        if not isinstance(value, TensorArray):
            raise TypeError(f"Expected value to be a TensorArray, but got {type(value)}")
        return cls(value.element_shape, value.dtype, bool(value.dynamic_size), value._infer_shape)

    @property
    def value_type(self) -> type:
        """TensorArray."""
        return TensorArray

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape
