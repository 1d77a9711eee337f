"""Small matrices by machine code, beside ATen's kernels in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.matrices import small_matrices

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
SIDES = [((), 1, 1), ((), 2, 3), ((3,), 5, 1), ((2, 3), 8, 9), ((), 33, 64), ((), 64, 5), ((300,), 17, 17)]
"""Batches, rows, and columns of right-hand sides; the last for a team."""
LIMITS = {"float16": 3e-2, "float32": 2e-4, "float64": 1e-12}
# Rows are exchanged in nearly each.


@pytest.fixture(autouse=True)
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Has machine code on; the names of the functions that were called."""
    monkeypatch.setattr(flags, "NATIVE", 1)
    names: list[str] = []
    call = small_matrices.SmallMatrices._call

    def noted(self: Any, name: str, *arguments: Any) -> bool:
        names.append(name)
        return call(self, name, *arguments)

    monkeypatch.setattr(small_matrices.SmallMatrices, "_call", noted)
    return names


def computed(x: Any) -> Any:
    with tf.Session() as session:
        return session.run(x)


def matrices(outer: Any, size: int, dtype: str) -> Any:
    """Random orthogonal matrices, stretched by 1 to 3, so that solutions do not magnify errors."""
    random = np.random.default_rng(size)
    q, _ = np.linalg.qr(random.normal(size=(*outer, size, size)))
    return (q * np.linspace(1, 3, size)).astype(dtype)


def sides_for(outer: Any, size: int, columns: int, dtype: str) -> Any:
    return np.random.default_rng(columns).normal(size=(*outer, size, columns)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("sides", SIDES)
def test_inverses(called: Any, sides: Any, adjoint: bool, dtype: str) -> None:
    outer, size, _ = sides
    given = matrices(outer, size, dtype)
    wanted = np.linalg.inv(given.astype("float64"))
    found = computed(tf.matrix_inverse(given, adjoint=adjoint))
    assert called == ["invert"] and found.dtype == dtype
    np.testing.assert_allclose(found, wanted.swapaxes(-1, -2) if adjoint else wanted, atol=LIMITS[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("sides", SIDES)
def test_solutions(called: Any, sides: Any, adjoint: bool, dtype: str) -> None:
    outer, size, columns = sides
    given, rhs = matrices(outer, size, dtype), sides_for(outer, size, columns, dtype)
    dense = given.swapaxes(-1, -2) if adjoint else given
    found = computed(tf.matrix_solve(given, rhs, adjoint=adjoint))
    assert called == ["solve"] and found.dtype == dtype
    wanted = np.linalg.solve(dense.astype("float64"), rhs.astype("float64"))
    np.testing.assert_allclose(found, wanted, rtol=LIMITS[dtype], atol=LIMITS[dtype])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("sides", SIDES)
def test_triangles(called: Any, sides: Any, lower: bool, adjoint: bool, dtype: str) -> None:
    outer, size, columns = sides
    given = (matrices(outer, size, "float64") / 4 + 2 * np.eye(size)).astype(dtype)
    rhs = sides_for(outer, size, columns, dtype)
    dense = torch.from_numpy(given).double()
    dense = dense.tril() if lower else dense.triu()
    dense = dense.mT if adjoint else dense
    wanted = torch.linalg.solve_triangular(dense, torch.from_numpy(rhs).double(), upper=lower == adjoint)
    found = computed(tf.matrix_triangular_solve(given, rhs, lower=lower, adjoint=adjoint))
    assert called == ["substitute"] and found.dtype == dtype
    np.testing.assert_allclose(found, wanted.numpy(), rtol=LIMITS[dtype], atol=LIMITS[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sides", SIDES)
def test_determinants(called: Any, sides: Any, dtype: str) -> None:
    outer, size, _ = sides
    given = matrices(outer, size, dtype)
    signs, logarithms = np.linalg.slogdet(given.astype("float64"))
    determinant, (sign, logarithm) = computed([tf.matrix_determinant(given), tf.linalg.slogdet(given)])
    assert sorted(called) == ["determine", "pivots"] and determinant.dtype == logarithm.dtype == dtype
    np.testing.assert_array_equal(sign, signs)
    np.testing.assert_allclose(logarithm, logarithms, rtol=LIMITS[dtype], atol=LIMITS[dtype])
    if size < 64:  # of the largest, it does not fit into float32
        np.testing.assert_allclose(determinant, signs * np.exp(logarithms), rtol=LIMITS[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sides", SIDES)
def test_factors_of_cholesky(called: Any, sides: Any, dtype: str) -> None:
    outer, size, _ = sides
    half = matrices(outer, size, "float64")
    given = half @ half.swapaxes(-1, -2)
    wanted = np.linalg.cholesky(given)
    upper = np.triu(np.full((size, size), np.nan), 1)  # which nothing reads
    found = computed(tf.cholesky((given + upper).astype(dtype)))
    assert called == ["factor"] and found.dtype == dtype
    np.testing.assert_allclose(found, wanted, rtol=LIMITS[dtype], atol=LIMITS[dtype])
    assert not np.triu(found, 1).any()


@pytest.mark.parametrize("bad", [0.0, np.nan])
@pytest.mark.parametrize(
    "make",
    [
        tf.matrix_inverse,
        lambda x: tf.matrix_solve(x, np.ones((2, 3, 1), "float32")),
        lambda x: tf.cholesky(x * [[[1], [1], [-1]]]),
    ],
)
def test_bad_matrices_give_the_error_of_the_op(called: Any, make: Any, bad: float) -> None:
    given = np.stack([np.eye(3), np.diag([1.0, bad, 2.0])]).astype("float32")
    x = tf.placeholder(tf.float32, [2, 3, 3])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="not"):
        session.run(make(x), {x: given})
    assert called


def test_determinants_of_singular_matrices_are_zero(called: Any) -> None:
    given = np.array([[[1, 2], [2, 4]], [[3, 1], [1, 3]]], "float32")
    np.testing.assert_allclose(computed(tf.matrix_determinant(given)), [0, 8])
    assert called == ["determine"]


def test_views_larger_matrices_and_other_types(called: Any) -> None:
    x = np.random.default_rng(0).normal(size=(4, 4, 3)).astype("float32")
    view = tf.transpose(tf.constant(x), [2, 1, 0])  # not contiguous
    np.testing.assert_allclose(
        computed(tf.matmul(tf.matrix_inverse(view), view)), np.tile(np.eye(4), (3, 1, 1)), atol=1e-4
    )
    assert called.count("invert") == 1
    for large in (np.eye(65, dtype="float32"), np.eye(2, dtype="complex64"), np.ones((0, 0), "float32")):
        np.testing.assert_array_equal(computed(tf.matrix_inverse(large)), large)
    assert called.count("invert") == 1


def test_without_the_tier_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert small_matrices.small_matrices(torch.complex64) is None
    assert small_matrices.small_matrices(torch.float32) is not None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert small_matrices.small_matrices(torch.float32) is None
