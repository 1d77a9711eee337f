"""LinearOperatorKronecker: the Kronecker product of several operators.

Of a column, read as an array with an axis for each operator, each operator takes its axis in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.algebra.matrix_gradients import transposed
from flowstone.ops.control.control_flow import group
from flowstone.ops.linear_operators.composition import (
    all_hints,
    broadcast_batch_tensors,
    broadcast_batches,
    checked_operators,
    parents_of,
)
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator


class LinearOperatorKronecker(LinearOperator):
    """The Kronecker product A1 ⊗ A2 ⊗ … of `operators`, whose batches broadcast.

    It is square, non-singular, self-adjoint or positive definite if all of them are. Other arguments are
    those of `LinearOperator`.
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
        found = checked_operators(operators)
        self._operators = found
        message = "The Kronecker product of {0} operators is always {0}."

        def hint(given: Hint, attribute: str, what: str) -> Hint:
            return all_hints(given, [getattr(each, attribute) for each in found], message.format(what))

        super().__init__(
            found[0].dtype,
            parents_of(found),
            hint(is_non_singular, "is_non_singular", "non-singular"),
            hint(is_self_adjoint, "is_self_adjoint", "self-adjoint"),
            hint(is_positive_definite, "is_positive_definite", "positive-definite"),
            hint(is_square, "is_square", "square"),
            name or "_x_".join([each.name for each in found]),
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
        sides: list[int | None] = []
        for attribute in ("range_dimension", "domain_dimension"):
            sizes = [getattr(each, attribute).value for each in self._operators]
            sides.append(None if None in sizes else reduce(lambda a, b: a * b, sizes))
        return (*batch, *sides)

    def _shape_tensor(self) -> Tensor:
        sides = [reduce(F.Mul, [each._side_tensor(at) for each in self._operators]) for at in (-2, -1)]
        return F.ConcatV2([broadcast_batch_tensors(self._operators), F.Pack(sides)], 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        x = adjoint_of(x) if adjoint_arg else x
        return self._by_turns(
            x, -1 if not adjoint else -2, lambda each, part: each._matmul(part, adjoint, False)
        )

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return self._by_turns(rhs, -2 if not adjoint else -1, lambda each, part: each._solve(part, adjoint))

    def _by_turns(self, x: Tensor, at: int, apply: Any) -> Tensor:
        """What all operators make of x [..., n1 n2 …, r], whose rows they take the side `at` of.

        Each makes its axis the rows of a matrix whose columns are all other axes; afterwards its rows are the
        last axis but one, and the next axis is first.
        """
        for i, each in enumerate(self._operators):
            x = self._one_turn(x, each, at, apply, last=i == len(self._operators) - 1)
        return x

    def _one_turn(self, x: Tensor, each: LinearOperator, at: int, apply: Any, last: bool) -> Tensor:
        shape = F.Shape(x)
        batch, ends = (
            F.StridedSlice(shape, [0], [-2], [1], begin_mask=1),
            F.StridedSlice(shape, [-2], [0], [1], end_mask=1),
        )
        columns = F.StridedSlice(ends, [1], [2], [1])
        side = F.Pack([each._side_tensor(at)])
        others = F.FloorDiv(F.StridedSlice(ends, [0], [1], [1]), side)
        matrix = F.Reshape(x, F.ConcatV2([batch, side, F.Mul(others, columns)], 0))
        made = apply(each, matrix)  # [..., rows, others * columns]
        outer = F.StridedSlice(F.Shape(made), [0], [-2], [1], begin_mask=1)
        rows = F.StridedSlice(F.Shape(made), [-2], [-1], [1])
        turned = transposed(F.Reshape(made, F.ConcatV2([outer, rows, F.Mul(others, columns)], 0)))
        turned = F.Reshape(turned, F.ConcatV2([outer, others, columns, rows], 0))
        turned = transposed(turned)  # [..., others, rows, columns]
        return F.Reshape(turned, F.ConcatV2([outer, F.Mul(others, rows), columns], 0))

    def _powers(self) -> list[Tensor]:
        """For each operator, how often it stands in the product: the other sides' product."""
        total = self._side_tensor(-1)
        return [F.Cast(F.FloorDiv(total, each._side_tensor(-1)), DstT=self.dtype) for each in self._operators]

    def _determinant(self) -> Tensor:
        if not all(each.is_square for each in self._operators):
            return super()._determinant()
        parts = [
            F.Pow(each._determinant(), n) for each, n in zip(self._operators, self._powers(), strict=True)
        ]
        return reduce(F.Mul, parts)

    def _log_abs_determinant(self) -> Tensor:
        if not all(each.is_square for each in self._operators):
            return super()._log_abs_determinant()
        pairs = zip(self._operators, self._powers(), strict=True)
        return reduce(F.AddV2, [F.Mul(each._log_abs_determinant(), n) for each, n in pairs])

    def _trace(self) -> Tensor:
        if not all(each.is_square for each in self._operators):
            return super()._trace()
        return reduce(F.Mul, [each._trace() for each in self._operators])

    def _diag_part(self) -> Tensor:
        if not all(each.is_square for each in self._operators):
            return super()._diag_part()
        return reduce(_outer, [each._diag_part() for each in self._operators])

    def _eigvals(self) -> Tensor:
        return reduce(_outer, [each._eigvals() for each in self._operators])

    def _to_dense(self) -> Tensor:
        return reduce(_kronecker, [each._to_dense() for each in self._operators])

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorKronecker([each.adjoint() for each in self._operators])

    def _inverse(self) -> LinearOperator:
        return LinearOperatorKronecker([each.inverse() for each in self._operators], is_non_singular=True)

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorKronecker([each.cholesky() for each in self._operators], is_non_singular=True)

    def _assert_non_singular(self) -> Any:
        if not all(each.is_square for each in self._operators):
            return super()._assert_non_singular()
        return group(*[each._assert_non_singular() for each in self._operators])

    def _assert_self_adjoint(self) -> Any:
        if not all(each.is_square for each in self._operators):
            return super()._assert_self_adjoint()
        return group(*[each._assert_self_adjoint() for each in self._operators])


def _outer(a: Tensor, b: Tensor) -> Tensor:
    """All products of the elements of two vectors, as a vector."""
    both = F.Mul(F.ExpandDims(a, -1), F.ExpandDims(b, -2))
    return F.Reshape(both, F.ConcatV2([F.StridedSlice(F.Shape(both), [0], [-2], [1], begin_mask=1), [-1]], 0))


def _kronecker(a: Tensor, b: Tensor) -> Tensor:
    """[..., i, j] and [..., k, l] as [..., ik, jl]."""
    both = F.Einsum([a, b], equation="...ij,...kl->...ikjl")
    shape = F.Shape(both)
    outer = F.StridedSlice(shape, [0], [-4], [1], begin_mask=1)
    sides = F.StridedSlice(shape, [-4], [0], [1], end_mask=1)
    return F.Reshape(both, F.ConcatV2([outer, F.Prod(F.Reshape(sides, [2, 2]), [1])], 0))
