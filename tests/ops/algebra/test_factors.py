"""Factors that are unique only up to signs or phases: what they make together, and what gradients they have.

Also what the table cannot ask the oracle: errors of TensorFlow 1.15 that its later versions do not raise, and
the gradients of complex matrices that theirs are wrong for (compared with differences here).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.operation import F

TYPES = ["float32", "float64", "complex64", "complex128"]


def matrices(dtype: str, *shape: int) -> np.ndarray:
    random = np.random.RandomState(sum(shape))
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def hermitian(dtype: str, *shape: int) -> np.ndarray:
    x = matrices(dtype, *shape)
    return x + x.conj().swapaxes(-1, -2)


def adjoint(x: np.ndarray) -> np.ndarray:
    return x.conj().swapaxes(-1, -2)


def run(outputs: Any) -> Any:
    with tf.Session() as session:
        return session.run(outputs)


def tolerance(dtype: str) -> float:
    return 1e-4 if dtype in ("float32", "complex64") else 1e-10


def assert_close(actual: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance(dtype), atol=tolerance(dtype))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("full_matrices", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 4)])
def test_singular_vectors(shape: tuple[int, ...], full_matrices: bool, dtype: str) -> None:
    x = matrices(dtype, *shape)
    s, u, v = run(F.Svd.several(x, full_matrices=full_matrices))
    p = min(shape[-2:])
    assert u.shape[-1] == (shape[-2] if full_matrices else p)
    assert v.shape[-1] == (shape[-1] if full_matrices else p)
    assert s.dtype == x.dtype
    assert_close((u[..., :p] * s[..., None, :]) @ adjoint(v[..., :p]), x, dtype)
    for vectors in (u, v):
        eye = np.broadcast_to(np.eye(vectors.shape[-1]), (*shape[:-2], *[vectors.shape[-1]] * 2))
        assert_close(adjoint(vectors) @ vectors, eye, dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_eigenvectors_of_hermitian_matrices(dtype: str) -> None:
    x = hermitian(dtype, 2, 4, 4)
    e, v = run(F.SelfAdjointEigV2.several(x))
    assert_close(x @ v, v * e[..., None, :], dtype)
    assert_close(adjoint(v) @ v, np.broadcast_to(np.eye(4), (2, 4, 4)), dtype)
    assert_close(e.real, np.linalg.eigvalsh(x), dtype)


def test_values_and_vectors_in_one_matrix() -> None:
    x = hermitian("float64", 2, 4, 4)
    with tf.Graph().as_default() as graph:
        graph.producer = 10
        output = F.SelfAdjointEig(x)
        assert output.shape.as_list() == [2, 5, 4]
        joined = run(output)
        with pytest.raises(LookupError):
            tf.gradients(output, output.op.inputs[0])
    e, v = joined[:, 0], joined[:, 1:]
    assert_close(x @ v, v * e[:, None], "float64")


@pytest.mark.parametrize("dtype", TYPES)
def test_eigenvectors_of_any_matrix(dtype: str) -> None:
    x = matrices(dtype, 2, 4, 4)
    wide = "complex128" if dtype in ("float64", "complex128") else "complex64"
    e, v = run(F.Eig.several(x, Tout=wide))
    only, none = run(F.Eig.several(x, Tout=wide, compute_v=False))
    assert e.dtype == v.dtype == wide
    assert_close(x @ v, v * e[:, None], dtype)
    assert_close(np.sort_complex(only), np.sort_complex(np.linalg.eigvals(x)), dtype)
    assert none.size == 0


@pytest.mark.parametrize("dtype", [*TYPES, "float16"])
def test_lu_of_permuted_rows(dtype: str) -> None:
    x = matrices(dtype, 2, 4, 4)
    lu, p = run(F.Lu.several(x))
    assert lu.dtype == x.dtype and p.dtype == np.int32
    lower, upper = np.tril(lu, -1) + np.eye(4), np.triu(lu)
    rows = np.take_along_axis(x, p[..., None], -2)
    np.testing.assert_allclose(lower @ upper, rows, atol=2e-2 if dtype == "float16" else tolerance(dtype))


# ---- gradients, by differences


def numeric(f: Callable[[np.ndarray], float], x: np.ndarray) -> np.ndarray:
    """The gradient of a real function of x, real or complex."""
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        for step in (1e-6, 1e-6j) if np.iscomplexobj(x) else (1e-6,):
            up, down = x.copy(), x.copy()
            up[index] += step
            down[index] -= step
            result[index] += (f(up) - f(down)) / (2e-6) * (step / 1e-6)
    return result


def check_gradient(build: Callable[[Any], Any], x: np.ndarray, atol: float = 1e-6) -> None:
    """Compares the gradient of what `build` makes of x, weighted by random numbers, with differences."""
    holder = tf.placeholder(x.dtype.name, x.shape)
    total = 0.0
    random = np.random.RandomState(3)
    for y in build(holder):
        weights = random.standard_normal(y.shape.as_list())
        if y.dtype.is_complex:
            weights = weights + 1j * random.standard_normal(y.shape.as_list())
            total += tf.reduce_sum(tf.real(tf.conj(tf.constant(weights, y.dtype)) * y))
        else:
            total += tf.reduce_sum(tf.constant(weights, y.dtype) * y)
    (gradient,) = tf.gradients(total, [holder])
    with tf.Session() as session:
        found = session.run(gradient, {holder: x})
        expected = numeric(lambda value: float(session.run(total, {holder: value})), x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=atol)


def times(a: Any, b: Any, adjoint_b: bool = False) -> Any:
    return tf.matmul(a, b, adjoint_b=adjoint_b)


def polar(x: Any, full: bool = False) -> list[Any]:
    """Functions of singular vectors that do not depend on their signs and phases."""
    s, u, v = F.Svd.several(x, full_matrices=full)
    p = min(x.shape.as_list()[-2:])
    first = times(u[..., :p], v[..., :p], adjoint_b=True)
    return [first, times(u * u.dtype.as_numpy_dtype(2), u, True), times(v, v, True), tf.real(s)]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 2)])
def test_gradient_of_singular_vectors(shape: tuple[int, ...], dtype: str) -> None:
    check_gradient(polar, matrices(dtype, *shape))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 2), (2, 3)])
def test_gradient_of_all_singular_vectors(shape: tuple[int, ...], dtype: str) -> None:
    def build(x: Any) -> list[Any]:
        _, u, v = F.Svd.several(x, full_matrices=True)
        last_u, last_v = u[..., 2:], v[..., 2:]
        return [*polar(x, True), times(last_u, last_u, True), times(last_v, last_v, True)]

    check_gradient(build, matrices(dtype, *shape))


def test_gradient_of_singular_vectors_is_refused_where_they_are_not_determined() -> None:
    x = tf.placeholder(tf.float64, [4, 2])
    with pytest.raises(NotImplementedError, match="full_matrices is True"):
        tf.gradients(F.Svd.several(x, full_matrices=True)[0], x)
    with pytest.raises(NotImplementedError, match="unknown inner matrix shape"):
        tf.gradients(F.Svd.several(y := tf.placeholder(tf.float64, [None, 2]))[0], y)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradient_of_eigenvectors_of_hermitian_matrices(dtype: str) -> None:
    def build(x: Any) -> list[Any]:
        matrix = x + tf.linalg.transpose(tf.conj(x))
        e, v = F.SelfAdjointEigV2.several(matrix)
        return [times(v * tf.exp(e)[..., None, :], v, True), tf.real(e)]

    check_gradient(build, matrices(dtype, 2, 3, 3), atol=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradient_of_eigenvectors_of_any_matrix(dtype: str) -> None:
    def build(x: Any) -> list[Any]:
        e, v = F.Eig.several(x, Tout="complex128")
        inverse = F.MatrixInverse(v)
        return [times(v * tf.exp(e)[..., None, :], inverse), tf.reduce_sum(e * e, -1)]

    check_gradient(build, matrices(dtype, 2, 3, 3), atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_gradient_of_complex_orthogonal_factors(shape: tuple[int, ...]) -> None:
    check_gradient(lambda x: [*F.Qr.several(x)], matrices("complex128", *shape))


def test_gradient_of_complex_least_squares() -> None:
    """Of more unknowns than equations; TensorFlow's of others, which the table has, is no derivative."""
    shape = (2, 4)
    rhs = matrices("complex128", shape[0], 2)
    check_gradient(
        lambda x: [F.MatrixSolveLs(x, tf.constant(rhs), np.float64(0.3))], matrices("complex128", *shape)
    )
    matrix = matrices("complex128", *shape)
    check_gradient(lambda y: [F.MatrixSolveLs(tf.constant(matrix), y, np.float64(0.3))], rhs)


