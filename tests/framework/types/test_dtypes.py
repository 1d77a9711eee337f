"""Tests of flowstone.framework.types.dtypes; the tables are TensorFlow's own answers."""

from __future__ import annotations

import copy
import doctest
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType, as_dtype

# number: name, NumPy type, size, the letters of its PREDICATES
TABLE: dict[int, tuple[str, Any, int, str]] = {
    1: ("float32", np.float32, 4, "f"),
    2: ("float64", np.float64, 8, "f"),
    3: ("int32", np.int32, 4, "i"),
    4: ("uint8", np.uint8, 1, "iu"),
    5: ("int16", np.int16, 2, "i"),
    6: ("int8", np.int8, 1, "i"),
    7: ("string", np.object_, 8, ""),
    8: ("complex64", np.complex64, 8, "c"),
    9: ("int64", np.int64, 8, "i"),
    10: ("bool", np.bool_, 1, "b"),
    11: ("qint8", np.dtype([("qint8", "i1")]), 1, "q"),
    12: ("quint8", np.dtype([("quint8", "u1")]), 1, "q"),
    13: ("qint32", np.dtype([("qint32", "i4")]), 4, "q"),
    14: ("bfloat16", ml_dtypes.bfloat16, 2, "f"),
    15: ("qint16", np.dtype([("qint16", "i2")]), 2, "q"),
    16: ("quint16", np.dtype([("quint16", "u2")]), 2, "q"),
    17: ("uint16", np.uint16, 2, "iu"),
    18: ("complex128", np.complex128, 16, "c"),
    19: ("float16", np.float16, 2, "f"),
    20: ("resource", None, 1, ""),
    21: ("variant", None, 1, ""),
    22: ("uint32", np.uint32, 4, "iu"),
    23: ("uint64", np.uint64, 8, "iu"),
}
PREDICATES = {
    "b": "is_bool",
    "c": "is_complex",
    "f": "is_floating",
    "i": "is_integer",
    "q": "is_quantized",
    "u": "is_unsigned",
}


def test_the_examples_of_the_module() -> None:
    assert doctest.testmod(dtypes).failed == 0


@pytest.mark.parametrize("number", TABLE)
def test_base_and_reference_type(number: int) -> None:
    name, numpy_type, size, letters = TABLE[number]
    base = DType(number)
    ref = DType(number + 100)
    assert getattr(dtypes, name) is base
    assert getattr(dtypes, f"{name}_ref") is ref
    assert (base.name, ref.name) == (name, f"{name}_ref")
    assert (int(base), base.as_datatype_enum, hash(base)) == (number, number, number)
    assert (int(ref), ref.as_datatype_enum, hash(ref)) == (number + 100, number + 100, number + 100)
    assert base.as_ref is ref and ref.as_ref is ref
    assert base.base_dtype is base and ref.base_dtype is base
    assert (base.is_ref, ref.is_ref, base._is_ref_dtype, ref._is_ref_dtype) == (False, True, False, True)
    for dtype in (base, ref):
        assert dtype.size == size
        assert dtype.torch is base.torch
        assert {x for x, predicate in PREDICATES.items() if getattr(dtype, predicate)} == set(letters)
        assert dtype.is_numpy_compatible is (numpy_type is not None)
        if numpy_type is not None:
            assert dtype.as_numpy_dtype == numpy_type


@pytest.mark.parametrize("dtype", [dtypes.resource, dtypes.variant, dtypes.resource_ref], ids=str)
def test_handles_have_no_numpy_type(dtype: DType) -> None:
    with pytest.raises(KeyError):
        dtype.as_numpy_dtype  # noqa: B018


def test_printing() -> None:
    assert str(dtypes.float32_ref) == "<dtype: 'float32_ref'>"
    assert repr(dtypes.float16) == "tf.float16"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (dtypes.int8, "int8"),
        (dtypes.int8_ref, "int8_ref"),
        (3, "int32"),
        (103, "int32_ref"),
        ("float", "float32"),
        ("double", "float64"),
        ("half", "float16"),
        ("float_ref", "float32_ref"),
        ("half_ref", "float16_ref"),
        ("quint16_ref", "quint16_ref"),
        (float, "float32"),
        (bool, "bool"),
        (object, "string"),
        (np.float64, "float64"),
        (np.dtype("int16"), "int16"),
        (np.dtype(">f4"), "float32"),
        (np.longlong, "int64"),
        (np.ulonglong, "uint64"),
        (np.dtype("S5"), "string"),
        (np.dtype("U5"), "string"),
        (np.dtype("O"), "string"),
        (np.str_, "string"),
        (np.bytes_, "string"),
        (np.dtype([("qint8", np.int8)]), "qint8"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.dtype(ml_dtypes.bfloat16), "bfloat16"),
        (torch.bfloat16, "bfloat16"),
        (torch.uint32, "uint32"),
        (np.ones((2, 2), np.int64), "int64"),
        (torch.ones(2, dtype=torch.float64), "float64"),
    ],
    ids=repr,
)
def test_as_dtype(value: Any, expected: str) -> None:
    assert as_dtype(value) is getattr(dtypes, expected)


