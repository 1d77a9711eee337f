"""What the native tier offers to functions of numbers, in slots as those of `machine_code.py`.

`complex_function(name, otherwise)` is the function of the operation of that name for complex64 numbers,
within rounding what `otherwise` gives. `complex_eigenvalues(dtype)` finds those of many small matrices
(`matrix_kernels.py`). `integer_matrices()` multiplies matrices of int32. They are None where there is no
machine code, the last also where there is none yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch

from flowstone.framework.machine.machine_code import Slot
from flowstone.framework.machine.matrix_kernels import ComplexEigenvalues

__all__ = [
    "ComplexFunction",
    "IntegerMatrices",
    "complex_eigenvalues",
    "complex_function",
    "integer_matrices",
]


class ComplexFunction(Protocol):
    """A function of complex64 numbers on the host."""

    def __call__(self, *given: torch.Tensor) -> torch.Tensor:
        """The results of one tensor, or of two that broadcast."""


class IntegerMatrices(Protocol):
    """The product of matrices on the host."""

    def __call__(self, a: torch.Tensor, b: torch.Tensor, /) -> torch.Tensor:
        """That of two of int32, with its wrap-around."""


complex_eigenvalues: Slot[[torch.dtype | None], ComplexEigenvalues] = Slot()
complex_function: Slot[[str, Callable[..., torch.Tensor]], ComplexFunction] = Slot()
integer_matrices: Slot[[], IntegerMatrices] = Slot()
