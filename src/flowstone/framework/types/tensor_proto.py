"""TensorProto messages to NumPy arrays, and arrays to messages.

A message holds the bytes of the array (``tensor_content``) or a list of values, of which the last one repeats
to the end of the shape.

>>> make_ndarray(make_tensor_proto(7, shape=[2]))
array([7, 7], dtype=int32)
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from flowstone.framework.types import dtypes
from flowstone.framework.types.constant_arrays import (
    Array,
    checked_shape,
    constant_array,
    element_count,
    filled,
)
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.string_contents import strings_of
from flowstone.framework.types.values import LONGEST_RUN

_VALUE_FIELD = {
    dtypes.float32: "float_val",
    dtypes.float64: "double_val",
    dtypes.string: "string_val",
    dtypes.complex64: "scomplex_val",
    dtypes.complex128: "dcomplex_val",
    dtypes.int64: "int64_val",
    dtypes.bool: "bool_val",
    dtypes.float16: "half_val",
    dtypes.bfloat16: "half_val",
    dtypes.uint32: "uint32_val",
    dtypes.uint64: "uint64_val",
}  # all others: int_val
_NEVER_AS_BYTES = frozenset(
    (
        dtypes.string,
        dtypes.complex64,
        dtypes.complex128,
        dtypes.bool,
        dtypes.float16,
        dtypes.bfloat16,
        dtypes.uint16,
    )
)


def messages(module_name: str) -> Any:
    """A module of TensorFlow's protocol buffers, such as ``"graph_pb2"``; imported when first asked for."""
    return importlib.import_module("tensorboard.compat.proto." + module_name)


# ---- messages


def make_tensor_proto(values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False) -> Any:
    """The TensorProto of a value; see `constant_array` for what the arguments are and what is raised.

    More than one number is stored as bytes if there are as many as the shape has, otherwise as a list. A
    TensorProto is given back, whatever the other arguments are.
    """
    if is_tensor_proto(values):
        return values
    array = constant_array(values, dtype)
    dims = array.shape if shape is None else checked_shape(array, shape, verify_shape)
    if not element_count(dims):
        array = constant_array(values, dtype, dims)
    element = dtypes.as_dtype(array.dtype) if dtype is None else dtypes.as_dtype(dtype).base_dtype
    return _encode(array, element, dims)


def is_tensor_proto(value: Any) -> bool:
    """Whether a value is a TensorProto, of whichever module of messages."""
    return type(value).__name__ == "TensorProto" and hasattr(value, "tensor_content")


def array_proto(array: Any, dtype: DType) -> Any:
    """The TensorProto of an array of element type `dtype`, one number that fills it stored once."""
    dims = array.shape
    if array.size > 1 and dtype is not dtypes.string and _is_one_value(array, dtype):
        array = array.reshape(-1)[:1]
    return _encode(array, dtype, dims)


def constant_proto(array: Array, dtype: DType) -> Any:
    """The TensorProto of a constant: one number stored once if it was given once, for a shape.

    >>> bool(constant_proto(np.ones(2), dtypes.float64).tensor_content)
    True
    >>> constant_proto(constant_array(1.0, dtypes.float64, [2]), dtypes.float64).double_val
    [1.0]
    """
    was_given_once = array.size > 1 and not any(array.strides)
    return _encode(array.reshape(-1)[:1] if was_given_once else array, dtype, array.shape)


_COMPARED_TOGETHER = 1 << 16  # elements, which stay in a cache


def _is_one_value(array: Array, dtype: DType) -> bool:
    if not any(array.strides):
        return True
    flat = array.reshape(-1)
    if dtype is dtypes.string:
        return bool((flat == flat[0]).all())
    if flat[:1].tobytes() != flat[-1:].tobytes():
        return False
    flat = np.ascontiguousarray(flat)
    kind = f"u{flat.itemsize}" if flat.itemsize in (1, 2, 4, 8) else "u1"
    rows = flat.view(kind).reshape(flat.size, -1)  # bits, since -0.0 == 0.0 and nan != nan
    starts = range(0, flat.size, _COMPARED_TOGETHER)
    return all((rows[i : i + _COMPARED_TOGETHER] == rows[0]).all() for i in starts)


