"""Tridiagonal and banded systems that are solved in blocks, against dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F


def run(outputs: Any) -> Any:
    with tf.Session() as session:
        return session.run(outputs)


def dense(diagonals: np.ndarray) -> np.ndarray:
    above, main, below = diagonals
    return np.diag(main) + np.diag(above[:-1], 1) + np.diag(below[1:], -1)


@pytest.mark.parametrize("size", [1, 2, 3, 64, 127, 129, 192, 193, 300])
@pytest.mark.parametrize("partial_pivoting", [False, True])
def test_tridiagonal_solution(size: int, partial_pivoting: bool) -> None:
    random = np.random.RandomState(size)
    diagonals, rhs = random.standard_normal([2, 3, size]), random.standard_normal([2, size, 2])
    diagonals[:, 1] += 3 * np.sign(diagonals[:, 1])
    found = run(F.TridiagonalSolve(diagonals, rhs, partial_pivoting=partial_pivoting))
    expected = [np.linalg.solve(dense(each), side) for each, side in zip(diagonals, rhs, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_solution_that_needs_pivots() -> None:
    size = 200
    diagonals = np.stack([np.ones(size), np.zeros(size), np.ones(size)])
    rhs = np.random.RandomState(0).standard_normal([size, 1])
    found = run(F.TridiagonalSolve(diagonals, rhs))
    np.testing.assert_allclose(dense(diagonals) @ found, rhs, atol=1e-10)


@pytest.mark.parametrize("size", [5, 128, 129, 300])
@pytest.mark.parametrize("bands", [1, 2, 4])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("lower", [False, True])
def test_banded_solution(lower: bool, adjoint: bool, bands: int, size: int) -> None:
    random = np.random.RandomState(size)
    diagonals = random.standard_normal([bands, size]) + 1j * random.standard_normal([bands, size])
    diagonals[0 if lower else -1] += 4
    matrix = np.zeros([size, size], complex)
    for distance in range(bands):
        band = diagonals[distance] if lower else diagonals[-1 - distance]
        matrix += np.diag(band[distance:], -distance) if lower else np.diag(band[: size - distance], distance)
    rhs = random.standard_normal([size, 2]).astype(complex)
    found = run(F.BandedTriangularSolve(diagonals, rhs, lower=lower, adjoint=adjoint))
    expected = np.linalg.solve(matrix.conj().T if adjoint else matrix, rhs)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_narrow_types() -> None:
    bands, rhs = np.array([[2, 4, 2], [0, 1, 1]], np.float16), np.array([[2], [5], [3]], np.float16)
    found = run(F.BandedTriangularSolve(bands, rhs))
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, [[1], [1], [1]])
    triangle = F.MatrixTriangularSolve(
        tf.constant([[2.0, 0], [1, 4]], tf.bfloat16), tf.constant([[2.0], [5]], tf.bfloat16)
    )
    assert triangle.dtype is tf.bfloat16
    np.testing.assert_array_equal(run(tf.cast(triangle, tf.float32)), [[1], [1]])


def test_wrong_number_of_bands() -> None:
    with pytest.raises(ValueError, match="Number of bands 3"):
        F.BandedTriangularSolve(np.ones([3, 2]), np.ones([2, 1]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Number of bands 3"):
        run(F.BandedTriangularSolve(tf.placeholder_with_default(np.ones([3, 2]), None), np.ones([2, 1])))
