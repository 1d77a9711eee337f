"""What the native tier offers to kernels that move elements, in slots as those of `machine_code.py`.

`framed_rows(size)` pads, joins and fills arrays and keeps bands of matrices, of elements of so many bytes,
`distinct(dtype)` finds distinct integers, `filled_rows(dtype)` gives rows of sparse tensors that have no
element one, of values of this type, `spread_rows(how, dtype, ids)` gives elements the scaled rows of their
segments, `stepped_numbers(dtype)` counts by a step. They are None where there is no machine code, or none
yet; kernels then do the same by ATen and NumPy, with the same results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from flowstone.framework.machine.machine_code import Slot

__all__ = [
    "Distinct",
    "FilledRows",
    "FramedRows",
    "SpreadRows",
    "SteppedNumbers",
    "distinct",
    "filled_rows",
    "framed_rows",
    "spread_rows",
    "stepped_numbers",
]


class Distinct(Protocol):
    """Distinct integers of a vector, in the order in which they appear, on the host."""

    def __call__(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Each number's rank among the distinct ones, int32, and where these appear first, int64; None for
        none, or too many numbers."""


class FilledRows(Protocol):
    """Elements of a sparse tensor and one more for each row without any, on the host."""

    def __call__(
        self,
        indices: torch.Tensor,
        values: torch.Tensor,
        rows: int,
        default: torch.Tensor,
        keep: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor] | None:
        """The indices [n, rank], values [n], and of each row whether it was empty; of all elements also where
        they went, int64, but of those that a mask keeps the new ones' rows, int32. None where rows are out
        of bounds or not in order, or too many."""


class FramedRows(Protocol):
    """Rows that are copied, or of which a part is and the rest is one value, on the host; None where ATen is
    faster."""

    def pad(
        self, x: torch.Tensor, pairs: Sequence[Sequence[int]], value: torch.Tensor
    ) -> torch.Tensor | None:
        """x with so much of the value, of its type, before and after each dimension."""

    def band(self, x: torch.Tensor, lower: int, upper: int) -> torch.Tensor | None:
        """Matrices with zeros but for so many diagonals below and above the main one."""

    def join(self, xs: Sequence[torch.Tensor], axis: int, is_new: bool) -> torch.Tensor | None:
        """Arrays one after the other along an axis, or a new one."""

    def fill(self, out: torch.Tensor, value: torch.Tensor) -> None:
        """Writes the value, of its type, all over contiguous memory."""


class SpreadRows(Protocol):
    """The row of each element's segment, over the size of the segment or its root, on the host."""

    def __call__(
        self, data: torch.Tensor, ids: torch.Tensor, empty: torch.Tensor | None = None
    ) -> torch.Tensor | None:
        """[n, …] of data [segments, …] and ids [n], which do not fall; zeros where a segment is `empty`. None
        if an id is out of bounds, or below the one before."""


class SteppedNumbers(Protocol):
    """Numbers from one on by a step, on the host."""

    def __call__(self, start: float, step: float, count: int) -> torch.Tensor:
        """start + k step for k below `count`: integers wrap around, floats are rounded as float64 first."""


distinct: Slot[[torch.dtype | None], Distinct] = Slot()
filled_rows: Slot[[torch.dtype | None], FilledRows] = Slot()
framed_rows: Slot[[int], FramedRows] = Slot()
spread_rows: Slot[[str, torch.dtype | None, torch.dtype | None], SpreadRows] = Slot()
stepped_numbers: Slot[[torch.dtype | None], SteppedNumbers] = Slot()
