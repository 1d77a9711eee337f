"""Eigenvalues and vectors of many small complex matrices: they give the matrices back, whatever these are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.matrices.complex_eigenvalues import ComplexEigenvalues, complex_eigenvalues

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
TYPES = [torch.complex64, torch.complex128]
Made = Callable[[np.random.Generator, int, int], Any]


def _random(chance: np.random.Generator, count: int, size: int) -> Any:
    return chance.standard_normal((count, size, size)) + 1j * chance.standard_normal((count, size, size))


def _circulant(chance: np.random.Generator, count: int, size: int) -> Any:
    """Permutations, which shifts by their last number leave as they are."""
    return np.broadcast_to(np.roll(np.eye(size), 1, 1), (count, size, size))


def _hermitian(chance: np.random.Generator, count: int, size: int) -> Any:
    x = _random(chance, count, size)
    return x + np.conj(np.swapaxes(x, 1, 2))


def _in_blocks(chance: np.random.Generator, count: int, size: int) -> Any:
    return _random(chance, count, size) * np.kron(np.eye(size), np.ones((2, 2)))[:size, :size]


KINDS: dict[str, Made] = {
    "random": _random,
    "real": lambda chance, count, size: _random(chance, count, size).real,
    "hermitian": _hermitian,
    "upper": lambda chance, count, size: np.triu(_random(chance, count, size)),
    "lower": lambda chance, count, size: np.tril(_random(chance, count, size)),
    "diagonal": lambda chance, count, size: _random(chance, count, size) * np.eye(size),
    "zero": lambda chance, count, size: np.zeros((count, size, size)),
    "ones": lambda chance, count, size: np.ones((count, size, size)),
    "circulant": _circulant,
    "in blocks": _in_blocks,
    "large": lambda chance, count, size: 1e15 * _random(chance, count, size),
    "little": lambda chance, count, size: 1e-15 * _random(chance, count, size),
}  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "size"), [(40, 2), (33, 3), (16, 8), (19, 13), (16, 32)])
def test_matrices_are_given_back(kind: str, count: int, size: int, dtype: torch.dtype) -> None:
    made = KINDS[kind](np.random.default_rng(size), count, size)
    x = torch.from_numpy(np.array(made)).to(dtype)
    given = x.clone()
    found = ComplexEigenvalues(dtype)(x)
    assert found is not None
    values, vectors = found
    assert values.shape == (count, size) and vectors.shape == x.shape
    assert torch.equal(torch.view_as_real(x), torch.view_as_real(given))
    eps, scale = torch.finfo(dtype).eps, torch.linalg.matrix_norm(x)
    error = torch.linalg.matrix_norm(x @ vectors - vectors * values[:, None, :])
    assert (error <= 20 * size * eps * scale).all()
    assert ((torch.linalg.vector_norm(vectors, dim=1) - 1).abs() < 100 * eps).all()
    traces = x.diagonal(0, 1, 2).sum(1)
    assert ((values.sum(1) - traces).abs() <= 20 * size * eps * scale).all()


@pytest.mark.parametrize("scale", [2.0**125, 2.0**-125])
def test_the_range_of_numbers(scale: float) -> None:
    x = torch.from_numpy(_random(np.random.default_rng(4), 16, 5)).to(torch.complex64)
    code = ComplexEigenvalues(x.dtype)
    usual, found = code(x), code(x * scale)
    assert usual is not None and found is not None
    np.testing.assert_allclose(found[0].numpy() / scale, usual[0].numpy(), rtol=1e-5)


def test_values_are_LAPACKs_in_some_order() -> None:
    x = torch.from_numpy(_random(np.random.default_rng(5), 50, 6))
    found = ComplexEigenvalues(x.dtype)(x)
    assert found is not None
    for mine, others in zip(found[0].numpy(), torch.linalg.eigvals(x).numpy(), strict=True):
        np.testing.assert_allclose(np.sort_complex(np.round(mine, 9)), np.sort_complex(np.round(others, 9)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_found_is_said(bad: float) -> None:
    x = torch.from_numpy(_random(np.random.default_rng(6), 32, 4)).to(torch.complex64)
    x[17, 2, 1] = bad
    found = ComplexEigenvalues(x.dtype)(x)
    assert found is None


def test_vectors_of_equal_values_are_numbers() -> None:
    """A Jordan block has one; substitution divides by what is nearly zero."""
    block = torch.eye(16, dtype=torch.complex64) + torch.diag(torch.ones(15), 1)
    found = ComplexEigenvalues(block.dtype)(block.expand(16, 16, 16).contiguous())
    assert found is not None
    assert torch.isfinite(torch.view_as_real(found[1])).all()
    assert torch.equal(found[0], torch.ones(16, 16, dtype=torch.complex64))


def test_shapes() -> None:
    code = complex_eigenvalues(torch.complex64)
    assert code is not None and complex_eigenvalues(torch.float32) is None
    few, large = torch.zeros(3, 4, 4), torch.zeros(64, 33, 33)
    assert not code.fits(few) and not code.fits(large) and code.fits(torch.zeros(8, 8, 4, 4))
    x = torch.from_numpy(_random(np.random.default_rng(5), 64, 4)).to(torch.complex64)
    whole, turned = code(x.view(8, 8, 4, 4)), code(x.mT.contiguous().mT)
    assert whole is not None and turned is not None and whole[0].shape == (8, 8, 4)
    assert torch.equal(whole[0].view(64, 4), turned[0]) and torch.equal(whole[1].view(64, 4, 4), turned[1])


@pytest.mark.parametrize("dims", [[70, 5, 5], None, [2, 5, 5]])
def test_logarithms_with_and_without(dims: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 2 if dims == [2, 5, 5] else 70
    x = (_random(np.random.default_rng(7), count, 5) * 0.3 + 3 * np.eye(5)).astype(np.complex64)
    x[1, 0, 0] = np.nan
    results = []
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(tf.complex64, dims)
            results.append(session.run(tf.linalg.logm(fed), {fed: x}))
    assert np.isnan(results[1][1]).all() and np.isfinite(results[1][2:]).all()
    np.testing.assert_allclose(*results, atol=1e-5)
