"""Tests of flowstone.framework.types.tensor_proto; the tables are TensorFlow's own answers."""

from __future__ import annotations

import doctest
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from flowstone.framework.types import dtypes, tensor_proto
from flowstone.framework.types.dimension import Dimension
from flowstone.framework.types.shape import TensorShape
from flowstone.framework.types.tensor_proto import (
    array_proto,
    constant_array,
    make_ndarray,
    make_tensor_proto,
    messages,
)

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

# value, arguments, the error
WRONG: list[tuple[Any, dict[str, Any], type[Exception]]] = [
    (None, {}, ValueError),
    (None, {"dtype": dtypes.int32}, ValueError),
    (2**64, {}, TypeError),
    (2**64, {"dtype": dtypes.uint64}, OverflowError),
    ([1, "a"], {}, TypeError),
    (["a", 1], {}, TypeError),
    ([1, None], {}, TypeError),
    ([1, None], {"dtype": dtypes.int32}, TypeError),
    ([[1, 2], [3]], {}, ValueError),
    ([[1, 2], [3]], {"dtype": dtypes.float32}, ValueError),
    ([[1, 2], 3], {}, ValueError),
    ([["a", "b"], ["c"]], {}, ValueError),
    ([["a", "b"], ["c"]], {"dtype": dtypes.string}, ValueError),
    ([np.arange(2), np.arange(2)], {}, ValueError),
    ([np.arange(2), np.arange(2)], {"dtype": dtypes.int64}, ValueError),
    (range(3), {}, ValueError),
    (1.5, {"dtype": dtypes.int32}, TypeError),
    (1.0, {"dtype": dtypes.int32}, TypeError),
    ([1, 2.5], {"dtype": dtypes.int32}, TypeError),
    (1, {"dtype": dtypes.bool}, TypeError),
    ([True, 2], {"dtype": dtypes.bool}, TypeError),
    ("a", {"dtype": dtypes.int32}, TypeError),
    (1, {"dtype": dtypes.string}, TypeError),
    (1j, {"dtype": dtypes.float32}, TypeError),
    (1, {"dtype": dtypes.qint8}, TypeError),
    ([1, 2], {"dtype": dtypes.qint32}, TypeError),
    (1, {"dtype": dtypes.resource}, TypeError),
    ([1], {"dtype": dtypes.variant}, TypeError),
    (np.array([1, 2], object), {}, TypeError),
    (np.arange(2), {"dtype": dtypes.string}, TypeError),
    (np.datetime64(1, "s"), {}, TypeError),
    ({1: 2}, {}, TypeError),
    ({1}, {}, TypeError),
    (object(), {}, TypeError),
    ([1, 2, 3], {"shape": [2]}, ValueError),
    (np.zeros(5), {"shape": [2]}, ValueError),
    (1, {"shape": [-1]}, ValueError),
    (1, {"shape": [None]}, TypeError),
    (1, {"shape": 3}, TypeError),
    (5, {"shape": [1, 1], "verify_shape": True}, TypeError),
    ([[1, 2]], {"shape": [2], "verify_shape": True}, TypeError),
]

# value, shape, type, elements
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
    assert doctest.testmod(tensor_proto).failed == 0


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


@pytest.mark.parametrize("value, arguments, error", WRONG)
def test_wrong_values(value: Any, arguments: dict[str, Any], error: type[Exception]) -> None:
    for convert in (constant_array, make_tensor_proto):
        with pytest.raises(error):
            convert(value, **arguments)


def test_verified_shape_may_fit() -> None:
    assert constant_array([[1, 2]], shape=[1, 2], verify_shape=True).tolist() == [[1, 2]]


# value, the one field that holds it, what it holds
FIELDS: list[tuple[Any, str, Any]] = [
    (1, "int_val", [1]),
    (np.int64(1), "int64_val", [1]),
    (1.5, "float_val", [1.5]),
    (np.float64(1.5), "double_val", [1.5]),
    (np.float16(1.5), "half_val", [15872]),
    (ml_dtypes.bfloat16(1), "half_val", [16256]),
    (np.uint32(7), "uint32_val", [7]),
    (np.uint64(7), "uint64_val", [7]),
    (np.uint16(7), "int_val", [7]),
    (1j, "dcomplex_val", [0, 1]),
    (np.array([1 + 1j, 2], np.complex64), "scomplex_val", [1, 1, 2, 0]),
    ([True, False], "bool_val", [True, False]),
    (["a", "bc"], "string_val", [b"a", b"bc"]),
    (np.zeros(1, QINT8), "int_val", [0]),
    ([1, 2], "tensor_content", b"\1\0\0\0\2\0\0\0"),
    ([2.0, 2.0], "tensor_content", b"\0\0\0@\0\0\0@"),
    (np.arange(3, dtype=np.int8).view(QINT8), "tensor_content", b"\0\1\2"),
    (np.arange(6, dtype=np.uint8)[::2], "tensor_content", b"\0\2\4"),
]


@pytest.mark.parametrize("value, field, content", FIELDS)
def test_encoding(value: Any, field: str, content: Any) -> None:
    proto = make_tensor_proto(value)
    used = [descriptor.name for descriptor, _ in proto.ListFields()]
    assert [name for name in used if name not in ("dtype", "tensor_shape")] == [field]
    found = getattr(proto, field)
    assert (found if isinstance(found, bytes) else list(found)) == content
    expected = constant_array(value)
    assert make_ndarray(proto).dtype == expected.dtype
    assert make_ndarray(proto).tolist() == expected.tolist()


