"""Banded triangular and tridiagonal systems solved by machine code (`band_code.py`), on a host.

The code for a type is compiled on a thread when a plan first asks for it; what is called before it is there
waits. Threads share many matrices.
"""

from __future__ import annotations

import functools

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.codegen.emitter import FLOATS, SIZES
from flowstone.native.matrices.band_code import PLACES, WORDS, band_code

__all__ = ["BandSolver", "band_solver"]

_WORK = 8  # of an element of a right-hand side, in additions


class BandSolver:
    """Solutions for float tensors of one type."""

    def __init__(self, library: CodeLibrary) -> None:
        self._library = library

    def substitute(self, rows: torch.Tensor, rhs: torch.Tensor, backward: bool) -> torch.Tensor:
        """The solutions of triangular systems: `rows` [..., n, bands] has each row's elements by their
        distance from the diagonal, `rhs` is [..., n, k]."""
        out = torch.empty_like(rhs, memory_format=torch.contiguous_format)
        places = {"rows": rows.contiguous(), "sides": rhs.contiguous(), "out": out}
        bands = rows.shape[-1]
        more = {"bands": bands, "backward": int(backward)}
        self._library.call("substitute", _words(rhs) | more, places)
        return out

    def eliminate(self, diagonals: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
        """The solutions of tridiagonal systems: `diagonals` [..., 3, n], `rhs` [..., n, k]."""
        out = rhs.clone(memory_format=torch.contiguous_format)
        given = diagonals.contiguous()
        places = {"rows": given, "upper": torch.empty_like(given), "sides": out}
        self._library.call("eliminate", _words(rhs), places)
        return out


def _words(rhs: torch.Tensor) -> dict[str, int]:
    size, columns = rhs.shape[-2:]
    has_team = rhs.numel() * _WORK >= machine.current().profile.native_team
    return {
        "threads": torch.get_num_threads() if has_team else 1, "matrices": rhs.numel() // (size * columns),
        "size": size, "columns": columns,
    }  # fmt: skip


@functools.cache
def _library(dtype: str, has_pivots: bool) -> CodeLibrary:
    lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
    return CodeLibrary(lambda: band_code(dtype, has_pivots, lanes), WORDS, PLACES)


def band_solver(dtype: torch.dtype | None, has_pivots: bool) -> BandSolver | None:
    """What solves systems of a type; None if there is none, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype is None:
        return None
    name = dtypes.from_torch(dtype).name
    return BandSolver(_library(name, has_pivots)) if name in FLOATS else None
