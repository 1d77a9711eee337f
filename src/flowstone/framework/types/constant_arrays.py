"""Python values to NumPy arrays: what array a constant holds.

`constant_array` is the one place that says it: int gives int32 (int64 or uint64 where it does not fit), float
float32, complex complex128, str and bytes string, nested lists the common type; NumPy arrays and scalars keep
their type. A given dtype is checked value by value for Python values, and NumPy arrays are cast.

Arrays have the NumPy type of their `DType` (strings: object arrays of `bytes`). A value that repeats to the
end of a shape is an array without strides, which takes no memory.

>>> constant_array([1, 2.5]), constant_array(7, shape=[2])
(array([1. , 2.5], dtype=float32), array([7, 7], dtype=int32))
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework.types import dtypes
from flowstone.framework.types.dimension import Dimension
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import TensorShape
from flowstone.framework.types.values import as_bytes_array

Array = np.ndarray[Any, Any]

_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_FLOAT32_MAX = 3.4028234e38
_PLAIN = {  # Python types that need no second look
    "f": frozenset((float, int, bool)),
    "i": frozenset((int, bool)),
    "u": frozenset((int, bool)),
    "c": frozenset((complex, float, int, bool)),
    "b": frozenset((bool,)),
}
_ALWAYS_FITS = {
    (float, dtypes.float64): np.float64,
    (int, dtypes.float32): np.float32,
    (int, dtypes.float64): np.float64,
    (bool, dtypes.bool): np.bool_,
}


def constant_array(value: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False) -> Array:
    """The array that a constant of this Python value holds.

    `value`: number, str, bytes, nested lists of them, NumPy array or scalar. `shape`: the result's; too few
    values are filled up with the last one. `verify_shape`: the value must have exactly this shape.

    Raises TypeError for values of no or another type than `dtype`, and for a failed `verify_shape`;
    ValueError for None, ragged lists, lists of arrays and more values than the shape takes; OverflowError
    beyond 64 bits.
    """
    if dtype is None and shape is None:
        kind = type(value)
        if kind is int and _INT32_MIN <= value <= _INT32_MAX:
            return np.array(value, np.int32)
        if kind is float and -_FLOAT32_MAX <= value <= _FLOAT32_MAX:
            return np.array(value, np.float32)
        return _array(value, None)
    if shape is None and (type(value), dtype) in _ALWAYS_FITS:
        return np.array(value, _ALWAYS_FITS[type(value), dtype])
    if shape is not None and dtype is None and not isinstance(value, (np.ndarray, np.generic)):
        if 0 in (dims := _sizes(shape)) and value is not None:
            return np.zeros(dims, np.float32)  # TensorFlow asks no value what type an empty constant has
    array = _array(value, None if dtype is None else dtypes.as_dtype(dtype).base_dtype)
    return array if shape is None else filled(array, checked_shape(array, shape, verify_shape))


def _array(value: Any, dtype: DType | None) -> Array:
    if isinstance(value, (np.ndarray, np.generic)):
        return _from_numpy(value, dtype)
    if value is None:
        raise ValueError("None values not supported.")
    if isinstance(value, (bytearray, memoryview)):
        return _from_numpy(np.array(value), dtype)
    if dtype is not None and dtype.is_quantized:
        return _quantized(value, dtype)
    array = _inferred(value) if dtype is None else _typed(value, dtype)
    if array.ndim and array.ndim != _depth(value):
        shape = list(array.shape)
        raise ValueError(
            f"Expected values {value!r} to be a dense tensor with shape {shape[: _depth(value)]}, but got "
            f"shape {shape}."
        )
    return array


def _from_numpy(value: Any, dtype: DType | None) -> Array:
    array = np.asarray(value)
    wanted = dtypes.as_dtype(array.dtype) if dtype is None else dtype
    if wanted is dtypes.string:
        return as_bytes_array(array)
    target = _numpy_type(wanted, value)
    if array.dtype == target:
        return array
    with np.errstate(over="ignore", invalid="ignore"), _quiet_complex():
        return array.astype(target)


def _quiet_complex() -> Any:
    context = warnings.catch_warnings()
    warnings.simplefilter("ignore", category=getattr(np, "exceptions", np).ComplexWarning)
    return context


def _numpy_type(dtype: DType, value: Any) -> Any:
    if dtype in (dtypes.resource, dtypes.variant):
        raise TypeError(f"`dtype` {dtype} is not compatible with {value!r}.")
    return np.dtype(dtype.as_numpy_dtype)


def _depth(value: Any) -> int:
    """How deep lists and tuples nest, by their first elements."""
    depth = 0
    while isinstance(value, (list, tuple)):
        depth += 1
        if not value:
            break
        value = value[0]
    return depth


def _inferred(value: Any) -> Array:
    try:
        array = np.array(value)
    except ValueError:
        if _is_ragged_behind(value):
            raise _no_elements(value) from None
        raise
    kind = array.dtype.kind
    if kind == "i":
        return _smallest_int(array)
    if kind == "f" and array.dtype == np.float64:
        return _cast(array, np.float32)
    if kind == "b" or (kind in "ufc" and array.dtype.itemsize <= 16):
        return array
    if kind in "SU":
        objects = np.empty(array.shape, dtype=object)
        objects[...] = np.array(value, dtype=object)  # not NumPy's strings, which lose trailing zeros
        if all(isinstance(item, (str, bytes)) for item in objects.reshape(-1)):
            return as_bytes_array(objects)
    elif kind == "V" and array.dtype.names is None and array.dtype in dtypes._SPELLINGS:
        return array  # bfloat16
    raise _no_elements(value)


def _no_elements(value: Any) -> TypeError:
    return TypeError(
        f"Failed to convert elements of {value!r} to Tensor. Consider casting elements to a supported type."
    )


def _is_ragged_behind(value: Any) -> bool:
    """Whether the lists nest deeper somewhere than their first elements do, where these are dense."""
    try:
        return np.array(value, object).ndim == _depth(value)
    except ValueError:
        return False


def _smallest_int(array: Array) -> Array:
    if array.dtype != np.int64:
        return array
    small = array.astype(np.int32)
    return small if (small == array).all() else array


def _cast(array: Array, target: Any) -> Array:
    with np.errstate(over="ignore"):
        return array.astype(target)


def _is_integer(item: Any) -> bool:
    return isinstance(item, (numbers.Integral, Dimension, np.bool_)) or _array_kind(item) in "biu"


def _is_real(item: Any) -> bool:
    return _is_integer(item) or isinstance(item, (numbers.Real, np.floating)) or _array_kind(item) in "fV"


def _is_complex(item: Any) -> bool:
    return _is_real(item) or isinstance(item, numbers.Complex) or _array_kind(item) == "c"


def _is_bool(item: Any) -> bool:
    return isinstance(item, (bool, np.bool_)) or _array_kind(item) == "b"


def _is_text(item: Any) -> bool:
    return isinstance(item, (str, bytes))


def _array_kind(item: Any) -> str:
    return item.dtype.kind if isinstance(item, (np.ndarray, np.generic)) else "?"


def _test_for(dtype: DType) -> Callable[[Any], bool]:
    if dtype.is_floating:
        return _is_real
    if dtype.is_complex:
        return _is_complex
    if dtype.is_bool:
        return _is_bool
    return _is_text if dtype is dtypes.string else _is_integer


def _typed(value: Any, dtype: DType) -> Array:
    target = _numpy_type(dtype, value)
    kinds = set(map(type, value)) if type(value) is list else {type(value)}
    if kinds <= _PLAIN.get(target.kind, frozenset()):
        return _plain(value, target)
    leaves: list[Any] = []
    _collect(value, leaves)
    test = _test_for(dtype)
    for leaf in leaves:
        if not test(leaf):
            raise TypeError(f"Expected {dtype.name}, but got {leaf} of type '{type(leaf).__name__}'.")
    if dtype is dtypes.string:
        return as_bytes_array(_dense(np.array(value, dtype=object), len(leaves)))
    if target.kind in "iu":
        return _wrapped(value, leaves, target)
    with np.errstate(over="ignore"):
        return np.array(value, dtype=target)


def _plain(value: Any, target: Any) -> Array:
    if target.kind in "iu":
        return _wrapped(value, value if type(value) is list else [value], target)
    wide = target.itemsize > 4 and target.kind != "c"
    if wide or (target == np.float32 and type(value) is float and -_FLOAT32_MAX <= value <= _FLOAT32_MAX):
        return np.array(value, target)
    with np.errstate(over="ignore"):
        return np.array(value, target)


def _collect(value: Any, leaves: list[Any]) -> None:
    if isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, leaves)
    else:
        leaves.append(value)


def _dense(array: Array, count: int) -> Array:
    if array.size != count or any(isinstance(item, (list, tuple)) for item in array.reshape(-1)):
        raise ValueError("setting an array element with a sequence: the lists have unequal lengths.")
    return array


def _wrapped(value: Any, leaves: list[Any], target: Any) -> Array:
    """Integers modulo the type's range, as TensorFlow takes them, if they fit 64 bits at all."""
    try:
        return np.array(value, dtype=np.int64).astype(target)
    except OverflowError:
        bits = [int(leaf) for leaf in leaves]
        if any(not -(2**63) <= n < 2**64 for n in bits):
            raise
        flat = np.array([n % 2**64 for n in bits], dtype=np.uint64)
        return flat.astype(target).reshape(np.array(value, dtype=object).shape)


