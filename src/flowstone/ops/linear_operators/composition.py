"""LinearOperatorComposition: the product of several operators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims, broadcast
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.control.control_flow import group
from flowstone.ops.linear_operators.linear_operator import MAKERS, Hint, LinearOperator


def checked_operators(operators: Sequence[LinearOperator]) -> list[LinearOperator]:
    """The operators of a list. ValueError for none, TypeError for different types."""
    found = list(operators)
    if not found:
        raise ValueError("Expected a non-empty list of operators. Found: []")
    if any(each.dtype is not found[0].dtype for each in found):
        types = [(each.name, each.dtype.name) for each in found]
        raise TypeError(f"Expected all operators to have the same dtype.  Found {types}")
    return found


def parents_of(operators: Sequence[LinearOperator]) -> list[Any]:
    """The tensors that the operators are made of."""
    return [parent for each in operators for parent in each.graph_parents]


def all_hints(hint: Hint, hints: Sequence[Hint], message: str) -> Hint:
    """A hint that follows if all operators have it. ValueError if it was given as False."""
    if all(hints):
        if hint is False:
            raise ValueError(message)
        return True
    return hint


def broadcast_batches(operators: Sequence[LinearOperator]) -> Dims:
    """The batch that all operators' batches broadcast to."""
    batches = [None if (dims := each._dims()) is None else dims[:-2] for each in operators]
    return reduce(broadcast, batches)


def broadcast_batch_tensors(operators: Sequence[LinearOperator]) -> Tensor:
    """The batch that all operators' batches broadcast to, in the step."""
    return reduce(F.BroadcastArgs, [each.batch_shape_tensor() for each in operators])


class LinearOperatorComposition(LinearOperator):
    """The product A1 A2 … of `operators`, whose batches broadcast.

    It is non-singular if all of them are. Other arguments are those of `LinearOperator`. ValueError where the
    columns of one are not as many as the rows of the next.
    """

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str | None = None,
    ) -> None:
        self._operators = checked_operators(operators)
        for left, right in zip(self._operators, self._operators[1:]):
            if not left.domain_dimension.is_compatible_with(right.range_dimension):
                raise ValueError(
                    f"The operators {left.name} {left.shape} and {right.name} {right.shape} do not compose."
                )
        is_non_singular = all_hints(
            is_non_singular,
            [each.is_non_singular for each in self._operators],
            "The composition of non-singular operators is always non-singular.",
        )
        super().__init__(
            self._operators[0].dtype,
            parents_of(self._operators),
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name or "_o_".join([each.name for each in self._operators]),
            {"operators": operators},
        )

    @property
    def operators(self) -> list[LinearOperator]:
        """The factors, from the left."""
        return self._operators

    def _shape(self) -> Dims:
        batch = broadcast_batches(self._operators)
        if batch is None:
            return None
        first, last = self._operators[0], self._operators[-1]
        return (*batch, first.range_dimension.value, last.domain_dimension.value)

    def _shape_tensor(self) -> Tensor:
        sides = F.Pack([self._operators[0]._side_tensor(-2), self._operators[-1]._side_tensor(-1)])
        return F.ConcatV2([broadcast_batch_tensors(self._operators), sides], 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = adjoint_of(x) if adjoint_arg else x
        for each in self._operators if adjoint else reversed(self._operators):
            x = each._matmul(x, adjoint, False)
        return x

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        for each in reversed(self._operators) if adjoint else self._operators:
            rhs = each._solve(rhs, adjoint)
        return rhs

    @property
    def _are_square(self) -> bool:
        return all([each.is_square for each in self._operators])

    def _determinant(self) -> Tensor:
        if not self._are_square:
            return super()._determinant()
        return reduce(F.Mul, [each._determinant() for each in self._operators])

    def _log_abs_determinant(self) -> Tensor:
        if not self._are_square:
            return super()._log_abs_determinant()
        return reduce(F.AddV2, [each._log_abs_determinant() for each in self._operators])

    def _to_dense(self) -> Tensor:
        dense = self._operators[-1]._to_dense()
        for each in reversed(self._operators[:-1]):
            dense = each._matmul(dense, False, False)
        return dense

    def _assert_non_singular(self) -> Any:
        if not self._are_square:
            return super()._assert_non_singular()
        return group(*[each._assert_non_singular() for each in self._operators])


MAKERS["composition"] = LinearOperatorComposition
