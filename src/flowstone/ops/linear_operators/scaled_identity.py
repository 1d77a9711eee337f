"""LinearOperatorScaledIdentity: identity matrices times numbers."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.linear_operators.dense import conjugated, over_matrices, real_part, size_of
from flowstone.ops.linear_operators.given_sizes import as_size, checked_size
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator
from flowstone.ops.numbers.elementwise import conjugate


class LinearOperatorScaledIdentity(LinearOperator):
    """Identity matrices [..., num_rows, num_rows] times `multiplier` [...], that are never formed.

    A real one is self-adjoint. Other arguments are those of `LinearOperatorIdentity`.
    """

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        self._multiplier = convert_to_tensor(multiplier, name="multiplier")
        if not self._multiplier.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        if not is_square:
            raise ValueError("A ScaledIdentity operator is always square.")
        self._rows_tensor, self._rows = as_size(num_rows, "num_rows")
        if assert_proper_shapes:
            self._rows_tensor = checked_size(self._rows_tensor)
        super().__init__(
            self._multiplier.dtype,
            None,
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
            {"num_rows": num_rows, "multiplier": multiplier},
        )

    @property
    def multiplier(self) -> Tensor:
        """The factors [...]."""
        return self._multiplier

    def _shape(self) -> Dims:
        dims = self._multiplier.dims
        return None if dims is None else (*dims, self._rows, self._rows)

    def _shape_tensor(self) -> Tensor:
        return F.ConcatV2([F.Shape(self._multiplier), F.Pack([self._rows_tensor, self._rows_tensor])], 0)

    def _factor(self, adjoint: bool = False) -> Tensor:
        return over_matrices(conjugated(self._multiplier, adjoint))

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return F.Mul(self._factor(adjoint), adjoint_of(x) if adjoint_arg else x)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return F.RealDiv(rhs, self._factor(adjoint))

    def _rows_as(self, dtype: dtypes.DType) -> Tensor:
        return F.Cast(self._rows_tensor, DstT=dtype)

    def _determinant(self) -> Tensor:
        return F.Pow(self._multiplier, self._rows_as(self.dtype))

    def _size(self) -> Tensor:
        return size_of(self._multiplier)

    def _log_abs_determinant(self) -> Tensor:
        size = self._size()
        return F.Cast(F.Mul(F.Log(size), self._rows_as(size.dtype)), DstT=self.dtype)

    def _trace(self) -> Tensor:
        return F.Mul(self._multiplier, self._rows_as(self.dtype))

    def _diag_part(self) -> Tensor:
        shape = F.ConcatV2([F.Shape(self._multiplier), F.Pack([self._rows_tensor])], 0)
        return F.Mul(F.ExpandDims(self._multiplier, -1), F.Fill(shape, self.dtype.as_numpy_dtype(1)))

    def _to_dense(self) -> Tensor:
        return F.MatrixDiag(self._diag_part())

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _cond(self) -> Tensor:
        return F.OnesLike(self._multiplier)

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Tensor:
        """The sum A + mat [..., n, n]."""
        return super().add_to_tensor(mat, name)

    def _with(self, multiplier: Tensor, is_non_singular: Hint) -> LinearOperator:
        return LinearOperatorScaledIdentity(
            self._rows_tensor if self._rows is None else self._rows,
            multiplier,
            is_non_singular,
            self.is_self_adjoint,
            self.is_positive_definite,
        )

    def _adjoint(self) -> LinearOperator:
        return self._with(conjugate(self._multiplier), self.is_non_singular)

    def _inverse(self) -> LinearOperator:
        return self._with(F.Reciprocal(self._multiplier), True)

    def _cholesky(self) -> LinearOperator:
        return self._with(F.Sqrt(self._multiplier), True)

    def _assert_non_singular(self) -> Any:
        return self._assert_all(F.Greater(self._size(), 0), "LinearOperator was singular")

    def _assert_positive_definite(self) -> Any:
        positive = F.Greater(real_part(self._multiplier), 0)
        return self._assert_all(positive, "LinearOperator was not positive definite.")

    def _assert_self_adjoint(self) -> Any:
        if not self.dtype.is_complex:
            return F.NoOp.operation()
        imaginary = F.Imag(self._multiplier, Tout=self.dtype.real_dtype)
        return self._assert_all(F.Equal(imaginary, 0), "LinearOperator was not self-adjoint")
