"""What array a Python value is as a constant."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest

from flowstone.framework.types import constant_arrays, dtypes
from flowstone.framework.types.constant_arrays import constant_array
from flowstone.framework.types.dimension import Dimension
from flowstone.framework.types.shape import TensorShape
from flowstone.framework.types.tensor_proto import make_ndarray, make_tensor_proto

QINT8 = np.dtype([("qint8", "i1")])
INFINITY = float("inf")

# value, the array's type, its elements as a nested list
INFERRED: list[tuple[Any, Any, Any]] = [
    (1, np.int32, 1),
    (2**31, np.int64, 2**31),
    (2**63, np.uint64, 2**63),
    (1.5, np.float32, 1.5),
    (1e39, np.float32, INFINITY),
    (True, np.bool_, True),
    (1j, np.complex128, 1j),
    ("a", object, b"a"),
    ("é", object, b"\xc3\xa9"),
    (b"a\0", object, b"a\0"),
    ([], np.float32, []),
    ([[]], np.float32, [[]]),
    ([1, 2.5], np.float32, [1, 2.5]),
    ([1, True], np.int32, [1, 1]),
    ([1.0, True], np.float32, [1, 1]),
    ([1.5, 1j], np.complex128, [1.5, 1j]),
    ([1, 2**31], np.int64, [1, 2**31]),
    ([(1, 2), [3, 4]], np.int32, [[1, 2], [3, 4]]),
    (["é", "b"], object, [b"\xc3\xa9", b"b"]),
    ([b"a\0", b"b"], object, [b"a\0", b"b"]),
    (np.float64(1), np.float64, 1),
    (np.int8(3), np.int8, 3),
    (np.bool_(True), np.bool_, True),
    (np.arange(3), np.int64, [0, 1, 2]),
    (np.arange(3, dtype=">i4"), np.int32, [0, 1, 2]),
    (np.array(["a", "bc"]), object, [b"a", b"bc"]),
    (np.zeros((0, 3), np.float32), np.float32, []),
    ([np.float64(1), 2], np.float32, [1, 2]),
    ([np.int64(1), 2], np.int32, [1, 2]),
    ([np.array(0), 1], np.int32, [0, 1]),
    (bytearray(b"ab"), np.uint8, [97, 98]),
]

# value, dtype, elements
TYPED: list[tuple[Any, Any, Any]] = [
    (1, dtypes.float32, 1),
    (1, "int64", 1),
    (True, dtypes.int32, 1),
    (True, dtypes.float32, 1),
    (1, dtypes.complex64, 1),
    (1.5, dtypes.complex128, 1.5),
    (300, dtypes.uint8, 44),
    (-1, dtypes.uint8, 255),
    (2**31, dtypes.int32, -(2**31)),
    ([1, 2**31], dtypes.int32, [1, -(2**31)]),
    (2**63, dtypes.int64, -(2**63)),
    (2**63, dtypes.uint64, 2**63),
    (-1, dtypes.uint64, 2**64 - 1),
    (1e39, dtypes.float32, INFINITY),
    (70000.0, dtypes.float16, INFINITY),
    (1, dtypes.bfloat16, 1),
    ([1, 2.5], dtypes.bfloat16, [1, 2.5]),
    ([], dtypes.string, []),
    ([[1, 2]], dtypes.int64, [[1, 2]]),
    ([Dimension(3), 2], dtypes.int32, [3, 2]),
    ([np.array(1), np.array(2)], dtypes.int32, [1, 2]),
    (1, dtypes.float32.as_ref, 1),
    (np.arange(3.0) + 0.5, dtypes.int32, [0, 1, 2]),
    (np.array([1]), dtypes.bool, [True]),
    (np.array([1 + 1j]), dtypes.float32, [1]),
    ([(1,), (2,)], dtypes.qint8, [(1,), (2,)]),
]

SHAPED: list[tuple[Any, Any, Any, Any]] = [
    (1, [2, 3], np.int32, [[1, 1, 1], [1, 1, 1]]),
    ([1, 2], [2, 3], np.int32, [[1, 2, 2], [2, 2, 2]]),
    ([1, 2, 3, 4], (2, 2), np.int32, [[1, 2], [3, 4]]),
    (1, [], np.int32, 1),
    (1, [0], np.float32, []),
    ([], [2], np.float32, [0, 0]),
    ("a", [2], object, [b"a", b"a"]),
    (True, TensorShape([2]), np.bool_, [True, True]),
    (np.ones(2), [3], np.float64, [1, 1, 1]),
]


def test_examples() -> None:
    assert doctest.testmod(constant_arrays).failed == 0


@pytest.mark.parametrize("value, dtype, elements", INFERRED)
def test_type_is_inferred(value: Any, dtype: Any, elements: Any) -> None:
    array = constant_array(value)
    assert array.dtype == np.dtype(dtype)
    assert array.tolist() == elements


@pytest.mark.parametrize("value, dtype, elements", TYPED)
def test_type_is_given(value: Any, dtype: Any, elements: Any) -> None:
    array = constant_array(value, dtype)
    assert array.dtype == np.dtype(dtypes.as_dtype(dtype).as_numpy_dtype)
    assert array.tolist() == elements


@pytest.mark.parametrize("value, shape, dtype, elements", SHAPED)
def test_shape_is_given(value: Any, shape: Any, dtype: Any, elements: Any) -> None:
    array = constant_array(value, shape=shape)
    assert array.dtype == np.dtype(dtype)
    assert array.tolist() == elements
    decoded = make_ndarray(make_tensor_proto(value, shape=shape))
    assert decoded.dtype == array.dtype
    assert decoded.tolist() == elements


def test_verified_shape_may_fit() -> None:
    assert constant_array([[1, 2]], shape=[1, 2], verify_shape=True).tolist() == [[1, 2]]
