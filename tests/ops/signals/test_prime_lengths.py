"""Transforms by products: values are those of the definition, in float64, on every axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.ops.signals import prime_lengths

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def everywhere(set_profile: Callable[..., None]) -> None:
    set_profile(prime_length=68, narrow_prime_length=48, prime_multiples=4)


def complex_numbers(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)


def close(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Within some roundings of the largest."""
    assert found.shape == expected.shape
    eps = np.finfo(found.dtype).eps
    assert np.abs(found - expected).max() <= 20 * eps * np.abs(expected).max()


def run(name: str, x: np.ndarray[Any, Any], lengths: list[int] | None, is_static: bool) -> Any:
    given = tf.placeholder(x.dtype.name, x.shape if is_static else [None] * x.ndim)
    function = getattr(tf.spectral, name)
    with tf.Session() as session:
        return session.run(function(given) if lengths is None else function(given, lengths), {given: x})


def test_which_lengths_are_products() -> None:
    chosen = [n for n in range(1, 80) if prime_lengths.any_by_primes([n])]
    short = [17, 19, 23, 29, 31, 34, 37, 38, 41, 43, 46, 47]
    assert chosen == [*short, 51, 53, 57, 58, 59, 61, 62, 67, 68]
    assert [n for n in range(1, 80) if prime_lengths.any_by_primes([n, 32])] == short
    assert prime_lengths.any_by_primes([68, 64]) and not prime_lengths.any_by_primes([68, 63])
    assert not prime_lengths.any_by_primes([69, 128]) and not prime_lengths.any_by_primes([64, 128])


def test_multiples_of_primes_are_products_of_real_numbers_alone_where_a_profile_says_so(
    set_profile: Callable[..., None],
) -> None:
    set_profile(prime_length=53, prime_multiples=1)
    primes = [17, 19, 23, 29, 31, 37, 41, 43, 47, 53]
    assert [n for n in range(1, 80) if prime_lengths.any_by_primes([n])] == primes
    real = [n for n in range(1, 80) if prime_lengths.any_by_primes([n], is_real=True)]
    assert set(real) == {*primes, 34, 38, 46, 51}
    assert prime_lengths.any_by_primes([4, 34], is_real=True)
    assert not prime_lengths.any_by_primes([34, 64], is_real=True)  # the first axis is of complex numbers


def test_which_lengths_are_split(set_profile: Callable[..., None]) -> None:
    assert not prime_lengths.any_by_primes([412])
    set_profile(first_summed_prime=79, last_summed_prime=149)
    chosen = [n for n in range(80, 700) if prime_lengths.any_by_primes([n])]
    assert chosen == sorted(
        m * p for m in (4, 8) for p in (79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131, 137, 139, 149)
        if m * p < 700
    )  # fmt: skip
    assert prime_lengths.any_by_primes([412, 128]) and prime_lengths.any_by_primes([412, 16], is_real=True)
    assert not prime_lengths.any_by_primes([16, 412], is_real=True)  # which is real
    assert not prime_lengths.any_by_primes([44 * 103])  # whose product would be much work


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("rank", "shape"), [(1, [2, 412]), (1, [356]), (2, [316, 5]), (2, [309, 412]), (3, [2, 32, 332, 6])]
)
def test_split_lengths(set_profile: Callable[..., None], rank: int, shape: list[int], dtype: str) -> None:
    set_profile(first_summed_prime=79, last_summed_prime=149)
    x, axes = complex_numbers(*shape).astype(dtype), tuple(range(-rank, 0))
    assert prime_lengths.any_by_primes(shape[-rank:])
    suffix = "" if rank == 1 else f"{rank}d"
    close(run(f"fft{suffix}", x, None, True), np.fft.fftn(x.astype(complex), axes=axes))
    close(run(f"ifft{suffix}", x, None, True), np.fft.ifftn(x.astype(complex), axes=axes))
    transposed = torch.from_numpy(x).movedim(-1, 0).contiguous().movedim(0, -1)  # in another order
    found = prime_lengths.transform(transposed, axes, False)
    close(found.numpy(), np.fft.fftn(x.astype(complex), axes=axes))


@pytest.mark.parametrize("is_static", [True, False])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("rank", "shape"),
    [
        (1, [17]),
        (1, [3, 34]),
        (1, [2, 3, 47]),
        (2, [2, 19, 32]),
        (2, [32, 23]),
        (2, [53, 130]),
        (3, [2, 34, 51, 68]),
    ],
)
def test_complex(rank: int, shape: list[int], dtype: str, is_static: bool) -> None:
    x, axes = complex_numbers(*shape).astype(dtype), tuple(range(-rank, 0))
    assert prime_lengths.any_by_primes(shape[-rank:])
    suffix = "" if rank == 1 else f"{rank}d"
    close(run(f"fft{suffix}", x, None, is_static), np.fft.fftn(x.astype(complex), axes=axes))
    close(run(f"ifft{suffix}", x, None, is_static), np.fft.ifftn(x.astype(complex), axes=axes))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "lengths"),
    [
        ([17], [17]),
        ([4, 34], [34]),
        ([3, 50], [43]),
        ([2, 19, 31], [17, 31]),
        ([34, 64], [34, 64]),
        ([3, 20, 9, 47], [19, 8, 46]),
    ],
)
def test_real(shape: list[int], lengths: list[int], dtype: str) -> None:
    x, axes = RNG.standard_normal(shape).astype(dtype), tuple(range(-len(lengths), 0))
    suffix = "" if len(lengths) == 1 else f"{len(lengths)}d"
    expected = np.fft.rfftn(x.astype(float), lengths, axes)
    close(run(f"rfft{suffix}", x, lengths, True), expected)
    spectrum = complex_numbers(*shape[:-1], shape[-1]).astype(expected.astype(f"c{2 * x.itemsize}").dtype)
    close(
        run(f"irfft{suffix}", spectrum, lengths, True), np.fft.irfftn(spectrum.astype(complex), lengths, axes)
    )


def test_what_counts_as_real_is_not_read() -> None:
    for length in (34, 17):
        x = torch.from_numpy(complex_numbers(2, length // 2 + 1))
        x[:, 0] = torch.complex(x[:, 0].real, torch.full([2], torch.nan, dtype=torch.float64))
        if length % 2 == 0:
            x[:, -1] = torch.complex(x[:, -1].real, torch.full([2], torch.nan, dtype=torch.float64))
        assert torch.isfinite(prime_lengths.inverse_real_transform(x, [length], [-1])).all()
