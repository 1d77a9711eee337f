"""What the native tier offers for matrices, as protocols; `framework/machine/machine_code.py` has the slots.

All are of float tensors of one type on the host, `MatrixBatches` also of complex ones, `ComplexEigenvalues`
of these alone; matrices are the last two dimensions.
"""

from __future__ import annotations

from typing import Protocol

import torch

__all__ = ["BandSolver", "ComplexEigenvalues", "MatrixBatches", "SmallMatrices"]


class BandSolver(Protocol):
    """Solutions of systems of few diagonals, [..., n, k] with no size of 0, on the host."""

    def substitute(self, rows: torch.Tensor, rhs: torch.Tensor, backward: bool) -> torch.Tensor:
        """Of triangular matrices: `rows` [..., n, bands] by the distance from the diagonal."""

    def eliminate(self, diagonals: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
        """Of tridiagonal matrices: `diagonals` [..., 3, n]."""


class SmallMatrices(Protocol):
    """Small square matrices [..., n, n] on the host; None where a pivot is zero or not finite."""

    def fits(self, matrix: torch.Tensor, rhs: torch.Tensor | None = None) -> bool:
        """Whether there is code for square matrices, and right-hand sides, of these shapes."""

    def invert(self, matrix: torch.Tensor, adjoint: bool) -> torch.Tensor | None:
        """The inverses, of the transposed matrices if `adjoint`."""

    def solve(self, matrix: torch.Tensor, rhs: torch.Tensor, adjoint: bool) -> torch.Tensor | None:
        """The solutions [..., n, k] of systems of these or the transposed matrices."""

    def substitute(
        self, matrix: torch.Tensor, rhs: torch.Tensor, lower: bool, adjoint: bool
    ) -> torch.Tensor | None:
        """The solutions of systems of these or the transposed triangles."""

    def pivots(self, matrix: torch.Tensor) -> torch.Tensor | None:
        """Numbers [..., n] whose product is the determinant."""

    def determine(self, matrix: torch.Tensor) -> torch.Tensor | None:
        """The determinants [...]."""

    def factor(self, matrix: torch.Tensor) -> torch.Tensor | None:
        """Cholesky's lower triangles."""


class MatrixBatches(Protocol):
    """Decompositions of many matrices [..., m, n] by LAPACK, as ATen's functions of these names give them,
    shared by a team; None where one failed."""

    def fits(self, x: torch.Tensor) -> bool:
        """Whether there are so many matrices that a team shares them well."""

    def eigh(self, x: torch.Tensor, has_vectors: bool) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The real eigenvalues of Hermitian matrices, of which the lower triangle is read, and the vectors or
        what has no meaning."""

    def eig(self, x: torch.Tensor, has_vectors: bool) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The complex eigenvalues, and the vectors or what has no meaning."""

    def svd(self, x: torch.Tensor, job: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
        """U, the singular values and V^H: whole with the job "A", thin with "S", without meaning with "N"."""


class ComplexEigenvalues(Protocol):
    """Eigenvalues of many small complex matrices on the host."""

    def fits(self, x: torch.Tensor) -> bool:
        """Whether there is code for matrices of this shape, and so many that it is faster."""

    def prepare(self) -> None:
        """Has the code made on a thread."""

    def __call__(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The values, in no order, and the vectors, of length 1; None if they were not found."""
