"""Public functions of matrices: values and gradients are TensorFlow's, names and errors too."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import matrix_programs
import signal_programs
from flowstone.framework import flags
from matrix_programs import PROGRAMS

GOLDEN = dict(np.load(pathlib.Path(__file__).parents[2] / "golden" / "matrices.npz"))
# The oracle does not conjugate, differentiates a bisection, or takes signs of vectors of no singular value.
# `test_factors.py` compares with differences.
WRONG_GRADIENTS = ("sqrtm complex", "eigenvalues tridiagonal", "singular values low")


def close(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program(name: str) -> None:
    function, x = PROGRAMS[name]
    expected = GOLDEN[name]
    given = signal_programs.holder(tf, name, x)
    y = function(tf, given)
    assert y.shape.is_compatible_with(expected.shape)
    with tf.Session() as session:
        close(session.run(y, {given: x}), expected)
        if f"{name}/gradient" in GOLDEN and not name.startswith(WRONG_GRADIENTS):
            flow = signal_programs.flow_of(name, expected.shape, expected.dtype)
            (gradient,) = tf.gradients(y, [given], [tf.constant(flow)])
            close(session.run(gradient, {given: x}), GOLDEN[f"{name}/gradient"])


def test_every_program_has_its_answer() -> None:
    assert {name.removesuffix("/gradient") for name in GOLDEN} == set(PROGRAMS)


def run(outputs: Any) -> Any:
    with tf.Session() as session:
        return session.run(outputs)


def test_names_of_another_namespace() -> None:
    assert tf.linalg.inv is tf.matrix_inverse
    assert tf.linalg.eigh is tf.self_adjoint_eig
    assert tf.linalg.cholesky is tf.cholesky
    assert tf.linalg.diag_part is tf.matrix_diag_part


def test_singular_vectors_give_the_matrix_back() -> None:
    for x in (matrix_programs.DEEP, matrix_programs.WIDE, matrix_programs.COMPLEX):
        s, u, v = run(tf.svd(x))
        assert s.dtype == np.float64
        np.testing.assert_allclose((u * s[..., None, :]) @ v.conj().swapaxes(-1, -2), x, atol=1e-12)
    q, r = run(tf.qr(matrix_programs.DEEP, full_matrices=True))
    np.testing.assert_allclose(q @ r, matrix_programs.DEEP, atol=1e-12)


def test_eigenvectors() -> None:
    e, v = run(tf.self_adjoint_eig(matrix_programs.HERMITIAN))
    np.testing.assert_allclose(matrix_programs.HERMITIAN @ v, v * e[..., None, :], atol=1e-10)
    e, v = run(tf.linalg.eig(matrix_programs.SQUARE))
    np.testing.assert_allclose(matrix_programs.SQUARE @ v, v * e[..., None, :], atol=1e-10)
    values = run(tf.linalg.eigvals(matrix_programs.SQUARE.astype(np.float32)))
    assert values.dtype == np.complex64
    np.testing.assert_allclose(np.sort_complex(values), np.sort_complex(e), atol=1e-4)
    alpha, beta = np.array([1.0, 2, 3, 4]), np.array([0.5, 0.25, 2])
    for dtype in (np.float64, np.complex128):
        side = beta.astype(dtype) * (1 if dtype is np.float64 else 1j)
        e, v = run(tf.linalg.eigh_tridiagonal(alpha.astype(dtype), side, False, "i", (1, 2)))
        matrix = np.diag(alpha) + np.diag(side, 1) + np.diag(side.conj(), -1)
        np.testing.assert_allclose(e, np.linalg.eigvalsh(matrix)[1:3])
        np.testing.assert_allclose(matrix @ v, v * e, atol=1e-12)
    e, v = run(tf.linalg.eigh_tridiagonal(alpha, beta, False, "v", (1.0, 3.0)))
    assert v.shape == (4, len(e)) and ((e > 1) & (e <= 3)).all()
    for keywords in ({"select": "x"}, {"select": "i"}, {"select": "v", "select_range": (2, 1)}):
        with pytest.raises(ValueError, match="select"):
            tf.linalg.eigh_tridiagonal(alpha, beta, **keywords)


def test_complex_pseudo_inverse_and_rank() -> None:
    x = matrix_programs.COMPLEX[:, :, :2] @ matrix_programs.COMPLEX[:, :2]
    np.testing.assert_allclose(run(tf.linalg.pinv(x)), np.linalg.pinv(x), atol=1e-10)
    np.testing.assert_array_equal(run(tf.linalg.matrix_rank(x)), [2, 2])


def test_functions_of_complex_matrices() -> None:
    x = matrix_programs.COMPLEX
    np.testing.assert_allclose(run(tf.linalg.expm(tf.linalg.logm(x))), x, atol=1e-10)
    root = run(tf.matrix_square_root(x))
    np.testing.assert_allclose(root @ root, x, atol=1e-10)


def test_banded_solution() -> None:
    found = run(tf.linalg.banded_triangular_solve([[2.0, 4, 2], [0, 1, 1]], [[2.0], [5], [3]]))
    np.testing.assert_array_equal(found, [[1], [1], [1]])


def test_numbers_that_are_no_permutation() -> None:
    for perm, fails in (([1, 0], False), ([1, 1], True), ([0, 2], True)):
        order = tf.placeholder_with_default(np.array(perm, np.int32), [2])
        solution = tf.linalg.lu_solve(np.eye(2), order, np.ones([2, 1]), validate_args=True)
        if fails:
            with pytest.raises(tf.errors.InvalidArgumentError, match="no permutation"):
                run(solution)
        else:
            np.testing.assert_array_equal(run(solution), np.ones([2, 1]))


def test_errors_of_shapes_and_types() -> None:
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        tf.linalg.pinv(np.ones([3]))
    with pytest.raises(TypeError, match="float"):
        tf.linalg.matrix_rank(np.ones([3, 3], np.int32))
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        tf.linalg.lu_solve(np.ones([3]), np.arange(3), np.ones([3, 1]))
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        tf.linalg.lu_solve(np.eye(3), np.arange(3), np.ones([3]))
    with pytest.raises(ValueError, match="rank"):
        tf.linalg.lu_solve(np.eye(3), np.ones([3, 3], np.int32), np.ones([3, 1]))
    with pytest.raises(ValueError, match="diagonals_format"):
        tf.linalg.tridiagonal_solve(np.ones([3, 4]), np.ones([4]), "other")
    with pytest.raises(ValueError, match="length 3"):
        tf.linalg.tridiagonal_solve(np.ones([4, 4]), np.ones([4]), "sequence")


def test_names_of_nodes() -> None:
    with tf.Graph().as_default():
        x = np.eye(2)
        for tensor, name in [
            (tf.cholesky(x), "Cholesky"),
            (tf.matrix_inverse(x), "MatrixInverse"),
            (tf.matrix_determinant(x), "MatrixDeterminant"),
            (tf.matrix_solve(x, x), "MatrixSolve"),
            (tf.cholesky_solve(x, x), "cholesky_solve/MatrixTriangularSolve_1"),
            (tf.self_adjoint_eigvals(x), "SelfAdjointEigV2"),
            (tf.svd(x, compute_uv=False), "Svd"),
            (tf.qr(x)[0], "Qr"),
            (tf.linalg.adjoint(x), "adjoint/matrix_transpose/transpose"),
            (tf.linalg.slogdet(x)[0], "LogMatrixDeterminant"),
        ]:
            assert tensor.op.name == name
        assert tf.matrix_solve_ls(x, x).op.name.startswith("matrix_solve_ls/")


@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(False, True), (True, False), (True, True)])
def test_products_of_transposed_integer_matrices(
    monkeypatch: pytest.MonkeyPatch, transpose_a: bool, transpose_b: bool
) -> None:
    random = np.random.RandomState(0)
    x, y = (random.randint(-(2**30), 2**30, dims).astype(np.int32) for dims in ((30, 40), (40, 50)))
    given = [x.T if transpose_a else x, y.T if transpose_b else y]
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = [tf.placeholder(tf.int32, each.shape) for each in given]
            product = tf.matmul(*fed, transpose_a=transpose_a, transpose_b=transpose_b)
            np.testing.assert_array_equal(session.run(product, dict(zip(fed, given))), x @ y)
