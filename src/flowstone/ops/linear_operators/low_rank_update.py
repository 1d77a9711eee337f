"""LinearOperatorLowRankUpdate: an operator with a perturbation of low rank.

Solutions and determinants cost those of the operator, and of a matrix as small as the rank: the formulas of
Woodbury, and the lemma of the determinant. Of M = L + U D V^H with the capacity C = D^-1 + V^H L^-1 U,
M^-1 = L^-1 - L^-1 U C^-1 V^H L^-1 and det M = det C det D det L.
"""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import Dims, broadcast
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.algebra.matrix_gradients import product, transposed
from flowstone.ops.linear_operators.composition import parents_of
from flowstone.ops.linear_operators.dense import batch_of, broadcast_solve
from flowstone.ops.linear_operators.diagonal import LinearOperatorDiag
from flowstone.ops.linear_operators.identity import LinearOperatorIdentity
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator


class LinearOperatorLowRankUpdate(LinearOperator):
    """The operators L + U D V^H.

    Args:
        base_operator: L, [..., m, m].
        u: U [..., m, k].
        diag_update: the diagonal [..., k] of D; ones if None.
        v: V [..., m, k]; U if None.
        is_diag_update_positive: whether the diagonal is positive.

    It is self-adjoint or positive definite if L is, V is None and the diagonal is positive. Other arguments
    are those of `LinearOperator`.
    """

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: Hint = None,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        dtype = base_operator.dtype
        self._base = base_operator
        self._u = convert_to_tensor(u, dtype, name="u")
        self._v = self._u if v is None else convert_to_tensor(v, dtype, name="v")
        self._has_diag, self._positive = diag_update is not None, is_diag_update_positive
        if diag_update is None:
            if is_diag_update_positive is False:
                raise ValueError("Default diagonal is the identity, which is positive.")
            self._positive = True
            self._diag_update: Tensor | None = None
            rank = self._u.dims[-1] if self._u.dims else None
            self._diag: LinearOperator = LinearOperatorIdentity(
                F.StridedSlice(F.Shape(self._u), [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
                if rank is None
                else rank,
                dtype=dtype,
            )
        else:
            self._diag_update = convert_to_tensor(diag_update, dtype, name="diag_update")
            self._diag = LinearOperatorDiag(self._diag_update, is_positive_definite=is_diag_update_positive)
        is_symmetric = v is None and bool(self._positive)
        if is_symmetric and base_operator.is_self_adjoint and is_self_adjoint is None:
            is_self_adjoint = True
        if is_symmetric and base_operator.is_positive_definite and is_positive_definite is None:
            is_positive_definite = True
        of_diag = [] if self._diag_update is None else [self._diag_update]
        super().__init__(
            dtype,
            [*parents_of([base_operator]), self._u, *of_diag, self._v],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
            {"base_operator": base_operator, "u": u, "diag_update": diag_update, "v": v},
        )
        self._dims()  # ValueError where sizes differ

    @property
    def base_operator(self) -> LinearOperator:
        """L."""
        return self._base

    @property
    def u(self) -> Tensor:
        """U [..., m, k]."""
        return self._u

    @property
    def v(self) -> Tensor:
        """V [..., m, k]."""
        return self._v

    @property
    def diag_update(self) -> Tensor | None:
        """The diagonal [..., k] of D, None if it was not given."""
        return self._diag_update

    @property
    def is_diag_update_positive(self) -> Hint:
        """Whether the diagonal of D is positive."""
        return self._positive

    @property
    def diag_operator(self) -> LinearOperator:
        """D."""
        return self._diag

    def _shape(self) -> Dims:
        base, u, v = self._base._dims(), self._u.dims, self._v.dims
        if base is None or u is None or v is None:
            return base
        for side, rows in ((base[-2], u[-2]), (base[-1], v[-2]), (u[-1], v[-1])):
            if side is not None and rows is not None and side != rows:
                raise ValueError(f"the operator {base}, u {u} and v {v} do not fit")
        batch = broadcast(broadcast(base[:-2], u[:-2]), v[:-2])
        return None if batch is None else (*batch, *base[-2:])

    def _shape_tensor(self) -> Tensor:
        base = self._base.shape_tensor()
        batch = F.BroadcastArgs(F.StridedSlice(base, [0], [-2], [1], begin_mask=1), batch_of(self._u))
        sides = F.StridedSlice(base, [-2], [0], [1], end_mask=1)
        return F.ConcatV2([F.BroadcastArgs(batch, batch_of(self._v)), sides], 0)

    def _sides(self, adjoint: bool) -> tuple[Tensor, Tensor]:
        return (self._v, self._u) if adjoint else (self._u, self._v)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        left, right = self._sides(adjoint)
        x = adjoint_of(x) if adjoint_arg else x
        update = product(left, self._diag._matmul(product(right, x, adjoint_a=True), adjoint, False))
        return F.AddV2(self._base._matmul(x, adjoint, False), update)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        left, right = self._sides(adjoint)
        solved = self._base._solve(rhs, adjoint)
        capacity = self._capacity(adjoint)
        inner = broadcast_solve(capacity, product(right, solved, adjoint_a=True), False, self._has_cholesky)
        return F.Sub(solved, self._base._solve(product(left, inner), adjoint))

    def _capacity(self, adjoint: bool = False) -> Tensor:
        """D^-1 + V^H L^-1 U."""
        left, right = self._sides(adjoint)
        inner = product(right, self._base._solve(left, adjoint), adjoint_a=True)
        inverse = self._diag.inverse()
        return F.AddV2(inner, (inverse.adjoint() if adjoint else inverse)._to_dense())

    def _determinant(self) -> Tensor:
        of_capacity = F.MatrixDeterminant(self._capacity())
        return F.Mul(F.Mul(of_capacity, self._diag._determinant()), self._base._determinant())

    def _log_abs_determinant(self) -> Tensor:
        of_capacity = F.LogMatrixDeterminant.several(self._capacity())[1]
        others = F.AddV2(self._diag._log_abs_determinant(), self._base._log_abs_determinant())
        return F.AddV2(of_capacity, others)

    def _diag_part(self) -> Tensor:
        scaled = self._diag._matmul(adjoint_of(self._v), False, False)  # [..., k, m]
        return F.AddV2(self._base._diag_part(), F.Sum(F.Mul(self._u, transposed(scaled)), [-1]))

    def _to_dense(self) -> Tensor:
        update = product(self._u, self._diag._matmul(adjoint_of(self._v), False, False))
        return F.AddV2(self._base._to_dense(), update)
