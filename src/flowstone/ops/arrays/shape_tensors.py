"""Conversion of `TensorShape` and `Dimension` to constants, for functions that take tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.tensors.tensor import Tensor, register_tensor_conversion_function
from flowstone.framework.types import dtypes
from flowstone.framework.types.dimension import Dimension
from flowstone.framework.types.shape import TensorShape
from flowstone.ops.arrays.constants import constant

__all__: list[str] = []


def _shape_as_tensor(
    value: TensorShape, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    dims = value.dims_tuple
    if dims is None or None in dims:
        raise ValueError(f"Cannot convert a partially known TensorShape {value} to a Tensor.")
    if dtype is not None and dtype not in (dtypes.int32, dtypes.int64):
        raise TypeError(
            f"Cannot convert TensorShape {value} to dtype {dtype.name}. Allowed dtypes are tf.int32 "
            f"and tf.int64."
        )
    wanted = dtype or (dtypes.int64 if any(n > 2**31 - 1 for n in dims) else dtypes.int32)  # type: ignore[operator]
    return constant(np.array(dims, wanted.as_numpy_dtype), wanted, name=name or "shape_as_tensor")


def _dimension_as_tensor(
    value: Dimension, dtype: Any = None, name: str | None = None, as_ref: bool = False
) -> Tensor:
    if value.value is None:
        raise ValueError("Cannot convert unknown Dimension ? to a Tensor.")
    if dtype is not None and dtype not in (dtypes.int32, dtypes.int64):
        raise TypeError(
            f"Cannot convert Dimension {value} to dtype {dtype.name}. Allowed dtypes are tf.int32 "
            f"and tf.int64."
        )
    wanted = dtype or (dtypes.int64 if value.value > 2**31 - 1 else dtypes.int32)
    return constant(value.value, wanted, name=name or "shape_as_tensor")


register_tensor_conversion_function(TensorShape, _shape_as_tensor, 100)
register_tensor_conversion_function(Dimension, _dimension_as_tensor, 100)
