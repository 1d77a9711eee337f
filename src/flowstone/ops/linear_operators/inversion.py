"""LinearOperatorInversion: the inverses of another operator."""

from __future__ import annotations

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.linear_operators.derived import DerivedOperator, inherited
from flowstone.ops.linear_operators.linear_operator import MAKERS, Hint, LinearOperator


class LinearOperatorInversion(DerivedOperator):
    """The inverses [..., n, n] of `operator`: its products are the operator's solutions.

    Hints are those of the operator unless they are given. ValueError for an operator that is singular by its
    hints, or hints that contradict it.
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
        if operator.is_square is False or operator.is_non_singular is False or is_non_singular is False:
            raise ValueError("operator and is_non_singular must not say that it is singular")
        self._operator = operator
        super().__init__(
            operator.dtype,
            operator.graph_parents,
            True,
            inherited(is_self_adjoint, operator.is_self_adjoint, "self-adjoint"),
            inherited(is_positive_definite, operator.is_positive_definite, "positive definite"),
            True if is_square is None else is_square,
            name or f"{operator.name}_inv",
            {"operator": operator},
        )

    def _shape(self) -> Dims:
        return self._operator._dims()

    def _shape_tensor(self) -> Tensor:
        return self._operator.shape_tensor()

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self._operator._solve(adjoint_of(x) if adjoint_arg else x, adjoint)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return self._operator._matmul(rhs, adjoint, False)

    def _determinant(self) -> Tensor:
        return F.Reciprocal(self._operator._determinant())

    def _log_abs_determinant(self) -> Tensor:
        return F.Neg(self._operator._log_abs_determinant())

    def _eigvals(self) -> Tensor:
        return F.Reciprocal(self._operator._eigvals())

    def _inverse(self) -> LinearOperator:
        return self._operator


MAKERS["inversion"] = LinearOperatorInversion
