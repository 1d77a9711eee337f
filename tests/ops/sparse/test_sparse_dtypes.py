"""Types that TensorFlow declares for sparse operations and has no kernels for, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from sparse_values import run

pytestmark = pytest.mark.usefixtures("graph")

PLACES = np.array([[0, 0], [0, 2], [1, 1], [1, 2]], np.int64)
OTHERS = np.array([[0, 1], [0, 2], [1, 1]], np.int64)
SIZES = np.array([2, 3], np.int64)
UNSIGNED = [np.uint16, np.uint32, np.uint64]
HALVES = [np.float16, ml_dtypes.bfloat16]
COMPLEX = [np.complex64, np.complex128]
FIRST, SECOND = [3, 250, 7, 9], [4, 5, 6]


def highest(dtype: Any) -> int:
    return int(np.iinfo(dtype).max)


def dense(places: np.ndarray, values: Any, dtype: Any) -> np.ndarray:
    result = np.zeros(SIZES, dtype)
    result[tuple(places.T)] = np.array(values, dtype)
    return result


@pytest.mark.parametrize("dtype", [*UNSIGNED, *HALVES])
def test_sums(dtype: Any) -> None:
    a, b = np.array(FIRST).astype(dtype), np.array(SECOND).astype(dtype)
    total = F.SparseAdd.several(PLACES, a, SIZES, OTHERS, b, SIZES, tf.constant(0, tf.as_dtype(dtype)))
    rows, values, _ = run(list(total))
    expected = dense(PLACES, FIRST, dtype) + dense(OTHERS, SECOND, dtype)
    np.testing.assert_array_equal(values, expected[tuple(rows.T)])
    assert rows.tolist() == np.argwhere(expected).tolist()


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_sums_of_unsigned_numbers_wrap_and_reach_thresholds(dtype: Any) -> None:
    row, size = np.array([[0]], np.int64), np.array([1], np.int64)
    most, two = np.array([highest(dtype)], dtype), np.array([2], dtype)
    for limit, kept in ((1, 1), (2, 0)):
        total = F.SparseAdd.several(row, most, size, row, two, size, tf.constant(limit, tf.as_dtype(dtype)))
        assert run(total[1]).tolist() == [1] * kept


@pytest.mark.parametrize("dtype", [*UNSIGNED, np.uint8])
@pytest.mark.parametrize("op", ["SparseSparseMaximum", "SparseSparseMinimum"])
def test_extremes_of_large_unsigned_numbers(op: str, dtype: Any) -> None:
    most = highest(dtype)
    a, b = [most, 1, most, 2], [most - 1, most - 2, 0]
    found = getattr(F, op).several(PLACES, np.array(a, dtype), SIZES, OTHERS, np.array(b, dtype), SIZES)
    rows, values = run(list(found))
    choose = np.maximum if op.endswith("Maximum") else np.minimum
    expected = choose(dense(PLACES, a, dtype), dense(OTHERS, b, dtype))
    np.testing.assert_array_equal(values, expected[tuple(rows.T)])


@pytest.mark.parametrize("dtype", UNSIGNED)
@pytest.mark.parametrize("kind", ["", "Sparse"])
def test_reductions_of_large_unsigned_numbers(kind: str, dtype: Any) -> None:
    values = np.array([highest(dtype), 1, highest(dtype) - 1, 2], dtype)
    for name, expected in (("Sum", [0, 0]), ("Max", [highest(dtype), highest(dtype) - 1])):
        total = getattr(F, f"SparseReduce{name}{kind}").several(PLACES, values, SIZES, [1])
        assert run(total[1] if kind else total).tolist() == expected


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64, *COMPLEX])
def test_combinations_with_dense_tensors(dtype: Any) -> None:
    other = np.arange(1, 7).reshape(2, 3).astype(dtype)
    values = np.array(FIRST).astype(dtype)
    chosen = other[tuple(PLACES.T)]
    quotient = values / chosen if np.dtype(dtype).kind == "c" else values // chosen
    for name, expected in (("Add", values + chosen), ("Mul", values * chosen), ("Div", quotient)):
        found = run(getattr(F, f"SparseDenseCwise{name}")(PLACES, values, SIZES, other))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert found.dtype == dtype


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64, np.uint8, np.complex128])
def test_products(dtype: Any) -> None:
    other = np.arange(6).reshape(3, 2).astype(dtype)
    values = np.array([3, 5, 7, 9]).astype(dtype)
    product = run(F.SparseTensorDenseMatMul(PLACES, values, SIZES, other))
    np.testing.assert_array_equal(product, dense(PLACES, values, dtype) @ other)


@pytest.mark.parametrize("dtype", HALVES)
def test_soft_max_of_halves(dtype: Any) -> None:
    found = run(F.SparseSoftmax(PLACES, np.array([1, 2, 3, 3]).astype(dtype), SIZES))
    np.testing.assert_allclose(found.astype(np.float32), [0.269, 0.731, 0.5, 0.5], atol=4e-3)


def test_complex_numbers_have_no_minimum() -> None:
    values = np.ones(4, np.complex64)
    with pytest.raises(tf.errors.OpError):
        run(F.SparseSparseMinimum.several(PLACES, values, SIZES, PLACES, -values, SIZES))


@pytest.mark.parametrize("dtype", [tf.qint8, tf.quint8, tf.qint32])
def test_quantised_values_are_moved(dtype: Any) -> None:
    held = tf.bitcast(tf.constant([1, 2, 3, 4], {1: tf.int8, 4: tf.int32}[dtype.size]), dtype)
    found = tf.sparse_reorder(tf.SparseTensor(PLACES[::-1].copy(), held, SIZES))
    plain = tf.bitcast(found.values, {1: tf.int8, 4: tf.int32}[dtype.size])
    assert run(plain).tolist() == [4, 3, 2, 1]
