"""LinearOperatorZeros: matrices of zeros."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.linear_operators.given_sizes import BatchShape, as_size, checked_size
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator


class LinearOperatorZeros(LinearOperator):
    """Matrices of zeros [*batch_shape, num_rows, num_columns] of `dtype` (float32), that are never formed.

    Square ones are self-adjoint; none is positive definite or non-singular. Other arguments are those of
    `LinearOperatorIdentity`.
    """

    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: Hint = False,
        is_self_adjoint: Hint = True,
        is_positive_definite: Hint = False,
        is_square: Hint = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        if not is_self_adjoint and is_square:
            raise ValueError("A zero operator is always self adjoint.")
        if is_non_singular:
            raise ValueError("A zero operator is always singular.")
        if is_positive_definite:
            raise ValueError("A zero operator is always not positive-definite.")
        self._rows_tensor, self._rows = as_size(num_rows, "num_rows")
        self._columns_tensor, self._columns = (
            (self._rows_tensor, self._rows) if num_columns is None else as_size(num_columns, "num_columns")
        )
        if is_square and None not in (self._rows, self._columns) and self._rows != self._columns:
            raise ValueError(
                "LinearOperatorZeros initialized as is_square=True, but got num_rows != num_columns"
            )
        self._batch = BatchShape(batch_shape)
        if assert_proper_shapes:
            self._rows_tensor = checked_size(self._rows_tensor)
        super().__init__(
            dtypes.float32 if dtype is None else dtype,
            None,
            False,
            bool(is_self_adjoint and is_square),
            False,
            is_square,
            name,
            {"num_rows": num_rows, "num_columns": num_columns, "batch_shape": batch_shape},
        )

    def _shape(self) -> Dims:
        return None if self._batch.dims is None else (*self._batch.dims, self._rows, self._columns)

    def _shape_tensor(self) -> Tensor:
        return F.ConcatV2([self._batch.tensor, F.Pack([self._rows_tensor, self._columns_tensor])], 0)

    def _zeros(self, shape: Any) -> Tensor:
        return F.Fill(shape, self.dtype.as_numpy_dtype(0))

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        shape = F.Shape(x)
        last = F.StridedSlice(
            shape, *([-2], [-1]) if adjoint_arg else ([-1], [0]), [1], end_mask=int(not adjoint_arg)
        )
        batch = F.BroadcastArgs(F.StridedSlice(shape, [0], [-2], [1], begin_mask=1), self._batch.tensor)
        rows = F.Pack([self._columns_tensor if adjoint else self._rows_tensor])
        return self._zeros(F.ConcatV2([batch, rows, last], 0))

    def _determinant(self) -> Tensor:
        return self._zeros(self._batch.tensor)

    def _trace(self) -> Tensor:
        return self._zeros(self._batch.tensor)

    def _diag_part(self) -> Tensor:
        length = F.Minimum(self._rows_tensor, self._columns_tensor)
        return self._zeros(F.ConcatV2([self._batch.tensor, F.Pack([length])], 0))

    def _to_dense(self) -> Tensor:
        return self._zeros(self.shape_tensor())

    def _eigvals(self) -> Tensor:
        return self._diag_part()

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return self._batch.spread(x)

    def _assert_non_singular(self) -> Any:
        raise ValueError("Zero operators are always non-invertible.")

    def _assert_positive_definite(self) -> Any:
        raise ValueError("Zero operators are always non-positive definite.")

    def _assert_self_adjoint(self) -> Any:
        return F.NoOp.operation()
