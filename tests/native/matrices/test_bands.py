"""Banded systems solved by machine code, beside ATen's dense solutions in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.matrices import bands

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
SIDES = [((), 1, 1), ((), 5, 3), ((), 300, 70), ((3, 2), 9, 8), ((2000,), 17, 5)]  # the last by a team


@pytest.fixture(autouse=True)
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 1)


def computed(x: Any) -> Any:
    with tf.Session() as session:
        return session.run(x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("sides", SIDES)
def test_triangles_of_few_diagonals(sides: Any, lower: bool, adjoint: bool, dtype: str) -> None:
    outer, size, columns = sides
    random, count = np.random.default_rng(size), min(4, size)
    given = random.normal(size=(*outer, count, size)) / 4
    given[..., 0 if lower else -1, :] += 2
    dense = torch.zeros(*outer, size, size, dtype=torch.float64)
    for distance in range(count):
        row = torch.from_numpy(given[..., distance if lower else count - 1 - distance, :])
        if lower:
            dense.diagonal(-distance, -2, -1).copy_(row[..., distance:])
        else:
            dense.diagonal(distance, -2, -1).copy_(row[..., : size - distance])
    rhs = random.normal(size=(*outer, size, columns))
    matrix = dense.mT if adjoint else dense
    wanted = torch.linalg.solve_triangular(matrix, torch.from_numpy(rhs), upper=lower == adjoint).numpy()
    found = computed(
        tf.raw_ops.BandedTriangularSolve(
            matrix=given.astype(dtype), rhs=rhs.astype(dtype), lower=lower, adjoint=adjoint
        )
    )
    limit = {"float16": 3e-2, "float32": 1e-5, "float64": 1e-13}[dtype]
    assert found.dtype == dtype
    np.testing.assert_allclose(found, wanted, rtol=limit, atol=limit)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pivots", [False, True])
@pytest.mark.parametrize("sides", SIDES)
def test_tridiagonal_matrices(sides: Any, pivots: bool, dtype: str) -> None:
    outer, size, columns = sides
    random = np.random.default_rng(size)
    given = random.normal(size=(*outer, 3, size)).astype(dtype)
    given[..., 1, :] = np.where(given[..., 1, :] > 0, 3, -3) if not pivots else given[..., 1, :] / 9
    given[..., 1, -1] = 5
    x = torch.from_numpy(given).double()
    dense = torch.diag_embed(x[..., 1, :])
    if size > 1:
        dense += torch.diag_embed(x[..., 0, :-1], 1) + torch.diag_embed(x[..., 2, 1:], -1)
    rhs = random.normal(size=(*outer, size, columns)).astype(dtype)
    given[..., 0, -1] = given[..., 2, 0] = np.nan  # which are not used
    found = computed(tf.raw_ops.TridiagonalSolve(diagonals=given, rhs=rhs, partial_pivoting=pivots))
    left = (dense @ torch.from_numpy(found).double()).numpy() - rhs
    scale = np.abs(found).max(-2, keepdims=True) + np.abs(rhs).max(-2, keepdims=True)
    assert (np.abs(left) <= 60 * np.finfo(dtype).eps * scale).all()


def test_a_zero_on_the_diagonal_wants_a_pivot() -> None:
    given = np.array([[1, 1, 0], [0, 0, 2], [0, 3, 1]], "float32")
    found = computed(tf.raw_ops.TridiagonalSolve(diagonals=given, rhs=np.array([[1], [2], [3]], "float32")))
    dense = np.array([[0, 1, 0], [3, 0, 1], [0, 1, 2]])
    np.testing.assert_allclose(dense @ found, [[1], [2], [3]], rtol=1e-6)


def test_other_types_have_no_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bands.band_solver(torch.complex64, True) is None
    assert bands.band_solver(torch.float32, True) is not None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert bands.band_solver(torch.float32, True) is None
