"""Fourier transforms on a host over axes of lengths with a large prime factor: products, and split ones.

Libraries split a length into small factors. A prime factor from 17 on they take by its definition, sum by
sum, in several times the time of a product of matrices; long primes they take by other ways. So `transform`
multiplies over axes of such lengths, up to `prime_length` of the machine's profile (over those that few
numbers follow, up to `narrow_prime_length`). Multiples of 4 with a prime from `first_summed_prime` to
`last_summed_prime` are split (Cooley and Tukey) into transforms of the prime, which are ATen's, and a product
over the rest. Others are left to ATen. The matrices are rounded once, and kept, the last few of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework.machine import machine

__all__ = ["any_by_primes", "inverse_real_transform", "real_transform", "transform"]

_LARGE_PRIME = 17
_MANY = 64  # numbers behind an axis, from which a product with those of the axis is as fast as any
_LARGEST_REST = 40  # of a length without its prime, up to which its product is little work
_KEPT = 32  # matrices


@functools.lru_cache(256)
def _greatest_prime(length: int) -> int:
    factor, rest = 2, length
    while factor * factor <= rest:
        while rest % factor == 0 and rest > factor:
            rest //= factor
        factor += 1
    return rest


def any_by_primes(lengths: Sequence[int], is_real: bool = False) -> bool:
    """Whether a transform over axes of these lengths, the last one of real numbers or not, is a product or
    split over one of them."""
    *others, last = lengths
    if is_multiplied(last, is_real=is_real) or (not is_real and is_split(last)):
        return True
    pairs = [(length, math.prod(lengths[i:])) for i, length in enumerate(others, 1)]
    return any(is_multiplied(length, behind) or is_split(length) for length, behind in pairs)


def is_multiplied(length: int, behind: int = 1, is_real: bool = False) -> bool:
    """Whether a transform of this length is a product; `behind`: the numbers of the axes after it."""
    profile = machine.current().profile
    most = profile.narrow_prime_length if 1 < behind < _MANY else profile.prime_length
    if not _LARGE_PRIME <= length <= most:
        return False
    prime = _greatest_prime(length)
    return prime >= _LARGE_PRIME and (is_real or length <= prime * profile.prime_multiples)


def is_split(length: int) -> bool:
    """Whether a transform of this length of complex numbers is one of its prime, and one of the rest."""
    profile = machine.current().profile
    if length % 4 or length < profile.first_summed_prime:
        return False
    prime = _greatest_prime(length)
    return (
        profile.first_summed_prime <= prime <= profile.last_summed_prime and length // prime <= _LARGEST_REST
    )


def transform(x: torch.Tensor, axes: Sequence[int], is_inverse: bool) -> torch.Tensor:
    """The transform, or its inverse, of complex numbers over the axes, which are counted from the end."""
    rest = []
    for axis in axes:
        length, behind = x.shape[axis], math.prod(x.shape[x.ndim + axis + 1 :])
        if is_split(length):
            x = _split(x, axis, is_inverse)
            continue
        if not is_multiplied(length, behind):
            rest.append(axis)
            continue
        turns = _turns(length, x.dtype, is_inverse)
        if axis == -1:
            x = x @ turns
        else:
            x = torch.matmul(turns, x.reshape(*x.shape[:axis], length, behind)).reshape(x.shape)
    if not rest:
        return x
    function: Callable[..., torch.Tensor] = torch.fft.ifftn if is_inverse else torch.fft.fftn
    return function(x, None, rest)


def _split(x: torch.Tensor, axis: int, is_inverse: bool) -> torch.Tensor:
    """The transform over an axis whose numbers lie in memory as a matrix: that of its columns, which are as
    long as the prime, and after twiddle factors that of its rows."""
    front, length, behind = x.shape[:axis], x.shape[axis], math.prod(x.shape[x.ndim + axis + 1 :])
    prime = _greatest_prime(length)
    rows = length // prime
    columns = x.reshape(*front, prime, rows, behind)
    function: Callable[..., torch.Tensor] = torch.fft.ifft if is_inverse else torch.fft.fft
    found = function(columns, dim=-3).mul_(_twiddles(length, prime, x.dtype, is_inverse))
    found = found.transpose(-3, -2).reshape(*front, rows, prime * behind)
    return torch.matmul(_turns(rows, x.dtype, is_inverse), found).reshape(x.shape)


def real_transform(x: torch.Tensor, lengths: Sequence[int], axes: Sequence[int]) -> torch.Tensor:
    """The first half of the transform of the first `lengths` real numbers over the axes."""
    for axis, length in zip(axes, lengths):
        x = x.narrow(axis, 0, length)
    half = lengths[-1] // 2 + 1
    if is_multiplied(lengths[-1], is_real=True):
        x = torch.view_as_complex((x @ _of_real(lengths[-1], x.dtype)).unflatten(-1, (half, 2)))
    else:
        x = torch.fft.rfft(x)
    return transform(x, axes[:-1], False)


def inverse_real_transform(x: torch.Tensor, lengths: Sequence[int], axes: Sequence[int]) -> torch.Tensor:
    """The real numbers whose transform begins with x; what must be real of x counts as if it were."""
    half = lengths[-1] // 2 + 1
    for axis, length in zip(axes, (*lengths[:-1], half)):
        x = x.narrow(axis, 0, length)
    x = transform(x, axes[:-1], True)
    if not is_multiplied(lengths[-1], is_real=True):
        whole: torch.Tensor = torch.fft.irfft(x, lengths[-1])
        return whole
    rows = torch.view_as_real(x.resolve_conj()).reshape(-1, 2 * half)
    turns = _to_real(lengths[-1], rows.dtype)
    found = torch.addmm(rows[:, :1] / lengths[-1], rows[:, 2 : 2 + len(turns)], turns)
    return found.reshape(*x.shape[:-1], lengths[-1])


def _turned(rows: int, length: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Cosines and sines of 2 pi j k / length, [rows, length], by more digits than float64 has."""
    turn = 8 * np.arctan(np.longdouble(1)) / length
    angles = np.outer(np.arange(rows), np.arange(length)) % length * turn
    return np.cos(angles), np.sin(angles)


