"""Exponentials, logarithms and roots of matrices that are hard to diagonalise, and that have no root."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

JORDAN = np.array([[4.0, 1, 0], [0, 4, 1], [0, 0, 4]])
NEARLY_JORDAN = JORDAN + np.diag([0, 1e-9, 2e-9])
MIXED = np.stack(
    [JORDAN, NEARLY_JORDAN, np.diag([1.0, 2, 3]), np.array([[1.0, 5, 0], [-5, 1, 0], [0, 0, 2]])]
)


def run(outputs: Any) -> Any:
    with tf.Session() as session:
        return session.run(outputs)


def exponential(x: np.ndarray) -> np.ndarray:
    """By its series, of a small part of x, squared back."""
    x = x / 1024
    total = term = np.broadcast_to(np.eye(x.shape[-1]), x.shape).astype(x.dtype)
    for k in range(1, 20):
        term = term @ x / k
        total = total + term
    for _ in range(10):
        total = total @ total
    return total


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-4), ("float16", 0.1)])
def test_exponential(dtype: str, tolerance: float) -> None:
    x = (MIXED / 4).astype(dtype)
    found = run(F.MatrixExponential(x))
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found, exponential(x.astype(np.float64)), rtol=tolerance, atol=tolerance)
    assert run(F.MatrixExponential(np.zeros([2, 0, 0]))).shape == (2, 0, 0)


def test_exponential_refuses_other_shapes() -> None:
    with pytest.raises(ValueError, match="Dimensions must be equal"):
        F.MatrixExponential(np.zeros([2, 3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be square"):
        run(F.MatrixExponential(tf.placeholder_with_default(np.zeros([2, 3]), None)))


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-4), ("complex128", 1e-10)]
)
def test_root_times_itself_is_the_matrix(dtype: str, tolerance: float) -> None:
    root = run(F.MatrixSquareRoot(MIXED.astype(dtype)))
    assert root.dtype == dtype
    np.testing.assert_allclose(root @ root, MIXED, rtol=tolerance, atol=tolerance)
    assert (np.linalg.eigvals(root).real > 0).all()


def test_root_of_half_precision() -> None:
    root = run(F.MatrixSquareRoot(JORDAN.astype(np.float16)))
    np.testing.assert_allclose((root @ root).astype(np.float32), JORDAN, atol=2e-2)


def test_no_root() -> None:
    found = run(F.MatrixSquareRoot(np.stack([np.diag([-1.0, 4]), np.eye(2), np.full([2, 2], np.nan)])))
    assert np.isnan(found[[0, 2]]).all()
    np.testing.assert_array_equal(found[1], np.eye(2))


def test_exponential_of_the_logarithm_is_the_matrix() -> None:
    logarithm = run(F.MatrixLogarithm(MIXED.astype(np.complex128)))
    np.testing.assert_allclose(exponential(logarithm), MIXED, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(logarithm[2], np.diag(np.log([1, 2, 3])), atol=1e-12)
    assert (np.abs(np.linalg.eigvals(logarithm).imag) < np.pi).all()


def test_logarithm_of_a_real_negative_number_is_above_the_axis() -> None:
    found = run(F.MatrixLogarithm(np.array([[-1, 0], [0, 1]], np.complex64)))
    np.testing.assert_allclose(found, [[np.pi * 1j, 0], [0, 0]], atol=1e-6)