def test_gradient_of_complex_exponentials() -> None:
    """TensorFlow's of determinants, square roots and tridiagonal systems, which the table has, are none."""
    check_gradient(lambda x: [F.MatrixExponential(x)], matrices("complex128", 2, 3, 3))


def test_gradient_of_least_squares_of_unknown_shape() -> None:
    for shape in ((4, 2), (2, 4)):
        x, holder = matrices("float64", *shape), tf.placeholder(tf.float64)
        rhs = tf.constant(matrices("float64", shape[0], 2))
        fixed = tf.constant(x)
        results = [F.MatrixSolveLs(each, rhs, np.float64(0.1)) for each in (holder, fixed)]
        gradients = [tf.gradients(*pair)[0] for pair in zip(results, (holder, fixed), strict=True)]
        with tf.Session() as session:
            found, expected = session.run(gradients, {holder: x})
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_gradient_of_orthogonal_least_squares_is_refused() -> None:
    x = tf.constant(matrices("float64", 4, 2))
    with pytest.raises(ValueError, match="fast=False"):
        tf.gradients(F.MatrixSolveLs(x, tf.constant(matrices("float64", 4, 1)), np.float64(0), fast=False), x)


# ---- errors


@pytest.mark.parametrize("dtype", TYPES)
def test_a_matrix_that_is_not_positive_definite(dtype: str) -> None:
    for x in ([[1, 2], [2, 1]], [np.eye(2), -np.eye(2)]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Cholesky decomposition was not successful"):
            run(F.Cholesky(np.array(x, dtype)))


def test_a_triangle_with_a_zero_on_its_diagonal() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="Input matrix is not invertible"):
        run(F.MatrixTriangularSolve(np.array([[1.0, 0.0], [2.0, 0.0]]), np.ones([2, 1])))


