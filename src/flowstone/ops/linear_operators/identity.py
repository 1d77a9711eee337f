"""LinearOperatorIdentity: identity matrices."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph_functions import name_scope
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.arrays.constants import zeros
from flowstone.ops.linear_operators.given_sizes import BatchShape, as_size, checked_size
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator


class LinearOperatorIdentity(LinearOperator):
    """Identity matrices [*batch_shape, num_rows, num_rows] of `dtype` (float32), that are never formed.

    `assert_proper_shapes` has the step check that the sizes are not negative. The hints may only be True or
    None. Other arguments are those of `LinearOperator`.
    """

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: Hint = True,
        is_self_adjoint: Hint = True,
        is_positive_definite: Hint = True,
        is_square: Hint = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        for hint, what in (
            (is_self_adjoint, "self adjoint"),
            (is_non_singular, "non-singular"),
            (is_positive_definite, "positive-definite"),
            (is_square, "square"),
        ):
            if not hint:
                raise ValueError(f"An identity operator is always {what}.")
        with name_scope(name):
            self._rows_tensor, self._rows = as_size(num_rows, "num_rows")
            self._batch = BatchShape(batch_shape)
            if assert_proper_shapes:
                self._rows_tensor = checked_size(self._rows_tensor)
        super().__init__(
            dtypes.float32 if dtype is None else dtype,
            None,
            True,
            True,
            True,
            True,
            name,
            {"num_rows": num_rows, "batch_shape": batch_shape},
        )

    def _shape(self) -> Dims:
        return None if self._batch.dims is None else (*self._batch.dims, self._rows, self._rows)

    def _shape_tensor(self) -> Tensor:
        return F.ConcatV2([self._batch.tensor, F.Pack([self._rows_tensor, self._rows_tensor])], 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self._batch.spread(adjoint_of(x) if adjoint_arg else x)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return self._batch.spread(rhs)

    def _ones(self) -> Tensor:
        return F.Fill(self.batch_shape_tensor(), self.dtype.as_numpy_dtype(1))

    def _determinant(self) -> Tensor:
        return self._ones()

    def _log_abs_determinant(self) -> Tensor:
        return zeros(self.batch_shape_tensor(), self.dtype)

    def _trace(self) -> Tensor:
        return F.Mul(self._ones(), F.Cast(self._rows_tensor, DstT=self.dtype))

    def _diag_part(self) -> Tensor:
        shape = F.ConcatV2([self._batch.tensor, F.Pack([self._rows_tensor])], 0)
        return F.Fill(shape, self.dtype.as_numpy_dtype(1))

    def _to_dense(self) -> Tensor:
        return F.MatrixDiag(self._diag_part())

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _cond(self) -> Tensor:
        return self._ones()

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Tensor:
        """The sum A + mat [..., n, n]."""
        return super().add_to_tensor(mat, name)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        x = self._batch.spread(x)
        one = convert_to_tensor(1, self.dtype)
        return F.MatrixSetDiag(x, F.AddV2(F.MatrixDiagPart(x), one))

    def _inverse(self) -> LinearOperator:
        return self

    def _cholesky(self) -> LinearOperator:
        return self

    def _times(self, other: LinearOperator) -> LinearOperator:
        return other if self._batch.dims == () else super()._times(other)

    def _assert_non_singular(self) -> Any:
        return F.NoOp.operation()

    _assert_positive_definite = _assert_non_singular
    _assert_self_adjoint = _assert_non_singular
