"""LinearOperatorToeplitz: matrices with equal elements along each diagonal, by Fourier transforms."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.algebra.matrix_gradients import transposed
from flowstone.ops.linear_operators.circulant import as_complex
from flowstone.ops.linear_operators.dense import conjugated
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator


class LinearOperatorToeplitz(LinearOperator):
    """Matrices [..., n, n] with equal elements along each diagonal.

    `col` and `row` [..., n] are the first column and row, whose first elements are the same; that of `col`
    counts. Products are by Fourier transforms of twice the length. Other arguments are those of
    `LinearOperator`.
    """

    def __init__(
        self,
        col: Any,
        row: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        self._col = convert_to_tensor(col, name="col")
        self._row = convert_to_tensor(row, self._col.dtype, name="row")
        for each in (self._col, self._row):
            if each.dims is not None and not each.dims:
                raise ValueError("Arguments col and row must have at least 1 dimension.  Found: 0")
        if is_square is False:
            raise ValueError("Only square Toeplitz operators currently supported.")
        super().__init__(
            self._col.dtype,
            [self._col, self._row],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
            {"col": col, "row": row},
        )

    @property
    def col(self) -> Tensor:
        """The first columns [..., n]."""
        return self._col

    @property
    def row(self) -> Tensor:
        """The first rows [..., n]."""
        return self._row

    def _both(self) -> Tensor:
        """The elements of all diagonals [..., 2n - 1], from the highest to the lowest."""
        rest = F.StridedSlice(self._row, [0, 1], [0, 0], [1, 1], ellipsis_mask=1, end_mask=2)
        shape = F.BroadcastArgs(
            *[F.StridedSlice(F.Shape(x), [0], [-1], [1], begin_mask=1) for x in (self._col, self._row)]
        )
        parts = []
        for part in (F.ReverseV2(rest, [-1]), self._col):
            size = F.StridedSlice(F.Shape(part), [-1], [0], [1], end_mask=1)
            parts.append(F.BroadcastTo(part, F.ConcatV2([shape, size], 0)))
        return F.ConcatV2(parts, -1)

    def _shape(self) -> Dims:
        dims = self._both().dims
        if dims is None or self._col.dims is None:
            return None
        size = self._col.dims[-1]
        return (*dims[:-1], size, size)

    def _shape_tensor(self) -> Tensor:
        both = F.StridedSlice(F.Shape(self._both()), [0], [-1], [1], begin_mask=1)
        size = F.StridedSlice(F.Shape(self._col), [-1], [0], [1], end_mask=1)
        return F.ConcatV2([both, size, size], 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = adjoint_of(x) if adjoint_arg else x
        both = self._both()
        if adjoint:
            both = F.ReverseV2(conjugated(both, True), [-1])
        size = self._side_tensor(-1)
        length = F.Sub(F.Mul(size, np.int32(2)), np.int32(1))
        kernel = F.ExpandDims(as_complex(both), -2)
        rows = as_complex(transposed(x))
        none = F.ZerosLike(F.StridedSlice(rows, [0, 1], [0, 0], [1, 1], ellipsis_mask=1, end_mask=2))
        made = F.IFFT(F.Mul(F.FFT(kernel), F.FFT(F.ConcatV2([rows, none], -1))))
        # The kernel begins n - 1 places before the main diagonal: so does its product, around the end.
        first = F.Sub(size, np.int32(1))
        kept = F.StridedSlice(
            made, F.Pack([np.int32(0), first]), F.Pack([np.int32(0), length]), [1, 1], ellipsis_mask=1
        )
        result = transposed(kept)
        if self.dtype.is_complex:
            return result
        return F.Real(result, Tout=self.dtype)

    def _diag_part(self) -> Tensor:
        first = F.StridedSlice(self._col, [0, 0], [0, 1], [1, 1], ellipsis_mask=1)
        shape = F.StridedSlice(self.shape_tensor(), [0], [-1], [1], begin_mask=1)
        return F.BroadcastTo(first, shape)

    def _to_dense(self) -> Tensor:
        size = self._side_tensor(-1)
        places = F.Range(np.int32(0), size, np.int32(1))
        below = F.Sub(F.ExpandDims(places, 1), places)  # how far each element is below the main diagonal
        both = self._both()
        at = F.AddV2(below, F.Sub(size, np.int32(1)))
        return F.GatherV2(both, at, -1 if both.dims is None else len(both.dims) - 1)