def _proto(dtype: int, sizes: list[int] | None = None, **fields: Any) -> Any:
    shape = messages("tensor_shape_pb2").TensorShapeProto
    dims = [shape.Dim(size=n) for n in (sizes or [])]
    return messages("tensor_pb2").TensorProto(dtype=dtype, tensor_shape=shape(dim=dims), **fields)


@pytest.mark.parametrize(
    "proto, elements",
    [
        (_proto(1, [2, 2]), [[0, 0], [0, 0]]),
        (_proto(1, [2, 2], float_val=[1, 2]), [[1, 2], [2, 2]]),
        (_proto(7, [2], string_val=[b"a"]), [b"a", b"a"]),
        (_proto(7, [2]), [b"", b""]),
        (_proto(7, [3], tensor_content=b"\1\0\2abc"), [b"a", b"", b"bc"]),
        (_proto(7, [1, 1], tensor_content=b"\x82\1" + b"a" * 130), [[b"a" * 130]]),
        (_proto(8, [2], scomplex_val=[1, 2]), [1 + 2j, 1 + 2j]),
        (_proto(8, [2], scomplex_val=[1, 2, 3]), [1 + 2j, 1 + 2j]),
        (_proto(10, [2], bool_val=[True]), [True, True]),
        (_proto(19, [2], half_val=[15872]), [1.5, 1.5]),
        (_proto(14, [2], half_val=[16256]), [1, 1]),
        (_proto(11, [2], int_val=[1]), [(1,), (1,)]),
        (_proto(4, [2], int_val=[-1]), [255, 255]),
        (_proto(6, [1], int_val=[1000]), [-24]),
        (_proto(9, [2], int_val=[1]), [0, 0]),
        (_proto(1, [0, 3]), []),
        (_proto(1, float_val=[3]), 3),
    ],
)
def test_decoding(proto: Any, elements: Any) -> None:
    assert make_ndarray(proto).tolist() == elements


@pytest.mark.parametrize(
    "proto",
    [
        _proto(1, [2, 2], tensor_content=b"abcd"),
        _proto(1, [2, 2], tensor_content=b"abc"),
        _proto(1, [-1], float_val=[1]),
        _proto(1, [2**62, 2**62], float_val=[1]),
        _proto(1, [2**62], float_val=[1, 2]),
        _proto(7, [1], tensor_content=b"a"),  # a length of 97
        _proto(7, [2], tensor_content=b"\1a"),
        _proto(7, [1], tensor_content=b"\x80"),
        _proto(7, [1], tensor_content=b"\xff" * 20),
        _proto(7, [1 << 40], tensor_content=b"\0"),
    ],
)
def test_corrupt_content(proto: Any) -> None:
    with pytest.raises(ValueError):
        make_ndarray(proto)


@pytest.mark.parametrize("number", [0, 20, 21, 99, 101])
def test_types_without_arrays(number: int) -> None:
    with pytest.raises(TypeError):
        make_ndarray(_proto(number, [2]))


def test_a_huge_run_of_one_value_takes_no_memory() -> None:
    array = make_ndarray(_proto(1, [2**20, 2**20], float_val=[1]))
    assert array.shape == (2**20, 2**20)
    assert array.strides == (0, 0)


def test_decoded_arrays_are_ones_own() -> None:
    array = make_ndarray(make_tensor_proto([1, 2]))
    array[0] = 5
    assert array.tolist() == [5, 2]


def test_one_value_is_stored_once() -> None:
    assert len(array_proto(np.zeros((1000, 10)), dtypes.float64).SerializeToString()) < 40
    assert list(array_proto(np.array([0.0, -0.0, 0.0]), dtypes.float64).double_val) == []
    assert list(array_proto(np.full(3, np.nan), dtypes.float64).double_val) != []


_NUMPY_TYPES = [
    dtype for dtype in dtypes.ALL_DTYPES if dtype.is_numpy_compatible and dtype is not dtypes.string
]


@given(st.sampled_from(_NUMPY_TYPES), st.lists(st.integers(0, 3), max_size=3), st.binary(max_size=16))
def test_any_array_survives(dtype: Any, dims: list[int], data: bytes) -> None:
    stored = np.dtype(dtype.as_numpy_dtype)
    count = int(np.prod(dims))
    content = ((data or b"\0") * (count * stored.itemsize + 1))[: count * stored.itemsize]
    if dtype is dtypes.bool:
        content = bytes(byte & 1 for byte in content)
    array = np.frombuffer(content, stored).reshape(dims)
    for proto in (make_tensor_proto(array, dtype), array_proto(array, dtype)):
        decoded = make_ndarray(type(proto).FromString(proto.SerializeToString()))
        assert decoded.dtype == stored
        assert decoded.shape == array.shape
        if array.dtype.kind not in "fcV":
            assert decoded.tobytes() == array.tobytes()
        elif array.dtype.names is None:
            np.testing.assert_array_equal(decoded.astype(np.complex128), array.astype(np.complex128))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dtype: DT_FLOAT tensor_shape {dim {size: 2}} float_val: [1, 2, 3]", [1.0, 2.0]),
        ("dtype: DT_STRING tensor_shape {dim {size: 0}} string_val: 'a'", []),
        ("dtype: DT_FLOAT tensor_shape {dim {size: 0}} tensor_content: 'abcd'", []),
        ("dtype: DT_COMPLEX64 tensor_shape {dim {size: 1}} scomplex_val: [1, 2, 3, 4]", [1 + 2j]),
    ],
)
def test_values_beyond_the_shape_are_left_out(text: str, expected: list[Any]) -> None:
    assert make_ndarray(text_format.Parse(text, messages("tensor_pb2").TensorProto())).tolist() == expected
