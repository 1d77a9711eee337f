"""Assertions about types, which are always known while the graph is built."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.control.control_flow import no_op

__all__ = [
    "assert_integer",
    "assert_proper_iterable",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_type",
    "is_numeric_tensor",
]


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Raises TypeError unless the tensor has this dtype; returns an operation that does nothing."""
    tf_type = dtypes.as_dtype(tf_type)
    with get_default_graph().name_scope(name or "assert_type"):
        if not isinstance(tensor, (SparseTensor, IndexedSlices)):
            tensor = convert_to_tensor(tensor, name="tensor")
        if tensor.dtype.base_dtype != tf_type:
            prefix = f"{message}  " if message else ""
            called = getattr(tensor, "name", "tensor")
            raise TypeError(f"{prefix}{called} must be of type {tf_type!r}; got {tensor.dtype!r}")
        return no_op(name="statically_determined_correct_type")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Raises TypeError unless x has an integer type; returns an operation that does nothing."""
    with get_default_graph().name_scope(name or "assert_integer"):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_integer:
            prefix = f"{message}  " if message else ""
            raise TypeError(f'{prefix}Expected "x" to be integer type.  Found: {x.name} of dtype {x.dtype!r}')
        return no_op(name="statically_determined_was_integer")


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """The tensor itself; ValueError unless its static shape is that of a scalar."""
    with get_default_graph().name_scope(name or "assert_scalar") as scope:
        tensor = convert_to_tensor(tensor, name=scope)
        if tensor.ndim != 0:
            prefix = f"{message}. " if message else ""
            raise ValueError(f"{prefix}Expected scalar shape for {tensor.name}, saw shape: {tensor.shape}.")
        return tensor  # type: ignore[no-any-return]


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> Any:
    """The common floating-point dtype of `tensors` and `dtype` (float32 if there is none); ValueError if they
    differ or it is no floating-point type.
    """
    if tensors:
        dtype = _common_dtype(tensors, dtype)
    dtype = dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"Expected floating point type, got {dtype!r}.")
    return dtype


def _common_dtype(tensors: Any, expected: Any) -> Any:
    first = None
    expected = None if expected is None else dtypes.as_dtype(expected)
    for tensor in tensors:
        if tensor is None:
            continue
        if expected is None:
            expected, first = tensor.dtype.base_dtype, tensor
        elif tensor.dtype.base_dtype != expected:
            where = f" as {first.name}" if first is not None else ""
            raise ValueError(
                f"{tensor.name}, type={tensor.dtype!r}, must be of the same type ({expected!r}){where}."
            )
    return expected


def assert_proper_iterable(values: Iterable[Any]) -> None:
    """Raises TypeError unless `values` is an iterable that is no tensor, array or string."""
    if isinstance(values, (Tensor, SparseTensor, IndexedSlices, np.ndarray, str, bytes)):
        raise TypeError(f'Expected argument "values" to be a "proper" iterable.  Found: {type(values)}')
    if not hasattr(values, "__iter__"):
        raise TypeError(f'Expected argument "values" to be iterable.  Found: {type(values)}')


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a Tensor of numbers: floating point, integer, complex or quantised."""
    if not isinstance(tensor, Tensor):
        return False
    dtype = tensor.dtype.base_dtype
    return dtype.is_floating or dtype.is_integer or dtype.is_complex or dtype.is_quantized
