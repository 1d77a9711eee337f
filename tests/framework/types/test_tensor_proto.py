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
from flowstone.framework.types.tensor_proto import (
    array_proto,
    constant_array,
    constant_of,
    constant_proto,
    make_ndarray,
    make_tensor_proto,
    messages,
)
from flowstone.framework.types.values import to_runtime

QINT8 = np.dtype([("qint8", "i1")])
INFINITY = float("inf")

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
def test_examples() -> None:
    assert doctest.testmod(tensor_proto).failed == 0


@pytest.mark.parametrize("value, arguments, error", WRONG)
def test_wrong_values(value: Any, arguments: dict[str, Any], error: type[Exception]) -> None:
    for convert in (constant_array, make_tensor_proto):
        with pytest.raises(error):
            convert(value, **arguments)


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
    array = make_ndarray(make_tensor_proto(1, shape=[2]))
    array[0] = 5
    assert array.tolist() == [5, 1]


def test_one_value_is_stored_once() -> None:
    assert len(array_proto(np.zeros((1000, 10)), dtypes.float64).SerializeToString()) < 40
    assert list(array_proto(np.array([0.0, -0.0, 0.0]), dtypes.float64).double_val) == []
    assert list(array_proto(np.full(3, np.nan), dtypes.float64).double_val) != []


def test_constants_are_stored_as_they_were_given() -> None:
    """Converters read `tensor_content` of whatever was an array, also where all its values are one."""
    given = constant_proto(np.ones(3, np.float32), dtypes.float32)
    assert (given.tensor_content, list(given.float_val)) == (np.ones(3, np.float32).tobytes(), [])
    repeated = constant_array(1.0, shape=[3])
    assert repeated.tolist() == [1, 1, 1]
    message = constant_proto(repeated, dtypes.float32)
    assert (message.tensor_content, list(message.float_val)) == (b"", [1.0])
    assert constant_proto(constant_of(message), dtypes.float32) == message
    assert to_runtime(repeated, dtypes.float32).is_contiguous()


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.uint16])
def test_types_that_tensorflow_lists(dtype: Any) -> None:
    assert make_tensor_proto([1, 2], dtype).tensor_content == b""
    assert make_ndarray(make_tensor_proto([1, 2], dtype)).tolist() == [1, 2]


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