@pytest.mark.parametrize(
    "value",
    [
        None, 0, 24, 100, 124, "str", "int", "i4", "", b"float32", int, str, bytes, complex, list, [], {}, (),
        np.longdouble, np.dtype("M8[s]"), np.dtype([("resource", np.ubyte)]), torch.qint8,
    ],
    ids=repr,
)  # fmt: skip
def test_as_dtype_refuses(value: Any) -> None:
    with pytest.raises(TypeError, match="Cannot convert the argument `type_value`"):
        as_dtype(value)


def test_construction_by_number() -> None:
    assert DType(dtypes.float32) is dtypes.float32
    with pytest.raises(TypeError, match="500 does not correspond to a valid"):
        DType(500)
    with pytest.raises(ValueError):
        DType("float32")  # type: ignore[arg-type]


def test_equality_takes_any_spelling() -> None:
    for spelling in (1, "float", "float32", np.float32, np.dtype("float32"), float, torch.float32):
        assert dtypes.float32 == spelling
        assert (dtypes.float32 != spelling) is False
    for other in (None, 0, "foo", dtypes.float32_ref, dtypes.int32, np.float64, []):
        assert dtypes.float32 != other
        assert (dtypes.float32 == other) is False
    assert dtypes.float32_ref == 101
    assert "float32" in [dtypes.int32, dtypes.float32]


def test_copies_are_the_type_itself() -> None:
    for number in TABLE:
        for dtype in (DType(number), DType(number + 100)):
            assert copy.copy(dtype) is dtype
            assert copy.deepcopy(dtype) is dtype
            assert pickle.loads(pickle.dumps(dtype)) is dtype


def test_compatibility_of_references() -> None:
    assert dtypes.float32.is_compatible_with(dtypes.float32_ref)
    assert dtypes.float32_ref.is_compatible_with("float32_ref")
    assert not dtypes.float32_ref.is_compatible_with(dtypes.float32)
    assert not dtypes.float32.is_compatible_with(dtypes.float64)
    with pytest.raises(TypeError):
        dtypes.float32.is_compatible_with("foo")


def test_real_dtype() -> None:
    assert dtypes.complex64.real_dtype is dtypes.float32
    assert dtypes.complex64_ref.real_dtype is dtypes.float32
    assert dtypes.complex128.real_dtype is dtypes.float64
    assert dtypes.float32_ref.real_dtype is dtypes.float32_ref
    assert dtypes.string.real_dtype is dtypes.string


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL_DTYPES if d.is_integer], ids=str)
def test_integer_range(dtype: DType) -> None:
    info = np.iinfo(dtype.as_numpy_dtype)
    assert (dtype.min, dtype.max) == (info.min, info.max)
    assert type(dtype.min) is int
    assert dtype.limits == (0, info.max)


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL_DTYPES if d.is_floating], ids=str)
def test_floating_range(dtype: DType) -> None:
    assert type(dtype.min) is type(dtype.max) is dtype.as_numpy_dtype
    assert dtype.min == -dtype.max
    with np.errstate(over="ignore"):
        assert np.isfinite(dtype.max) and np.isinf(np.nextafter(dtype.max, dtype.as_numpy_dtype(np.inf)))


def test_ranges_that_are_not_defined() -> None:
    for name in ("bool", "string", "complex64", "qint8", "resource", "variant"):
        dtype = getattr(dtypes, name)
        with pytest.raises(TypeError, match="Cannot find minimum value of"):
            dtype.min  # noqa: B018
        with pytest.raises(TypeError, match="Cannot find maximum value of"):
            dtype.max  # noqa: B018
    assert (dtypes.bool.limits, dtypes.float32.limits, dtypes.float64_ref.limits) == (
        (0, True),
        (0, 1),
        (0, 1),
    )
    for name in ("string", "float16", "bfloat16", "complex64", "qint8"):
        with pytest.raises(ValueError, match="does not have defined limits"):
            getattr(dtypes, name).limits  # noqa: B018


def test_torch_types() -> None:
    assert dtypes.quint8.torch is torch.uint8 and dtypes.qint32.torch is torch.int32
    assert dtypes.string.torch is dtypes.resource.torch is dtypes.variant.torch is None
    for dtype in dtypes.ALL_DTYPES:
        if dtype.torch is not None:
            stored = dtypes.from_torch(dtype.torch)
            assert not stored.is_quantized
            assert stored is dtype or dtype.is_quantized
            assert torch.empty((), dtype=dtype.torch).element_size() == dtype.size
    with pytest.raises(KeyError):
        dtypes.from_torch(torch.qint8)


def test_lists_for_declarations() -> None:
    assert {dtype.name for dtype in dtypes.QUANTIZED_DTYPES} == {
        name + suffix
        for name in ("qint8", "quint8", "qint16", "quint16", "qint32")
        for suffix in ("", "_ref")
    }
    assert set(dtypes.INTEGERS) == {d for d in dtypes.ALL_DTYPES if d.is_integer}
    assert set(dtypes.REAL) == {*dtypes.INTEGERS, *dtypes.FLOATS}
    assert set(dtypes.NUMBERS) == {*dtypes.REAL, *dtypes.COMPLEX, dtypes.qint8, dtypes.quint8, dtypes.qint32}
    assert set(dtypes.FLOATS_WITH_BFLOAT16) == {d for d in dtypes.ALL_DTYPES if d.is_floating}
    assert len(dtypes.ALL_DTYPES) == len(TABLE)
