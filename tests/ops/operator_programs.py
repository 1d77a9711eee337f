"""Linear operators that the oracle and Flowstone both make, by name: functions of `tf`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_random = np.random.RandomState(21)


def _values(*shape: int) -> np.ndarray:
    return np.round(_random.standard_normal(shape), 2)


SQUARE = _values(2, 3, 3) + 3 * np.eye(3)
OTHER = _values(3, 3) + 3 * np.eye(3)
COMPLEX = SQUARE + 1j * _values(2, 3, 3)
DEFINITE = np.round(SQUARE @ SQUARE.swapaxes(-1, -2), 2) + np.eye(3)
WIDE = _values(3, 4)
TALL = _values(2, 3, 2)
TRIDIAGONAL = np.tril(np.triu(SQUARE, -1), 1)
ROW = _values(2, 3) + 3
SPECTRUM = _values(2, 3, 4) + 4 + 1j * _values(2, 3, 4)
TRIPLE = _values(2, 2, 3) + 4

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "full": lambda tf: tf.linalg.LinearOperatorFullMatrix(SQUARE),
    "full complex": lambda tf: tf.linalg.LinearOperatorFullMatrix(COMPLEX, is_non_singular=True),
    "full definite": lambda tf: tf.linalg.LinearOperatorFullMatrix(
        DEFINITE, is_self_adjoint=True, is_positive_definite=True
    ),
    "full wide": lambda tf: tf.linalg.LinearOperatorFullMatrix(WIDE),
    "diag": lambda tf: tf.linalg.LinearOperatorDiag(ROW, is_positive_definite=True),
    "diag complex": lambda tf: tf.linalg.LinearOperatorDiag(ROW + 1j, is_non_singular=True),
    "identity": lambda tf: tf.linalg.LinearOperatorIdentity(3, dtype=tf.float64),
    "identity batch": lambda tf: tf.linalg.LinearOperatorIdentity(3, [2], dtype=tf.float64),
    "scaled": lambda tf: tf.linalg.LinearOperatorScaledIdentity(3, ROW[:, 0], is_positive_definite=True),
    "scaled complex": lambda tf: tf.linalg.LinearOperatorScaledIdentity(3, np.array([1 + 2j, 3j])),
    "zeros": lambda tf: tf.linalg.LinearOperatorZeros(3, batch_shape=[2], dtype=tf.float64),
    "zeros wide": lambda tf: tf.linalg.LinearOperatorZeros(
        3, 4, dtype=tf.float64, is_square=False, is_self_adjoint=False
    ),
    "triangular": lambda tf: tf.linalg.LinearOperatorLowerTriangular(SQUARE, is_non_singular=True),
    "triangular complex": lambda tf: tf.linalg.LinearOperatorLowerTriangular(COMPLEX),
    "update": lambda tf: tf.linalg.LinearOperatorLowRankUpdate(
        tf.linalg.LinearOperatorDiag(ROW, is_positive_definite=True), TALL
    ),
    "update two sides": lambda tf: tf.linalg.LinearOperatorLowRankUpdate(
        tf.linalg.LinearOperatorFullMatrix(SQUARE, is_non_singular=True), TALL, ROW[:, :2], TALL[0] / 2
    ),
    "update complex": lambda tf: tf.linalg.LinearOperatorLowRankUpdate(
        tf.linalg.LinearOperatorFullMatrix(COMPLEX), TALL + 1j, ROW[:, :2] + 1j, TALL - 2j
    ),
    "update positive": lambda tf: tf.linalg.LinearOperatorLowRankUpdate(
        tf.linalg.LinearOperatorFullMatrix(DEFINITE, is_self_adjoint=True, is_positive_definite=True),
        TALL,
        ROW[:, :2],
        is_diag_update_positive=True,
    ),
    "composition": lambda tf: tf.linalg.LinearOperatorComposition(
        [PROGRAMS["full"](tf), tf.linalg.LinearOperatorFullMatrix(OTHER, is_non_singular=True)]
    ),
    "composition wide": lambda tf: tf.linalg.LinearOperatorComposition(
        [PROGRAMS["full"](tf), PROGRAMS["full wide"](tf)]
    ),
    "block diag": lambda tf: tf.linalg.LinearOperatorBlockDiag(
        [PROGRAMS["full"](tf), tf.linalg.LinearOperatorDiag(ROW[0], is_non_singular=True)]
    ),
    "block diag definite": lambda tf: tf.linalg.LinearOperatorBlockDiag(
        [PROGRAMS["full definite"](tf), PROGRAMS["diag"](tf)]
    ),
    "block lower": lambda tf: tf.linalg.LinearOperatorBlockLowerTriangular(
        [
            [PROGRAMS["triangular"](tf)],
            [tf.linalg.LinearOperatorFullMatrix(WIDE.T), tf.linalg.LinearOperatorDiag(ROW[0, [0, 1, 2, 0]])],
        ]
    ),
    "kronecker": lambda tf: tf.linalg.LinearOperatorKronecker(
        [PROGRAMS["full"](tf), tf.linalg.LinearOperatorFullMatrix(OTHER[:2, :2], is_non_singular=True)]
    ),
    "kronecker definite": lambda tf: tf.linalg.LinearOperatorKronecker(
        [PROGRAMS["full definite"](tf), PROGRAMS["diag"](tf)]
    ),
    "kronecker complex": lambda tf: tf.linalg.LinearOperatorKronecker(
        [PROGRAMS["full complex"](tf), tf.linalg.LinearOperatorDiag(ROW[0] + 1j)]
    ),
    "kronecker wide": lambda tf: tf.linalg.LinearOperatorKronecker(
        [PROGRAMS["full wide"](tf), tf.linalg.LinearOperatorFullMatrix(WIDE[:2])]
    ),
    "circulant": lambda tf: tf.linalg.LinearOperatorCirculant(SPECTRUM[:, 0], tf.complex128),
    "circulant definite": lambda tf: tf.linalg.LinearOperatorCirculant(
        np.abs(SPECTRUM[:, 0]).astype(np.complex64),
        is_self_adjoint=True,
        is_positive_definite=True,
    ),
    "circulant real": lambda tf: tf.linalg.LinearOperatorCirculant(
        np.array([6, 1 + 2j, 3, 1 - 2j]), tf.float64, is_non_singular=True
    ),
    "circulant 2d": lambda tf: tf.linalg.LinearOperatorCirculant2D(SPECTRUM, tf.complex128),
    "circulant 3d": lambda tf: tf.linalg.LinearOperatorCirculant3D(
        TRIPLE + 1j * TRIPLE[::-1], tf.complex128, is_non_singular=True
    ),
    "toeplitz": lambda tf: tf.linalg.LinearOperatorToeplitz(
        ROW + 3, np.concatenate([ROW[:, :1] + 3, WIDE[:2, :2]], 1)
    ),
    "toeplitz complex": lambda tf: tf.linalg.LinearOperatorToeplitz(
        np.array([5 + 1j, 2, 3j]), np.array([5 + 1j, 1 + 2j, 2])
    ),
    "householder": lambda tf: tf.linalg.LinearOperatorHouseholder(ROW),
    "householder complex": lambda tf: tf.linalg.LinearOperatorHouseholder(ROW + 1j * ROW[::-1]),
    "permutation": lambda tf: tf.linalg.LinearOperatorPermutation([2, 0, 1], dtype=tf.float64),
    "permutation batch": lambda tf: tf.linalg.LinearOperatorPermutation(
        [[2, 0, 1], [1, 0, 2]], dtype=tf.float64
    ),
    "tridiag": lambda tf: tf.linalg.LinearOperatorTridiag(SQUARE),
    "tridiag complex": lambda tf: tf.linalg.LinearOperatorTridiag(COMPLEX + 2 * np.array([[0], [1], [0]])),
    "tridiag matrix": lambda tf: tf.linalg.LinearOperatorTridiag(TRIDIAGONAL, "matrix"),
    "adjoint": lambda tf: tf.linalg.LinearOperatorAdjoint(PROGRAMS["full complex"](tf)),
    "adjoint wide": lambda tf: tf.linalg.LinearOperatorAdjoint(PROGRAMS["full wide"](tf)),
    "inversion": lambda tf: tf.linalg.LinearOperatorInversion(PROGRAMS["full complex"](tf)),
    "inversion definite": lambda tf: tf.linalg.LinearOperatorInversion(PROGRAMS["full definite"](tf)),
}
HINTS = ("is_square", "is_non_singular", "is_self_adjoint", "is_positive_definite")
MADE = ("adjoint", "inverse", "cholesky")


def facts(operator: Any) -> dict[str, Any]:
    """What an operator says of itself, as JSON has it."""
    found: dict[str, Any] = {hint: getattr(operator, hint) for hint in HINTS}
    found |= {"name": operator.name, "dtype": operator.dtype.name, "shape": operator.shape.as_list()}
    for method in MADE:
        try:
            found[method] = type(getattr(operator, method)()).__name__
        except Exception as error:
            found[method] = type(error).__name__
    return found
