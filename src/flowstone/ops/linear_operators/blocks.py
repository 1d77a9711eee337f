"""Operators of blocks: LinearOperatorBlockDiag and LinearOperatorBlockLowerTriangular.

Both take an argument as one matrix, that is split by rows, or as a list of blocks, and give the same form.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.control.control_flow import group
from flowstone.ops.linear_operators.composition import (
    all_hints,
    broadcast_batch_tensors,
    broadcast_batches,
    checked_operators,
    parents_of,
)
from flowstone.ops.linear_operators.dense import broadcast_batch
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator
from flowstone.ops.linear_operators.zeros import LinearOperatorZeros


def _sum_of(sizes: Sequence[int | None]) -> int | None:
    return None if None in sizes else sum(size or 0 for size in sizes)


class _Blocks(LinearOperator):
    """What both have in common: `_rows` are the operators of each row, of which the last is diagonal."""

    _rows: list[list[LinearOperator]]

    @property
    def _diagonal(self) -> list[LinearOperator]:
        return [row[-1] for row in self._rows]

    @property
    def _every(self) -> list[LinearOperator]:
        return [each for row in self._rows for each in row]

    def _shape(self) -> Dims:
        batch = broadcast_batches(self._every)
        if batch is None:
            return None
        rows = _sum_of([each.range_dimension.value for each in self._diagonal])
        return (*batch, rows, _sum_of([each.domain_dimension.value for each in self._diagonal]))

    def _shape_tensor(self) -> Tensor:
        sides = [reduce(F.AddV2, [each._side_tensor(at) for each in self._diagonal]) for at in (-2, -1)]
        return F.ConcatV2([broadcast_batch_tensors(self._every), F.Pack(sides)], 0)

    def _split(self, x: Tensor, at: int) -> list[Tensor]:
        """The rows of x as they meet the blocks' rows (at -2) or columns (-1)."""
        dims = [each._dims() for each in self._diagonal]
        known = [None if shape is None else shape[at] for shape in dims]
        if None in known:
            sizes: Any = F.Pack([each._side_tensor(at) for each in self._diagonal])
        else:
            sizes = np.array(known, np.int32)
        parts = F.SplitV.several(x, sizes, -2, num_split=len(known))
        return list(parts) if isinstance(parts, (list, tuple)) else [parts]

    def _joined(self, parts: Sequence[Tensor]) -> Tensor:
        """The parts one below another, their batches broadcast."""
        shapes = [each.dims for each in parts]
        if any(dims is None or dims[:-2] != (shapes[0] or ())[:-2] for dims in shapes):
            batch = reduce(
                F.BroadcastArgs, [F.StridedSlice(F.Shape(p), [0], [-2], [1], begin_mask=1) for p in parts]
            )
            parts = [broadcast_batch(each, None, batch) for each in parts]
        return F.ConcatV2(list(parts), -2) if len(parts) > 1 else parts[0]

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product A x, with a matrix, an operator, or a list of blocks, whose result is one too."""
        if not _is_list(x):
            return super().matmul(x, adjoint, adjoint_arg, name)
        with self._scope(name):
            blocks = [self._tensor(each, f"x_{i}") for i, each in enumerate(x)]
            return self._multiplied([adjoint_of(each) if adjoint_arg else each for each in blocks], adjoint)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """The product A x, with a vector or a list of blocks, whose result is one too."""
        if not _is_list(x):
            return super().matvec(x, adjoint, name)
        with self._scope(name):
            columns = [F.ExpandDims(self._tensor(each, f"x_{i}"), -1) for i, each in enumerate(x)]
            return [F.Squeeze(each, squeeze_dims=[-1]) for each in self._multiplied(columns, adjoint)]

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """The X with A X = rhs, a matrix, an operator, or a list of blocks, whose result is one too."""
        if not _is_list(rhs):
            return super().solve(rhs, adjoint, adjoint_arg, name)
        self._require_square("Exact solve")
        with self._scope(name):
            blocks = [self._tensor(each, f"rhs_{i}") for i, each in enumerate(rhs)]
            return self._solved([adjoint_of(each) if adjoint_arg else each for each in blocks], adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """The x with A x = rhs, a vector or a list of blocks, whose result is one too."""
        if not _is_list(rhs):
            return super().solvevec(rhs, adjoint, name)
        self._require_square("Exact solve")
        with self._scope(name):
            columns = [F.ExpandDims(self._tensor(each, f"rhs_{i}"), -1) for i, each in enumerate(rhs)]
            return [F.Squeeze(each, squeeze_dims=[-1]) for each in self._solved(columns, adjoint)]

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        parts = self._split(adjoint_of(x) if adjoint_arg else x, -2 if adjoint else -1)
        return self._joined(self._multiplied(parts, adjoint))

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return self._joined(self._solved(self._split(rhs, -1 if adjoint else -2), adjoint))

    def _multiplied(self, parts: list[Tensor], adjoint: bool) -> list[Tensor]:
        raise NotImplementedError

    def _solved(self, parts: list[Tensor], adjoint: bool) -> list[Tensor]:
        raise NotImplementedError

    def _determinant(self) -> Tensor:
        return reduce(F.Mul, [each._determinant() for each in self._diagonal])

    def _log_abs_determinant(self) -> Tensor:
        return reduce(F.AddV2, [each._log_abs_determinant() for each in self._diagonal])

    def _eigvals(self) -> Tensor:
        if not all(each.is_square and each.is_self_adjoint for each in self._diagonal):
            return super()._eigvals()
        batch = self.batch_shape_tensor()
        values = [F.ExpandDims(each._eigvals(), -1) for each in self._diagonal]
        return F.Squeeze(self._joined([broadcast_batch(x, None, batch) for x in values]), squeeze_dims=[-1])

    def _assert_non_singular(self) -> Any:
        return group(*[each._assert_non_singular() for each in self._diagonal])


def _is_list(x: Any) -> bool:
    """Whether x is a list of blocks, not a nested list of numbers."""
    return (
        isinstance(x, (list, tuple)) and bool(x) and all(isinstance(each, (Tensor, np.ndarray)) for each in x)
    )


class LinearOperatorBlockDiag(_Blocks):
    """The operators with `operators` on the diagonal, and zeros elsewhere; their batches broadcast.

    It is non-singular, self-adjoint or positive definite if all of them are. Other arguments are those of
    `LinearOperator`.
    """

    def __init__(
        self,
        operators: Sequence[LinearOperator],
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = True,
        name: str | None = None,
    ) -> None:
        found = checked_operators(operators)
        self._operators, self._rows = found, [[each] for each in found]
        hints = {
            "non-singular": (is_non_singular, [each.is_non_singular for each in found]),
            "self-adjoint": (is_self_adjoint, [each.is_self_adjoint for each in found]),
            "positive definite": (is_positive_definite, [each.is_positive_definite for each in found]),
        }
        message = "The direct sum of {0} operators is always {0}."
        non_singular, self_adjoint, positive = (
            all_hints(hint, of, message.format(what)) for what, (hint, of) in hints.items()
        )
        super().__init__(
            found[0].dtype,
            parents_of(found),
            non_singular,
            self_adjoint,
            positive,
            is_square if all(each.is_square is not False for each in found) else None,
            name or "_ds_".join([each.name for each in found]),
            {"operators": operators},
        )

    @property
    def operators(self) -> list[LinearOperator]:
        """The blocks of the diagonal."""
        return self._operators

    def _multiplied(self, parts: list[Tensor], adjoint: bool) -> list[Tensor]:
        return [each._matmul(part, adjoint, False) for each, part in zip(self._operators, parts, strict=True)]

    def _solved(self, parts: list[Tensor], adjoint: bool) -> list[Tensor]:
        return [each._solve(part, adjoint) for each, part in zip(self._operators, parts, strict=True)]

    def _trace(self) -> Tensor:
        if not all(each.is_square for each in self._operators):
            return super()._trace()
        return reduce(F.AddV2, [each._trace() for each in self._operators])

    def _of_each(self, operators: Sequence[LinearOperator], is_non_singular: Hint = None) -> LinearOperator:
        return LinearOperatorBlockDiag(operators, is_non_singular, is_square=self.is_square)

    def _adjoint(self) -> LinearOperator:
        return self._of_each([each.adjoint() for each in self._operators])

    def _inverse(self) -> LinearOperator:
        return self._of_each([each.inverse() for each in self._operators], is_non_singular=True)

    def _cholesky(self) -> LinearOperator:
        return self._of_each([each.cholesky() for each in self._operators], is_non_singular=True)

    def _assert_positive_definite(self) -> Any:
        return group(*[each._assert_positive_definite() for each in self._operators])

    def _assert_self_adjoint(self) -> Any:
        return group(*[each._assert_self_adjoint() for each in self._operators])


class LinearOperatorBlockLowerTriangular(_Blocks):
    """The operators of which `operators` are the blocks on the diagonal and below, row by row.

    The first row has one block, the second two, and so on; those on the diagonal are square. ValueError for
    other numbers, or sizes that do not fit. It is non-singular if those on the diagonal are. Other arguments
    are those of `LinearOperator`.
    """

    def __init__(
        self,
        operators: Sequence[Sequence[LinearOperator]],
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorBlockLowerTriangular",
    ) -> None:
        self._rows = [list(row) for row in operators]
        for i, row in enumerate(self._rows):
            if len(row) != i + 1:
                raise ValueError(
                    f"Argument `operators`: row {i} must have {i + 1} blocks, and has {len(row)}"
                )
            for each, column in zip(row, self._diagonal):
                fits = each.range_dimension.is_compatible_with(row[-1].range_dimension)
                if not fits or not each.domain_dimension.is_compatible_with(column.domain_dimension):
                    raise ValueError(
                        f"Argument `operators`: block {each.name} {each.shape} of row {i} does not fit"
                    )
        every = checked_operators(self._every)
        if is_self_adjoint or is_square is False:
            raise ValueError("A blockwise lower-triangular operator is square and not self-adjoint.")
        non_singular = all_hints(
            is_non_singular,
            [each.is_non_singular for each in self._diagonal],
            "A lower-triangular operator with non-singular ones on the main diagonal is always non-singular.",
        )
        super().__init__(
            every[0].dtype,
            parents_of(every),
            non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
            {"operators": operators},
        )

    @property
    def operators(self) -> list[list[LinearOperator]]:
        """The blocks, row by row."""
        return self._rows

    def _multiplied(self, parts: list[Tensor], adjoint: bool) -> list[Tensor]:
        terms: list[list[Tensor]] = [[] for _ in self._rows]
        for i, row in enumerate(self._rows):
            for j, each in enumerate(row):
                into, of = (j, i) if adjoint else (i, j)
                if not isinstance(each, LinearOperatorZeros):
                    terms[into].append(each._matmul(parts[of], adjoint, False))
        return [reduce(F.AddV2, each) if each else F.ZerosLike(part) for each, part in zip(terms, parts)]

    def _solved(self, parts: list[Tensor], adjoint: bool) -> list[Tensor]:
        solved: dict[int, Tensor] = {}
        count = len(self._rows)
        for i in reversed(range(count)) if adjoint else range(count):
            rest = parts[i]
            for j in range(i + 1, count) if adjoint else range(i):
                block = self._rows[j][i] if adjoint else self._rows[i][j]
                if not isinstance(block, LinearOperatorZeros):
                    rest = F.Sub(rest, block._matmul(solved[j], adjoint, False))
            solved[i] = self._rows[i][i]._solve(rest, adjoint)
        return [solved[i] for i in range(count)]

    def _trace(self) -> Tensor:
        return reduce(F.AddV2, [each._trace() for each in self._diagonal])
