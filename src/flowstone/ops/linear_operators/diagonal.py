"""LinearOperatorDiag: diagonal matrices."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.arrays.joining import concat
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.linear_operators.dense import conjugated, over_rows, real_part, size_of
from flowstone.ops.linear_operators.linear_operator import MAKERS, Hint, LinearOperator
from flowstone.ops.numbers.casts import cast
from flowstone.ops.numbers.elementwise import conjugate


class LinearOperatorDiag(LinearOperator):
    """Diagonal matrices [..., n, n] with the diagonals `diag` [..., n].

    A real one is self-adjoint. Products and solutions cost an operation an element. Other arguments are those
    of `LinearOperator`.
    """

    def __init__(
        self,
        diag: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        if is_square is False:
            raise ValueError("Only square diagonal operators currently supported.")
        self._diag = convert_to_tensor(diag, name="diag")
        if self._diag.dims is not None and not self._diag.dims:
            raise ValueError("Argument diag must have at least 1 dimension.  Found: 0")
        if not self._diag.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real diagonal operator is always self adjoint.")
            is_self_adjoint = True
        super().__init__(
            self._diag.dtype,
            [self._diag],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
            {"diag": diag},
        )

    @property
    def diag(self) -> Tensor:
        """The diagonals [..., n]."""
        return self._diag

    def _shape(self) -> Dims:
        dims = self._diag.dims
        return None if dims is None else (*dims, dims[-1])

    def _shape_tensor(self) -> Tensor:
        sizes = shape(self._diag)
        return concat([sizes, [sizes[-1]]], 0)

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        factors = over_rows(conjugated(self._diag, adjoint))
        return factors * (adjoint_of(x) if adjoint_arg else x)

    def _matvec(self, x: Tensor, adjoint: bool) -> Tensor:
        return F.Mul(conjugated(self._diag, adjoint), x)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        reciprocals: Tensor = 1.0 / conjugated(self._diag, adjoint)
        return rhs * over_rows(reciprocals)

    def _determinant(self) -> Tensor:
        return F.Prod(self._diag, [-1])

    def _log_abs_determinant(self) -> Tensor:
        logarithm: Tensor = cast(F.Sum(F.Log(size_of(self._diag)), [-1]), self.dtype)
        return logarithm

    def _diag_part(self) -> Tensor:
        return self._diag

    def _to_dense(self) -> Tensor:
        return F.MatrixDiag(self._diag)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        if x.dims is not None and self._dims() is not None and x.dims[:-2] == self._dims()[:-2]:  # type: ignore[index]
            return F.MatrixSetDiag(x, F.AddV2(F.MatrixDiagPart(x), self._diag))
        return F.AddV2(x, self._to_dense())

    def _eigvals(self) -> Tensor:
        return self._diag

    def _cond(self) -> Tensor:
        sizes = size_of(self._diag)
        return F.Cast(F.RealDiv(F.Max(sizes, [-1]), F.Min(sizes, [-1])), DstT=self.dtype)

    def _adjoint(self) -> LinearOperator:
        return self._with(conjugate(self._diag), self.is_positive_definite)

    def _inverse(self) -> LinearOperator:
        return self._with(F.Reciprocal(self._diag), self.is_positive_definite, True)

    def _cholesky(self) -> LinearOperator:
        return self._with(F.Sqrt(self._diag), True, True)

    def _with(self, diag: Tensor, is_positive_definite: Hint, is_non_singular: Hint = None) -> LinearOperator:
        return LinearOperatorDiag(
            diag,
            is_non_singular=self.is_non_singular if is_non_singular is None else is_non_singular,
            is_self_adjoint=self.is_self_adjoint,
            is_positive_definite=is_positive_definite,
        )

    def _times(self, other: LinearOperator) -> LinearOperator:
        if isinstance(other, LinearOperatorDiag):
            both = bool(self.is_non_singular and other.is_non_singular) or None
            return LinearOperatorDiag(F.Mul(self._diag, other.diag), is_non_singular=both)
        return super()._times(other)

    def _assert_non_singular(self) -> Any:
        message = "Singular operator:  Diagonal contained zero values."
        return self._assert_all(F.Greater(size_of(self._diag), 0), message)

    def _assert_positive_definite(self) -> Any:
        message = "Diagonal operator had diagonal entries with non-positive real part"
        return self._assert_all(
            F.Greater(real_part(self._diag), 0), f"{message}, thus was not positive definite."
        )

    def _assert_self_adjoint(self) -> Any:
        if not self.dtype.is_complex:
            return F.NoOp.operation()
        imaginary = F.Imag(self._diag, Tout=self.dtype.real_dtype)
        return self._assert_all(
            F.Equal(imaginary, 0), "This diagonal operator contained non-zero imaginary values."
        )


MAKERS["diagonal"] = LinearOperatorDiag
