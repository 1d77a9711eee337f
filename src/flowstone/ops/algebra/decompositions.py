"""Decompositions of matrices [..., m, n], with the results of ATen's functions of these names.

Many matrices on a host are shared by a team, which ATen does not do (`framework/machine/matrix_kernels.py`).
"""

from __future__ import annotations

from typing import Any

import torch

from flowstone.framework.machine.machine_code import matrix_batches
from flowstone.framework.machine.matrix_kernels import MatrixBatches

__all__ = ["eig", "eigh", "eigvals", "eigvalsh", "svd", "svdvals"]


def eigh(x: torch.Tensor) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices, of which the lower triangle is read."""
    batches = _batches_for(x)
    return (batches and batches.eigh(x, True)) or torch.linalg.eigh(x)


def eigvalsh(x: torch.Tensor) -> Any:
    """The values of `eigh`."""
    batches = _batches_for(x)
    found = batches and batches.eigh(x, False)
    return found[0] if found else torch.linalg.eigvalsh(x)


def eig(x: torch.Tensor) -> Any:
    """Eigenvalues and eigenvectors, complex."""
    batches = _batches_for(x)
    return (batches and batches.eig(x, True)) or torch.linalg.eig(x)


def eigvals(x: torch.Tensor) -> Any:
    """The values of `eig`."""
    batches = _batches_for(x)
    found = batches and batches.eig(x, False)
    return found[0] if found else torch.linalg.eigvals(x)


def svd(x: torch.Tensor, is_full: bool) -> Any:
    """U, the singular values and V^H."""
    batches = _batches_for(x)
    return (batches and batches.svd(x, "A" if is_full else "S")) or torch.linalg.svd(x, is_full)


def svdvals(x: torch.Tensor) -> Any:
    """The singular values."""
    batches = _batches_for(x)
    found = batches and batches.svd(x, "N")
    return found[1] if found else torch.linalg.svdvals(x)


def _batches_for(x: torch.Tensor) -> MatrixBatches | None:
    if x.ndim < 3 or x.device.type != "cpu":
        return None
    batches = matrix_batches(x.dtype)
    return batches if batches is not None and batches.fits(x) else None
