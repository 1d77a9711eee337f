"""Krylov's methods on operators that are functions; the numbers are TensorFlow 1.15.5's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib.solvers import lanczos, least_squares, linear_equations, util

SQUARE = np.float32([[4, 1, 0], [1, 3, 1], [0, 1, 2]])
TALL = np.float32([[4, 1, 0], [1, 3, 1], [0, 1, 2], [1, 1, 1]])


@pytest.fixture(autouse=True)
def own_graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(tensors: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensors)


def test_the_modules_are_those_of_tensorflow() -> None:
    assert tf.contrib.solvers.lanczos is lanczos and tf.contrib.solvers.lanczos.util is util
    assert tf.contrib.solvers.least_squares is least_squares
    assert tf.contrib.solvers.linear_equations is linear_equations


def test_conjugate_gradients() -> None:
    operator = util.create_operator(SQUARE)
    assert (operator.shape, operator.dtype) == ([3, 3], tf.float32)
    found = run(linear_equations.conjugate_gradient(operator, np.float32([1, 2, 3]), tol=1e-6))
    np.testing.assert_allclose(found.x, [0.22222218, 0.11111112, 1.4444444], rtol=1e-5)
    assert found.i == 3 and np.abs(found.r).max() < 1e-5 and found.p.shape == (3,)


def test_conjugate_gradients_from_a_start_with_a_preconditioner() -> None:
    operator, rhs = util.create_operator(SQUARE), tf.constant([1.0, 2.0, 3.0])
    solution = np.linalg.solve(SQUARE, [1, 2, 3]).astype(np.float32)
    near = util.create_operator(np.linalg.inv(SQUARE))
    found = run(linear_equations.conjugate_gradient(operator, rhs, preconditioner=near, x=[1.0, 0.0, 0.0]))
    np.testing.assert_allclose(found.x, solution, rtol=1e-4)
    assert found.i == 1
    same = util.identity_operator(SQUARE)
    plain = run(linear_equations.conjugate_gradient(operator, rhs, preconditioner=same, max_iter=2))
    assert plain.i == 2
    assert run(linear_equations.conjugate_gradient(operator, rhs, x=solution)).i == 0


def test_least_squares() -> None:
    rhs = np.float32([1, 2, 3, 4])
    found = run(least_squares.cgls(util.create_operator(TALL), rhs, max_iter=2))
    np.testing.assert_allclose(found.x, [0.05677471, 0.7077825, 1.1111863], rtol=1e-4)
    np.testing.assert_allclose(found.r, [0.06511879, -1.2913086, 0.06984484, 2.1242564], rtol=1e-4)
    np.testing.assert_allclose(found.gamma, 4.748872, rtol=1e-4)
    full = run(least_squares.cgls(util.create_operator(TALL), rhs).x)
    np.testing.assert_allclose(full, np.linalg.lstsq(TALL, rhs, rcond=None)[0], rtol=1e-4)


@pytest.mark.parametrize("orthogonalize", [True, False])
def test_bidiagonalisation(orthogonalize: bool) -> None:
    start = tf.constant([1.0, 2.0, 3.0, 4.0])
    state = lanczos.lanczos_bidiag(util.create_operator(TALL), 3, orthogonalize, starting_vector=start)
    found, product = run([state, lanczos.bidiag_matmul(state.u, state.alpha, state.beta)])
    np.testing.assert_allclose(found.alpha, [3.8297083, 2.2763026, 1.4024745], rtol=1e-4)
    np.testing.assert_allclose(found.beta, [2.7380595, 2.315351, 1.1519661], rtol=1e-4)
    np.testing.assert_allclose(found.v[:, 0], [0.4767313, 0.6674238, 0.5720776], rtol=1e-4)
    np.testing.assert_allclose(TALL @ found.v, product, atol=1e-5)


def test_bidiagonalisation_of_a_random_start() -> None:
    state = run(lanczos.lanczos_bidiag(util.create_operator(TALL), 2))
    np.testing.assert_allclose(state.u.T @ state.u, np.eye(3), atol=1e-5)
    np.testing.assert_allclose(state.v.T @ state.v, np.eye(2), atol=1e-5)


def test_products_with_bidiagonal_matrices() -> None:
    alpha, beta = np.float32([1, 2, 3]), np.float32([4, 5, 6])
    bidiagonal = np.zeros((4, 3), np.float32)
    for index in range(3):
        bidiagonal[index, index], bidiagonal[index + 1, index] = alpha[index], beta[index]
    left, right = np.float32([[1, 2, 3, 4]]), np.float32([[1, 2, 3], [4, 5, 6]])
    found = run(
        [lanczos.bidiag_matmul(left, alpha, beta), lanczos.bidiag_matmul(right, alpha, beta, adjoint_b=True)]
    )
    np.testing.assert_allclose(found[0], left @ bidiagonal)
    np.testing.assert_allclose(found[1], right @ bidiagonal.T)


def test_norms() -> None:
    v = tf.constant([3.0, 4.0])
    found = run([util.dot(v, v), util.l2norm(v), util.l2norm_squared(v), *util.l2normalize(v)])
    np.testing.assert_allclose(np.hstack(found), [25, 5, 25, 0.6, 0.8, 5], rtol=1e-6)
