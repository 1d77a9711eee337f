"""LinearOperatorAdjoint: the conjugate transposes of another operator."""

from __future__ import annotations

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.linear_operators.derived import DerivedOperator, inherited
from flowstone.ops.linear_operators.linear_operator import MAKERS, Hint, LinearOperator
from flowstone.ops.numbers.elementwise import conjugate


class LinearOperatorAdjoint(DerivedOperator):
    """The conjugate transposes [..., n, m] of `operator` [..., m, n].

    Hints are those of the operator unless they are given, and ValueError if they contradict it.
    """

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str | None = None,
    ) -> None:
        self._operator = operator
        super().__init__(
            operator.dtype,
            operator.graph_parents,
            inherited(is_non_singular, operator.is_non_singular, "non-singular"),
            inherited(is_self_adjoint, operator.is_self_adjoint, "self-adjoint"),
            inherited(is_positive_definite, operator.is_positive_definite, "positive definite"),
            inherited(is_square, operator.is_square, "square"),
            name or f"{operator.name}_adjoint",
            {"operator": operator},
        )

    def _shape(self) -> Dims:
        dims = self._operator._dims()
        return None if dims is None else (*dims[:-2], dims[-1], dims[-2])

    def _shape_tensor(self) -> Tensor:
        shape = self._operator.shape_tensor()
        sides = F.ReverseV2(F.StridedSlice(shape, [-2], [0], [1], end_mask=1), [0])
        return F.ConcatV2([F.StridedSlice(shape, [0], [-2], [1], begin_mask=1), sides], 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self._operator._matmul(x, not adjoint, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return self._operator._solve(rhs, not adjoint)

    def _determinant(self) -> Tensor:
        return conjugate(self._operator._determinant())

    def _log_abs_determinant(self) -> Tensor:
        return self._operator._log_abs_determinant()

    def _trace(self) -> Tensor:
        return conjugate(self._operator._trace())

    def _diag_part(self) -> Tensor:
        return conjugate(self._operator._diag_part())

    def _to_dense(self) -> Tensor:
        return adjoint_of(self._operator._to_dense())

    def _eigvals(self) -> Tensor:
        return conjugate(self._operator._eigvals())

    def _adjoint(self) -> LinearOperator:
        return self._operator


MAKERS["adjoint"] = LinearOperatorAdjoint