@functools.lru_cache(_KEPT)
def _turns(length: int, dtype: torch.dtype, is_inverse: bool) -> torch.Tensor:
    """exp(-2 pi i j k / length), or its inverse."""
    cosines, sines = _turned(length, length)
    turns = (cosines + 1j * sines) / length if is_inverse else cosines - 1j * sines
    return torch.from_numpy(turns.astype(np.complex128)).to(dtype)


@functools.lru_cache(_KEPT)
def _twiddles(length: int, prime: int, dtype: torch.dtype, is_inverse: bool) -> torch.Tensor:
    """exp(-2 pi i j k / length) [prime, length / prime, 1], or their conjugates."""
    cosines, sines = (each[:, : length // prime, None] for each in _turned(prime, length))
    turns = cosines + 1j * sines if is_inverse else cosines - 1j * sines
    return torch.from_numpy(turns.astype(np.complex128)).to(dtype)


@functools.lru_cache(_KEPT)
def _of_real(length: int, dtype: torch.dtype) -> torch.Tensor:
    """[length, 2 * half]: the real and the imaginary part, by turns."""
    cosines, sines = _turned(length // 2 + 1, length)
    both = np.stack([cosines.T, -sines.T], -1).reshape(length, -1)
    return torch.from_numpy(both.astype(np.float64)).to(dtype)


@functools.lru_cache(_KEPT)
def _to_real(length: int, dtype: torch.dtype) -> torch.Tensor:
    """[length - 1, length]: what the parts of all numbers but the first add, without the imaginary part of
    that in the middle of an even length."""
    cosines, sines = _turned(length // 2 + 1, length)
    both = np.stack([cosines, -sines], 1)[1:] * 2 / length
    if length % 2 == 0:
        both[-1] /= 2
    return torch.from_numpy(both.reshape(-1, length)[: length - 1].astype(np.float64)).to(dtype)