def test_eigenvalues_of_infinite_matrices() -> None:
    x = np.array([[[np.inf, 1], [1, 2]], [[2, 0], [0, 1]]])
    e, v = run(F.SelfAdjointEigV2.several(x))
    np.testing.assert_array_equal(e, [[np.nan, np.nan], [1, 2]])
    np.testing.assert_array_equal(v[0], np.eye(2))
    for bad in (np.nan, np.inf):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Eigen decomposition was not successful"):
            run(F.Eig.several(np.array([[bad, 1], [1, 2]]), Tout="complex128", compute_v=False))


@pytest.mark.parametrize("size", [255, 256, 301])
def test_gradients_of_large_factors_are_those_that_torch_derives(size: int) -> None:
    random = np.random.RandomState(size)
    lower = np.tril(random.standard_normal((2, size, size)) / size) + np.eye(size)
    flow = random.standard_normal((2, size, size))
    x = torch.from_numpy(lower @ lower.swapaxes(1, 2)).requires_grad_()
    (wanted,) = torch.autograd.grad(torch.linalg.cholesky(x), x, torch.from_numpy(np.tril(flow)))
    found = run(F.CholeskyGrad(lower, flow))  # of a factor, the lower triangle alone is read
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    found = run(F.CholeskyGrad(lower.astype("float32"), flow.astype("float32")))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4 * float(wanted.abs().max()))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
@pytest.mark.parametrize("batch, rows, columns", [((), 40, 48), ((3,), 33, 16), ((), 150, 16), ((2,), 40, 3)])
def test_many_right_hand_sides_of_a_triangle(lower, adjoint, batch, rows, columns, set_profile):
    """Wide ones are solved as the transposed system, narrow ones as they are."""
    set_profile(transposed_systems=True)
    numbers = np.random.default_rng(2)
    full = numbers.standard_normal((*batch, rows, rows)) + 2 * rows * np.eye(rows)
    rhs = numbers.standard_normal((*batch, rows, columns))
    triangle = np.tril(full) if lower else np.triu(full)
    solution = tf.matrix_triangular_solve(full.astype("f"), rhs.astype("f"), lower=lower, adjoint=adjoint)
    wanted = np.linalg.solve(triangle.swapaxes(-1, -2) if adjoint else triangle, rhs)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(solution), wanted, rtol=1e-3, atol=1e-6)
