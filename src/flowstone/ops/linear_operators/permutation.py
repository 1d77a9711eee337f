"""LinearOperatorPermutation: matrices that put rows into another order."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.algebra.matrix_gradients import product
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator


class LinearOperatorPermutation(LinearOperator):
    """The matrices [..., n, n] of `dtype` that have a one in row i and column ``perm[i]``.

    Row i of a product is row ``perm[i]`` of the argument. Its adjoint is its inverse. `perm`: int32 or int64
    [..., n]. Other arguments are those of `LinearOperator`.
    """

    def __init__(
        self,
        perm: Any,
        dtype: Any = dtypes.float32,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorPermutation",
    ) -> None:
        self._perm = convert_to_tensor(perm, name="perm")
        if not self._perm.dtype.is_integer:
            raise TypeError(f"Argument perm must be of integers.  Found: {self._perm.dtype.name}")
        if self._perm.dims is not None and not self._perm.dims:
            raise ValueError("Argument perm must have at least 1 dimension.  Found: 0")
        if is_non_singular is False or is_square is False:
            raise ValueError("A Permutation operator is always square and non-singular.")
        super().__init__(
            dtype,
            [self._perm],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
            {"perm": perm, "dtype": dtype},
        )

    @property
    def perm(self) -> Tensor:
        """The column of the one in every row."""
        return self._perm

    def _shape(self) -> Dims:
        dims = self._perm.dims
        return None if dims is None else (*dims, dims[-1])

    def _shape_tensor(self) -> Tensor:
        shape = F.Shape(self._perm)
        return F.ConcatV2([shape, F.StridedSlice(shape, [-1], [0], [1], end_mask=1)], 0)

    def _to_dense(self) -> Tensor:
        number = self.dtype.as_numpy_dtype
        return F.OneHot(self._perm, self._side_tensor(-1), number(1), number(0))

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = adjoint_of(x) if adjoint_arg else x
        if self._perm.dims is None or len(self._perm.dims) > 1 or x.dims is None:
            return product(self._to_dense(), x, adjoint_a=adjoint)
        order = F.InvertPermutation(self._perm) if adjoint else self._perm
        return F.GatherV2(x, order, len(x.dims) - 2)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return self._matmul(rhs, not adjoint, False)

    def _log_abs_determinant(self) -> Tensor:
        return F.Fill(self.batch_shape_tensor(), self.dtype.as_numpy_dtype(0))

    def _cond(self) -> Tensor:
        return F.Fill(self.batch_shape_tensor(), self.dtype.as_numpy_dtype(1))

    def _assert_non_singular(self) -> Any:
        counts = F.Sum(self._to_dense(), [-2])
        return self._assert_all(F.Equal(counts, convert_to_tensor(1, self.dtype)), "perm is no permutation.")