def _quantized(value: Any, dtype: DType) -> Array:
    leaf = value
    while isinstance(leaf, (list, tuple)) and leaf and isinstance(leaf[0], (list, tuple)):
        leaf = leaf[0]
    offender = leaf[0] if isinstance(leaf, list) and leaf else leaf
    if not isinstance(leaf, (list, tuple)) or (isinstance(leaf, list) and leaf):
        raise TypeError(f"Expected {dtype.name}, but got {offender} of type '{type(offender).__name__}'.")
    return np.array(value, dtype=dtype.as_numpy_dtype)


# ---- shapes


def _sizes(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, TensorShape):
        shape = shape.as_list()
    return tuple([int(size) for size in shape])


def checked_shape(array: Array, shape: Any, verify: bool) -> tuple[int, ...]:
    dims = _sizes(shape)
    if verify and dims != array.shape:
        raise TypeError(f"Expected Tensor's shape: {dims}, but got {array.shape}.")
    count = element_count(dims)
    if array.size > max(count, 0) and not (count == 0 and array.size == 1):
        raise ValueError(f"Too many elements provided. Takes at most {count}, but got {array.size}.")
    if count < 0 or any(size < 0 for size in dims):
        raise ValueError(f"Shape {dims} has a negative dimension.")
    return dims


def element_count(dims: Sequence[int]) -> int:
    """How many elements an array of this shape has."""
    size = 1
    for n in dims:
        size *= n
    return size


def filled(values: Array, dims: tuple[int, ...]) -> Array:
    """`values` as an array of shape `dims`, its last value repeated to the end (none: zeros)."""
    count = element_count(dims)
    if values.size == count:
        return values.reshape(dims)
    flat = values.reshape(-1)
    if not values.size:
        last: Any = np.array(b"", dtype=object) if values.dtype == object else np.zeros((), values.dtype)
    else:
        last = flat[-1:].reshape(())
    if flat.size <= 1:
        return np.broadcast_to(last, dims)  # a message of it stores the value once
    result = np.empty(count, values.dtype)
    result[: flat.size] = flat
    result[flat.size :] = last
    return result.reshape(dims)
