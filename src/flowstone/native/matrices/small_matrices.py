"""Small square matrices inverted, solved and factored by machine code (`small_matrix_code.py`), on a host.

The code for a type is compiled on a thread when a plan first asks for it; what is called before it is there
waits. Threads share many matrices.
"""

from __future__ import annotations

import array
import functools
from collections.abc import Mapping

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.codegen.emitter import FLOATS, SIZES
from flowstone.native.matrices.small_matrix_code import MOST, PLACES, WORDS, layout_of, small_matrix_code

__all__ = ["SmallMatrices", "small_matrices"]


class SmallMatrices:
    """Kernels for float tensors of one type, [..., n, n] with n from 1 to `MOST`; see `fits`. They give None
    if a pivot is zero or not finite."""

    def __init__(self, library: CodeLibrary) -> None:
        self._library = library

    def fits(self, matrix: torch.Tensor, rhs: torch.Tensor | None = None) -> bool:
        """Whether there is code for square matrices, and right-hand sides, of these shapes."""
        columns = 1 if rhs is None else rhs.shape[-1]
        return 0 < matrix.shape[-1] <= MOST and 0 < columns <= MOST and matrix.numel() > 0

    def solve(self, matrix: torch.Tensor, rhs: torch.Tensor, adjoint: bool) -> torch.Tensor | None:
        """The solutions [..., n, k] of systems, of the transposed matrices if `adjoint`."""
        out = torch.empty_like(rhs, memory_format=torch.contiguous_format)
        places = {"sides": rhs.contiguous(), "out": out}
        return out if self._call("solve", matrix, rhs.shape[-1], places, adjoint) else None

    def substitute(
        self, matrix: torch.Tensor, rhs: torch.Tensor, lower: bool, adjoint: bool
    ) -> torch.Tensor | None:
        """The solutions [..., n, k] of triangular systems, of the transposed triangles if `adjoint`."""
        out = torch.empty_like(rhs, memory_format=torch.contiguous_format)
        places = {"sides": rhs.contiguous(), "out": out}
        turned = lower != adjoint
        return out if self._call("substitute", matrix, rhs.shape[-1], places, adjoint, turned) else None

    def invert(self, matrix: torch.Tensor, adjoint: bool) -> torch.Tensor | None:
        """The inverses, of the transposed matrices if `adjoint`."""
        out = torch.empty_like(matrix, memory_format=torch.contiguous_format)
        return out if self._call("invert", matrix, matrix.shape[-1], {"out": out}, adjoint) else None

    def pivots(self, matrix: torch.Tensor) -> torch.Tensor | None:
        """The pivots [..., n] of elimination, whose product is the determinant."""
        out = torch.empty(matrix.shape[:-1], dtype=matrix.dtype)
        return out if self._call("pivots", matrix, 0, {"out": out}) else None

    def determine(self, matrix: torch.Tensor) -> torch.Tensor | None:
        """The determinants [...]."""
        out = torch.empty(matrix.shape[:-2], dtype=matrix.dtype)
        return out if self._call("determine", matrix, 0, {"out": out}) else None

    def factor(self, matrix: torch.Tensor) -> torch.Tensor | None:
        """The lower triangular L with L Lᵀ = matrix, of which the lower triangle is read."""
        out = torch.empty_like(matrix, memory_format=torch.contiguous_format)
        return out if self._call("factor", matrix, 0, {"out": out}) else None

    def _call(
        self,
        name: str,
        matrix: torch.Tensor,
        columns: int,
        places: Mapping[str, torch.Tensor],
        adjoint: bool = False,
        turned: bool = False,
    ) -> bool:
        size, given, failed = matrix.shape[-1], matrix.contiguous(), array.array("q", [0])
        count = given.numel() // (size * size)
        has_team = count > 1 and given.numel() * size >= machine.current().profile.native_team
        words = {
            **layout_of(size, adjoint, turned), "columns": columns, "matrices": count,
            "threads": torch.get_num_threads() if has_team else 1,
        }  # fmt: skip
        arrays: dict[str, torch.Tensor | int] = {
            **places,
            "matrices": given,
            "failed": failed.buffer_info()[0],
        }
        self._library.call(name, words, arrays)
        return not failed[0]


@functools.cache
def _library(dtype: str) -> CodeLibrary:
    lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
    return CodeLibrary(lambda: small_matrix_code(dtype, lanes), WORDS, PLACES)


def small_matrices(dtype: torch.dtype | None) -> SmallMatrices | None:
    """The kernels for a type; None if there are none, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype is None:
        return None
    name = dtypes.from_torch(dtype).name
    return SmallMatrices(_library(name)) if name in FLOATS else None
