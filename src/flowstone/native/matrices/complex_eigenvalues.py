"""Eigenvalues and eigenvectors of many small complex matrices by machine code (`triangular_form_code.py`), on
a host.

The code for a type is compiled on a thread when a plan has it `prepare`d; what is called before it is there
waits. Matrices are copied to blocks, one a lane; what is left of the last block are zeros.
"""

from __future__ import annotations

import ctypes
import functools

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.codegen.emitter import SIZES
from flowstone.native.matrices.triangular_form_code import PLACES, SCRATCH, WORDS, triangular_form_code

__all__ = ["ComplexEigenvalues", "complex_eigenvalues"]

_TYPES = {torch.complex64: "float32", torch.complex128: "float64"}
_FAR = 120  # an exponent of which the power, and its inverse, are normal numbers of float32
_MOST = 32  # rows, of which a block stays in a core's cache


class ComplexEigenvalues:
    """The function for tensors [..., n, n] of a complex type."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._type = _TYPES[dtype]
        self._lanes = _lanes(self._type)
        self._library = _library(self._type)

    def prepare(self) -> None:
        """Has the code made."""
        self._library.prepare()

    def fits(self, x: torch.Tensor) -> bool:
        """Whether there are so few rows and so many matrices."""
        size = x.shape[-1]
        return 1 < size <= _MOST and x.numel() >= size * size * self._lanes

    def __call__(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The values [..., n], in no order, and the vectors, of length 1; None if they were not found."""
        size, lanes = x.shape[-1], self._lanes
        parts = torch.view_as_real(x.resolve_conj()).reshape(-1, size, size, 2)
        count = len(parts)
        exponents = torch.frexp(parts.abs().amax((1, 2, 3))).exponent.clamp_(-_FAR, _FAR)
        parts = torch.ldexp(parts, -exponents[:, None, None, None])
        blocks = -(-count // lanes)
        if count < blocks * lanes:
            parts = torch.cat([parts, parts.new_zeros(blocks * lanes - count, size, size, 2)])
        matrices = parts.view(blocks, lanes, size, size, 2).permute(0, 2, 3, 4, 1).contiguous()
        vectors = torch.empty_like(matrices)
        values = matrices.new_empty(blocks, size, 2, lanes)
        work = 30 * count * size**3
        threads = torch.get_num_threads() if work >= machine.current().profile.native_team else 1
        scratch = matrices.new_empty(threads, (size + SCRATCH) * size * 2 * lanes)
        note = ctypes.c_int64()
        words = {"threads": threads, "blocks": blocks, "size": size, "scratch": scratch[0].numel()}
        self._library.call("eigen", words, {
            "matrices": matrices, "values": values, "vectors": vectors, "scratch": scratch,
            "notes": ctypes.addressof(note),
        })  # fmt: skip
        if note.value:
            return None
        found, basis = (each.movedim(-1, 1).flatten(0, 1)[:count] for each in (values, vectors))
        found = torch.ldexp(found, exponents[:, None, None])
        complex_ = [torch.view_as_complex(each.contiguous()) for each in (found, basis)]
        return complex_[0].view(x.shape[:-1]), complex_[1].view(x.shape)


def _lanes(name: str) -> int:
    return host.lanes() * SIZES["float32"] // SIZES[name]


@functools.cache
def _library(name: str) -> CodeLibrary:
    return CodeLibrary(lambda: triangular_form_code(name, _lanes(name)), WORDS, PLACES)


def complex_eigenvalues(dtype: torch.dtype | None) -> ComplexEigenvalues | None:
    """The function for a type; None if there is none, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype not in _TYPES:
        return None
    return ComplexEigenvalues(dtype)
