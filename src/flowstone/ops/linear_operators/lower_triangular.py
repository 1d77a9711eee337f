"""LinearOperatorLowerTriangular: the lower triangles of matrices."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.linear_operators.full_matrix import as_matrix
from flowstone.ops.linear_operators.linear_operator import MAKERS, Hint, LinearOperator


class LinearOperatorLowerTriangular(LinearOperator):
    """The lower triangles of `tril` [..., n, n], whose upper part is not read.

    Solutions are by substitution, determinants by the diagonal. Other arguments are those of
    `LinearOperator`.
    """

    def __init__(
        self,
        tril: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        if is_square is False:
            raise ValueError("Only square lower triangular operators supported at this time.")
        self._full = as_matrix(tril, "tril")
        super().__init__(
            self._full.dtype,
            [self._full],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
            {"tril": tril},
        )

    @property
    def tril(self) -> Tensor:
        """The lower triangles [..., n, n], zero above."""
        return F.MatrixBandPart(self._full, -1, 0)

    def _shape(self) -> Dims:
        return self._full.dims

    def _shape_tensor(self) -> Tensor:
        return F.Shape(self._full)

    def _to_dense(self) -> Tensor:
        return self.tril

    def _diag_part(self) -> Tensor:
        return F.MatrixDiagPart(self._full)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return F.MatrixTriangularSolve(self.tril, rhs, lower=True, adjoint=adjoint)

    def _determinant(self) -> Tensor:
        return F.Prod(self._diag_part(), [-1])

    def _log_abs_determinant(self) -> Tensor:
        return MAKERS["diagonal"](self._diag_part())._log_abs_determinant()

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _assert_non_singular(self) -> Any:
        return MAKERS["diagonal"](self._diag_part())._assert_non_singular()

    def _times(self, other: LinearOperator) -> LinearOperator:
        if isinstance(other, LinearOperatorLowerTriangular):
            both = bool(self.is_non_singular and other.is_non_singular) or None
            dense = self._matmul(other._to_dense(), False, False)
            return LinearOperatorLowerTriangular(dense, is_non_singular=both)
        return super()._times(other)


MAKERS["lower triangular"] = LinearOperatorLowerTriangular
