"""Linear algebra in a loop: machine code gives what the kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.operation import F
from flowstone.lowering.programs.matrix_statements import MATRICES
from three_ways import assert_equal_three_ways, repeated

DIMS = (3, 4, 4)


def positive(x: Any) -> Any:
    return tf.matmul(x, x, transpose_b=True)


CASES: dict[str, Callable[[Any], list[Any]]] = {
    "BatchMatMul": lambda x: [F.BatchMatMul(x, x[:, :, :3]), F.BatchMatMul(x, x, adj_x=True, adj_y=True)],
    "BatchMatMulV2": lambda x: [
        tf.matmul(x, x, transpose_b=True),
        tf.matmul(x[:, :2], x, adjoint_b=True),
        F.BatchMatMulV2(x, x[0]),
        F.BatchMatMulV2(x[1:2], tf.stack([x, x[::-1]])),
    ],
    "Cholesky": lambda x: [tf.cholesky(positive(x)), tf.cholesky(positive(x[0]))],
    "MatrixBandPart": lambda x: [
        *[tf.matrix_band_part(x, *band) for band in ((0, -1), (-1, 0), (1, 2), (0, 0), (-1, -1))],
        tf.matrix_band_part(x[:, :2], 0, 1),
    ],
    "MatrixDeterminant": lambda x: [tf.matrix_determinant(x), tf.matrix_determinant(x[1])],
    "MatrixDiag": lambda x: [F.MatrixDiag(x[0, 0]), F.MatrixDiag(x[:, 1])],
    "MatrixDiagPart": lambda x: [
        F.MatrixDiagPart(x) * 2.0,
        F.MatrixDiagPart(x[0, :2]) + 1.0,
        F.MatrixDiagPart(x[:, :, :3]) + 1.0,
    ],
    "MatrixInverse": lambda x: [tf.matrix_inverse(x), tf.matrix_inverse(x[2], adjoint=True)],
    "MatrixSetDiag": lambda x: [F.MatrixSetDiag(x, x[:, 0]), F.MatrixSetDiag(x[0, 1:], x[0, 0, 1:])],
    "MatrixSolve": lambda x: [
        tf.matrix_solve(x, x[:, :, 1:3]),
        tf.matrix_solve(x[0], x[1, :, :1], adjoint=True),
    ],
    "MatrixTriangularSolve": lambda x: [
        tf.matrix_triangular_solve(x, x[:, :, :2], lower=lower, adjoint=adjoint)
        for lower in (False, True)
        for adjoint in (False, True)
    ],
}


def matrices(dtype: Any = np.float32) -> Any:
    return np.random.RandomState(0).rand(*DIMS).astype(dtype) + 2 * np.eye(4, dtype=dtype)


def test_every_operation_has_a_case() -> None:
    assert set(CASES) == set(MATRICES)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_operations(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(dtype, DIMS)
    assert_equal_three_ways(monkeypatch, repeated(CASES[name], x), {x: matrices(dtype)})


@pytest.mark.parametrize("name", ["Cholesky", "MatrixDeterminant", "MatrixInverse", "MatrixSolve"])
def test_gradients(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, DIMS)

    def step(y: Any) -> list[Any]:
        return tf.gradients(CASES[name](y), [y])

    assert_equal_three_ways(monkeypatch, repeated(step, x), {x: matrices()})


def test_a_filter_of_kalman(monkeypatch: pytest.MonkeyPatch) -> None:
    z = tf.placeholder(tf.float32, [6, 2])
    flow, seen = tf.constant([[1.0, 0.1], [0.0, 1.0]]), tf.eye(2)

    def step(state: Any, found: Any) -> Any:
        x, p = tf.matmul(flow, state[0]), tf.matmul(tf.matmul(flow, state[1]), flow, transpose_b=True)
        p += 0.01 * seen
        gain = tf.matmul(p, tf.matrix_inverse(p + 0.1 * seen))
        return x + tf.matmul(gain, found[:, None] - x), tf.matmul(seen - gain, p)

    results = tf.scan(step, z, initializer=(tf.zeros([2, 1]), seen))
    assert_equal_three_ways(monkeypatch, list(results), {z: np.random.RandomState(0).rand(6, 2)})


def test_a_singular_matrix_is_the_error_of_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    x = tf.placeholder(tf.float32, [2, 2])
    _, found = tf.while_loop(
        lambda i, _: i < 3, lambda i, y: (i + 1, tf.matrix_inverse(y, name="inv")), [0, x]
    )
    with tf.Session() as session:
        assert "_Program(" in session.explain(found, {x: np.eye(2)})
        np.testing.assert_array_equal(session.run(found, {x: 2 * np.eye(2)}), np.eye(2) / 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
            session.run(found, {x: np.ones((2, 2))})
        np.testing.assert_array_equal(session.run(found, {x: 2 * np.eye(2)}), np.eye(2) / 2)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (lambda x: [tf.matrix_inverse(tf.tile(x[0], [9, 9]) + 9 * tf.eye(36))], "so many rows"),
        (lambda x: [tf.matrix_solve(x, tf.tile(x, [1, 1, 20]))], "right-hand sides"),
        (lambda x: [F.BatchMatMulV2(tf.tile(x, [4, 4, 16]), tf.tile(x, [4, 16, 4]))], "products are large"),
    ],
)
def test_what_stays_outside(step: Any, reason: str) -> None:
    x = tf.placeholder(tf.float32, DIMS)
    with tf.Session() as session:
        assert reason in session.explain(repeated(step, x), {x: matrices()})