def _encode(array: Array, dtype: DType, dims: tuple[int, ...]) -> Any:
    shape = messages("tensor_shape_pb2").TensorShapeProto
    proto = messages("tensor_pb2").TensorProto(
        dtype=dtype.as_datatype_enum, tensor_shape=shape(dim=[shape.Dim(size=n) for n in dims])
    )
    if array.size > 1 and array.size == element_count(dims) and dtype not in _NEVER_AS_BYTES:
        little = array.astype(array.dtype.newbyteorder("<")) if dtype.size > 1 else array
        proto.tensor_content = little.tobytes()
    elif array.size:
        add_values(proto, array, dtype)
    return proto


def add_values(proto: Any, array: Array, dtype: DType) -> None:
    """Appends the values of an array of element type `dtype` to the list of a TensorProto that holds such."""
    getattr(proto, _VALUE_FIELD.get(dtype, "int_val")).extend(_values(array.reshape(-1), dtype))


def _values(flat: Array, dtype: DType) -> Any:
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return flat.view(np.uint16).tolist()
    if dtype.is_complex:
        return np.ascontiguousarray(flat).view(dtype.real_dtype.as_numpy_dtype).tolist()
    if dtype.is_quantized:
        return flat.view(flat.dtype[0]).tolist()
    return flat.tolist()


def make_ndarray(tensor: Any) -> Array:
    """The array of a TensorProto. TypeError for a type unknown to NumPy, ValueError for corrupt contents."""
    array = constant_of(tensor)
    return array if array.size > LONGEST_RUN else np.require(array, requirements=("C", "W"))


def constant_of(tensor: Any) -> Array:
    """`make_ndarray`, a value that repeats left as it is, so that `constant_proto` gives the message back."""
    dtype = dtypes.as_dtype(tensor.dtype)
    if dtype.is_ref or not dtype.is_numpy_compatible:
        raise TypeError(f"Unsupported tensor type: {dtype.name}.")
    dims = tuple([dim.size for dim in tensor.tensor_shape.dim])
    if any(size < 0 for size in dims):
        raise ValueError(f"The TensorProto has the shape {dims}, which has a negative dimension.")
    count = element_count(dims)
    has_content = count > 0 and tensor.tensor_content
    values = _content(tensor, dtype, count) if has_content else _listed(tensor, dtype)
    try:
        return filled(values[:count], dims)  # TensorFlow, too, leaves out what is too much
    except MemoryError:
        raise ValueError(f"The shape {dims} of the TensorProto is too large.") from None


def _content(tensor: Any, dtype: DType, count: int) -> Array:
    content = tensor.tensor_content
    if dtype is dtypes.string:
        return np.fromiter(strings_of(content, count), object, count)
    if len(content) != count * dtype.size:
        raise ValueError(f"The TensorProto has {len(content)} bytes, its shape needs {count * dtype.size}.")
    stored = np.dtype(dtype.as_numpy_dtype)
    little = stored.newbyteorder("<") if stored.itemsize > 1 else stored
    return np.frombuffer(content, little).astype(stored)  # its own memory, in this machine's byte order


def _listed(tensor: Any, dtype: DType) -> Array:
    values = getattr(tensor, _VALUE_FIELD.get(dtype, "int_val"))
    stored = np.dtype(dtype.as_numpy_dtype)
    if dtype is dtypes.string:
        result = np.empty(len(values), dtype=object)
        result[:] = values
        return result
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return np.array(values, dtype=np.int64).astype(np.uint16).view(stored)
    if dtype.is_complex:
        pairs = np.array(values[: len(values) // 2 * 2], dtype=dtype.real_dtype.as_numpy_dtype)
        return pairs.view(stored)
    if dtype.is_quantized:
        return np.array(values, dtype=np.int64).astype(stored[0]).view(stored)
    if stored.kind in "iu" and stored.itemsize < 8:
        return np.array(values, dtype=np.int64).astype(stored)
    return np.array(values, dtype=stored)
