"""LinearOperatorTridiag: tridiagonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.algebra.tridiagonal_matrices import (
    adjoint_diagonals,
    as_compact,
    tridiagonal_matmul,
)
from flowstone.ops.linear_operators.dense import broadcast_batch
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator


class LinearOperatorTridiag(LinearOperator):
    """The tridiagonal matrices [..., n, n] of `diagonals`, in a `diagonals_format` of `tridiagonal_solve`.

    Other arguments are those of `LinearOperator`.
    """

    def __init__(
        self,
        diagonals: Any,
        diagonals_format: str = "compact",
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorTridiag",
    ) -> None:
        if is_square is False:
            raise ValueError("Only square tridiagonal operators are supported.")
        self._given, self._format = diagonals, diagonals_format
        self._diagonals = as_compact(diagonals, diagonals_format)
        super().__init__(
            self._diagonals.dtype,
            [self._diagonals],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
            {"diagonals": diagonals, "diagonals_format": diagonals_format},
        )

    @property
    def diagonals(self) -> Any:
        """The diagonals, as they were given."""
        return self._given

    @property
    def diagonals_format(self) -> str:
        """How they were given."""
        return self._format

    def _shape(self) -> Dims:
        dims = self._diagonals.dims
        return None if dims is None else (*dims[:-2], dims[-1], dims[-1])

    def _shape_tensor(self) -> Tensor:
        shape = F.Shape(self._diagonals)
        size = F.StridedSlice(shape, [-1], [0], [1], end_mask=1)
        return F.ConcatV2([F.StridedSlice(shape, [0], [-2], [1], begin_mask=1), size, size], 0)

    def _spread(self, x: Tensor, adjoint: bool) -> tuple[Tensor, Tensor]:
        """The diagonals, or those of the adjoint, and x, with batches broadcast."""
        diagonals = adjoint_diagonals(self._diagonals) if adjoint else self._diagonals
        of_x = F.StridedSlice(F.Shape(x), [0], [-2], [1], begin_mask=1)
        of_diagonals = F.StridedSlice(F.Shape(diagonals), [0], [-2], [1], begin_mask=1)
        known_x = None if x.dims is None or None in x.dims[:-2] else x.dims[:-2]
        dims = diagonals.dims
        known = None if dims is None or None in dims[:-2] else dims[:-2]
        return broadcast_batch(diagonals, known_x, of_x), broadcast_batch(x, known, of_diagonals)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        diagonals, x = self._spread(adjoint_of(x) if adjoint_arg else x, adjoint)
        return tridiagonal_matmul(diagonals, x)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return F.TridiagonalSolve(*self._spread(rhs, adjoint))

    def _diag_part(self) -> Tensor:
        row = F.StridedSlice(
            self._diagonals,
            [0, 1, 0],
            [0, 2, 0],
            [1, 1, 1],
            ellipsis_mask=1,
            begin_mask=4,
            end_mask=4,
            shrink_axis_mask=2,
        )
        return row

    def _to_dense(self) -> Tensor:
        size, zero = np.int32(-1), self.dtype.as_numpy_dtype(0)
        limits = np.array([-1, 1], np.int32)
        return F.MatrixDiagV3(self._diagonals, limits, size, size, zero, align="LEFT_RIGHT")
