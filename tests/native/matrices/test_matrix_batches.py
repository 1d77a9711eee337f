"""Many matrices decomposed by a team: the results of ATen, which decomposes one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.matrices import matrix_batches
from flowstone.native.matrices.matrix_batches import MatrixBatches
from flowstone.ops.algebra import decompositions

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
OUTER = [(40,), (3, 50)]
SIDES = [(1, 1), (2, 5), (5, 2), (8, 8), (33, 20)]

pytestmark = pytest.mark.skipif(
    bool(host.reason()) or not all(host.has(name) for name in ("ssyevd_", "zgesdd_", "GOMP_parallel")),
    reason=host.reason() or "no LAPACK or no teams in this torch",
)


@pytest.fixture(autouse=True)
def called(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Has two threads share whatever has enough matrices; the functions of LAPACK that ran."""
    monkeypatch.setattr(flags, "NATIVE", 1)
    with tf.Session() as session:  # which has the tier offer what it has
        session.run(tf.constant(1) + 1)
    names: list[str] = []
    run = matrix_batches._run

    def noted(name: str, *arguments: Any) -> bool:
        names.append(name)
        return run(name, *arguments)

    monkeypatch.setattr(matrix_batches, "_run", noted)
    monkeypatch.setattr(
        MatrixBatches, "fits", lambda self, x: x.numel() > 0 and x.shape[:-2].numel() >= matrix_batches._EACH
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield names
    torch.set_num_threads(threads)


def drawn(outer: Any, rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*outer, rows, columns, dtype=dtype, generator=torch.Generator().manual_seed(rows))


def assert_near(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """The same but for rounding, in which LAPACK's own threads may differ."""
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    near = 2e-4 if wanted.dtype.to_real() is torch.float32 else 1e-11
    torch.testing.assert_close(found, wanted, rtol=near, atol=near)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("size", [1, 2, 7, 33])
def test_of_hermitian_matrices(called: Any, size: int, outer: Any, dtype: torch.dtype) -> None:
    x = drawn(outer, size, size, dtype)
    x = x + x.mH + torch.diag(torch.arange(size) * 3.0)  # values far apart
    values, vectors = decompositions.eigh(x + torch.full_like(x, torch.nan).triu(1))
    wanted = torch.linalg.eigh(x)
    assert_near(values, wanted[0])
    torch.testing.assert_close(x @ vectors, vectors * values[..., None, :], rtol=1e-3, atol=1e-3)
    assert_near(vectors.mH @ vectors, torch.eye(size, dtype=dtype).expand(x.shape))
    assert_near(decompositions.eigvalsh(x), wanted[0])
    assert len(called) == 2 and all(name.endswith("evd") for name in called)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("size", [1, 2, 7, 20])
def test_of_any_square_matrices(called: Any, size: int, outer: Any, dtype: torch.dtype) -> None:
    x = drawn(outer, size, size, dtype)
    x.view(-1, size, size)[0] = torch.eye(size)
    values, vectors = decompositions.eig(x)
    wanted = torch.linalg.eig(x)
    assert_near(values, wanted[0])
    assert_near(vectors, wanted[1])
    assert bool((values.imag < 0).any()) or size == 1 or dtype.is_complex
    assert_near(decompositions.eigvals(x).sum(-1), wanted[0].sum(-1))
    assert len(called) == 2 and all(name.endswith("geev") for name in called)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("sides", SIDES)
def test_singular_values(called: Any, sides: Any, is_full: bool, outer: Any, dtype: torch.dtype) -> None:
    x = drawn(outer, *sides, dtype)
    u, s, vh = decompositions.svd(x, is_full)
    wanted = torch.linalg.svd(x, is_full)
    assert [u.shape, vh.shape] == [wanted[0].shape, wanted[2].shape]
    assert_near(s, wanted[1])
    least = min(sides)
    assert_near((u[..., :least] * s[..., None, :]) @ vh[..., :least, :], x)
    for basis in (u, vh.mH):
        assert_near(basis.mH @ basis, torch.eye(basis.shape[-1], dtype=dtype).expand(*outer, -1, -1))
    assert_near(decompositions.svdvals(x), wanted[1])
    assert len(called) == 2 and all(name.endswith("gesdd") for name in called)


def test_matrices_that_lie_otherwise_stay_as_they_are(called: Any) -> None:
    x = drawn((40,), 5, 5, torch.float32).mT  # the form that LAPACK takes
    before = x.clone()
    for decompose in (decompositions.eigh, decompositions.eig, lambda y: decompositions.svd(y, False)):
        decompose(x)
        assert torch.equal(x, before)
    values, _ = decompositions.eig(x.expand(2, -1, -1, -1))
    assert torch.equal(values[0], values[1]) and called == ["ssyevd", "sgeev", "sgesdd", "sgeev"]


def test_where_lapack_fails_the_error_is_that_of_aten(called: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = drawn((40,), 3, 3, torch.float32)
    assert decompositions.eigvalsh(x) is not None and called
    monkeypatch.setattr(matrix_batches, "_run", lambda *arguments: False)
    batches = matrix_batches.matrix_batches(torch.float32)
    assert batches is not None
    assert batches.eigh(x, True) is batches.eig(x, True) is batches.svd(x, "S") is None
    torch.testing.assert_close(decompositions.eigh(x), torch.linalg.eigh(x))


def test_ops_of_many_matrices(called: Any) -> None:
    x = drawn((40,), 6, 6, torch.float32).numpy()
    with tf.Session() as session:
        e, v = session.run(tf.self_adjoint_eig(x + x.swapaxes(1, 2)))
        s, u, w = session.run(tf.svd(x))
    assert called == ["ssyevd", "sgesdd"]
    np.testing.assert_allclose((v * e[:, None, :]) @ v.swapaxes(1, 2), x + x.swapaxes(1, 2), atol=1e-4)
    np.testing.assert_allclose((u * s[:, None, :]) @ w.swapaxes(1, 2), x, atol=1e-4)


def test_few_matrices_and_little_work_are_left_to_aten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(flags, "NATIVE", 1)
    torch.set_num_threads(2)
    batches = matrix_batches.matrix_batches(torch.float32)
    assert batches is not None
    shapes = [(64, 64), (7, 200, 200), (10, 3, 3), (0, 3, 3), (500, 32, 32)]
    assert [batches.fits(torch.empty(shape)) for shape in shapes] == [False, False, False, False, True]
    torch.set_num_threads(1)
    assert not batches.fits(torch.empty(500, 32, 32))


def test_without_the_tier_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert matrix_batches.matrix_batches(torch.float16) is None
    assert matrix_batches.matrix_batches(torch.float32) is not None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert matrix_batches.matrix_batches(torch.float32) is None
