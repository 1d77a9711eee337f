"""LinearOperatorHouseholder: reflections at a hyperplane."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.algebra.matrix_gradients import product
from flowstone.ops.linear_operators.dense import real_part
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator
from flowstone.ops.numbers.elementwise import conjugate


class LinearOperatorHouseholder(LinearOperator):
    """The reflections I - 2 v v^H / |v|² at the hyperplanes normal to `reflection_axis` [..., n].

    A reflection is its own inverse and adjoint. Other arguments are those of `LinearOperator`.
    """

    def __init__(
        self,
        reflection_axis: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        self._axis = convert_to_tensor(reflection_axis, name="reflection_axis")
        if self._axis.dims is not None and not self._axis.dims:
            raise ValueError("Argument reflection_axis must have at least 1 dimension.  Found: 0")
        if is_self_adjoint is False:
            raise ValueError("A Householder operator is always self adjoint.")
        if is_positive_definite:
            raise ValueError("A Householder operator is always non-positive definite.")
        if is_square is False:
            raise ValueError("A Householder operator is always square.")
        super().__init__(
            self._axis.dtype,
            [self._axis],
            is_non_singular,
            True,
            False,
            True,
            name,
            {"reflection_axis": reflection_axis},
        )

    @property
    def reflection_axis(self) -> Tensor:
        """The vectors [..., n] that change their direction."""
        return self._axis

    def _shape(self) -> Dims:
        dims = self._axis.dims
        return None if dims is None else (*dims, dims[-1])

    def _shape_tensor(self) -> Tensor:
        shape = F.Shape(self._axis)
        return F.ConcatV2([shape, F.StridedSlice(shape, [-1], [0], [1], end_mask=1)], 0)

    def _normal(self) -> Tensor:
        """v / |v|."""
        squares = real_part(F.Mul(self._axis, conjugate(self._axis)))
        size = F.Rsqrt(F.Sum(squares, [-1], keep_dims=True))
        return F.Mul(self._axis, F.Cast(size, DstT=self.dtype))

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = adjoint_of(x) if adjoint_arg else x
        normal = F.ExpandDims(self._normal(), -1)
        along = product(normal, x, adjoint_a=True)
        return F.Sub(x, F.Mul(convert_to_tensor(2, self.dtype), F.Mul(normal, along)))

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return self._matmul(rhs, adjoint, False)

    def _batch_of(self, value: float) -> Tensor:
        return F.Fill(self.batch_shape_tensor(), self.dtype.as_numpy_dtype(value))

    def _determinant(self) -> Tensor:
        return self._batch_of(-1)

    def _log_abs_determinant(self) -> Tensor:
        return self._batch_of(0)

    def _trace(self) -> Tensor:
        size = F.Cast(self._side_tensor(-1), DstT=self.dtype)
        return F.Mul(self._batch_of(1), F.Sub(size, convert_to_tensor(2, self.dtype)))

    def _diag_part(self) -> Tensor:
        normal = self._normal()
        squares = F.Mul(normal, conjugate(normal))
        return F.Sub(convert_to_tensor(1, self.dtype), F.Mul(convert_to_tensor(2, self.dtype), squares))

    def _eigvals(self) -> Tensor:
        ones = F.OnesLike(self._axis)
        first = F.StridedSlice(ones, [0, 0], [0, 1], [1, 1], ellipsis_mask=1)
        rest = F.StridedSlice(ones, [0, 1], [0, 0], [1, 1], ellipsis_mask=1, end_mask=2)
        return F.ConcatV2([F.Neg(first), rest], -1)

    def _cond(self) -> Tensor:
        return self._batch_of(1)

    def _inverse(self) -> LinearOperator:
        return self

    def _assert_non_singular(self) -> Any:
        return F.NoOp.operation()

    _assert_self_adjoint = _assert_non_singular

    def _assert_positive_definite(self) -> Any:
        raise ValueError("Householder operators are always non-positive definite.")
