"""LinearOperator: a batch of matrices [..., m, n] that need not be formed to be multiplied, solved, measured.

A subclass says its shape (`_shape`, `_shape_tensor`) and its product (`_matmul`), and overrides what its
structure makes cheap; everything else follows from the dense matrices. Hints (`is_square`, `is_non_singular`,
`is_self_adjoint`, `is_positive_definite`) are promises of the user or of the structure, True, False or None,
and are not checked before an ``assert_…`` runs. What an operator makes of another (`adjoint`, `inverse`,
products) is an operator again; `MAKERS` has the classes that stand for what has no better form.

Names of operations begin with the operator's name and the method's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dimension import Dimension
from flowstone.framework.types.dtypes import DType
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.algebra.matrix_gradients import product
from flowstone.ops.linear_operators.dense import broadcast_solve, eye_like, real_part, size_of
from flowstone.ops.linear_operators.operator_shape import OperatorShape

_NO_SOLUTION = "Exact solve not implemented for an operator that is expected to be singular."
MAKERS: dict[str, Callable[..., LinearOperator]] = {}
Hint = bool | None


class LinearOperator(OperatorShape):
    """A batch of matrices [..., m, n].

    Args:
        dtype: the type of the elements.
        graph_parents: the tensors that it is made of.
        is_non_singular: whether every matrix has an inverse.
        is_self_adjoint: whether every matrix is its own conjugate transpose.
        is_positive_definite: whether x^H A x has a positive real part for every x but 0.
        is_square: whether m = n.
        name: a name; that of the class if None.

    ValueError for hints that contradict each other.
    """

    def __init__(
        self,
        dtype: Any,
        graph_parents: Sequence[Any] | None = None,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite matrix is always non-singular.")
            is_non_singular = True
        if is_non_singular:
            if is_square is False:
                raise ValueError("A non-singular matrix is always square.")
            is_square = True
        if is_self_adjoint:
            if is_square is False:
                raise ValueError("A self-adjoint matrix is always square.")
            is_square = True
        self._dtype: DType = dtypes.as_dtype(dtype).base_dtype
        self._graph_parents = list(graph_parents or [])
        self._is_non_singular, self._is_self_adjoint = is_non_singular, is_self_adjoint
        self._is_positive_definite, self._is_square = is_positive_definite, is_square
        self._name = name or type(self).__name__
        self._parameters = dict(parameters or {})

    # ---- what it is

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self._dtype

    @property
    def graph_parents(self) -> list[Any]:
        """The tensors that it is made of, as they were given."""
        return self._graph_parents

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that it was made with, where a class keeps them."""
        return dict(self._parameters)

    @property
    def is_non_singular(self) -> Hint:
        """Whether every matrix has an inverse, if that is known."""
        return self._is_non_singular

    @property
    def is_self_adjoint(self) -> Hint:
        """Whether every matrix is its own conjugate transpose, if that is known."""
        return self._is_self_adjoint

    @property
    def is_positive_definite(self) -> Hint:
        """Whether x^H A x has a positive real part for every x but 0, if that is known."""
        return self._is_positive_definite

    @property
    def is_square(self) -> Hint:
        """Whether the matrices have as many rows as columns, if that is known."""
        dims = self._dims()
        rows, columns = (None, None) if dims is None else dims[-2:]
        known = None if rows is None or columns is None else rows == columns
        if self._is_square is False and known:
            raise ValueError("User set is_square hint to False, but the operator was square.")
        return known if self._is_square is None else self._is_square

    # ---- products

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The product A x [..., m, r] with matrices x [..., n, r], or with an operator, which is an operator.

        `adjoint` takes A^H in place of A, `adjoint_arg` x^H in place of x. ValueError where sizes differ.
        """
        if isinstance(x, LinearOperator):
            left, right = self.adjoint() if adjoint else self, x.adjoint() if adjoint_arg else x
            _require_equal(left.domain_dimension, right.range_dimension)
            with self._scope(name):
                return left._times(right)
        with self._scope(name):
            matrix = self._tensor(x, "x")
            inner = self.range_dimension if adjoint else self.domain_dimension
            _require_equal(inner, _side(matrix, -1 if adjoint_arg else -2))
            return self._matmul(matrix, adjoint, adjoint_arg)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Any:
        """The product A x [..., m] with vectors x [..., n], or A^H x."""
        with self._scope(name):
            vector = self._tensor(x, "x")
            _require_equal(self.range_dimension if adjoint else self.domain_dimension, _side(vector, -1))
            return self._matvec(vector, adjoint)

    def _tensor(self, x: Any, name: str) -> Tensor:
        """x as a tensor of the operator's type. TypeError for another."""
        value = convert_to_tensor(x, name=name, preferred_dtype=self.dtype)
        if value.dtype.base_dtype is not self.dtype:
            raise TypeError(f"Input had dtype {value.dtype.name} but the operator has {self.dtype.name}.")
        return value

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return product(self._to_dense(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _matvec(self, x: Tensor, adjoint: bool) -> Tensor:
        column = self._matmul(F.ExpandDims(x, -1), adjoint, False)
        return F.Squeeze(column, squeeze_dims=[-1])

    def _times(self, other: LinearOperator) -> LinearOperator:
        """The product of two operators."""
        return MAKERS["composition"]([self, other])

    # ---- solutions

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """The X [..., n, r] with A X = rhs [..., m, r], for every matrix; of an operator rhs, an operator.

        `adjoint` takes A^H in place of A, `adjoint_arg` rhs^H in place of rhs. NotImplementedError for an
        operator that is singular or not square by its hints.
        """
        if self.is_non_singular is False:
            raise NotImplementedError(_NO_SOLUTION)
        self._require_square("Exact solve")
        if isinstance(rhs, LinearOperator):
            left, right = self.adjoint() if adjoint else self, rhs.adjoint() if adjoint_arg else rhs
            _require_equal(left.range_dimension, right.range_dimension)
            with self._scope(name):
                return left.inverse()._times(right)
        with self._scope(name):
            side = self._tensor(rhs, "rhs")
            _require_equal(self.range_dimension, _side(side, -1 if adjoint_arg else -2))
            return self._solve(adjoint_of(side) if adjoint_arg else side, adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """The x [..., n] with A x = rhs [..., m], or A^H x = rhs; see `solve`."""
        if self.is_non_singular is False:
            raise NotImplementedError(_NO_SOLUTION)
        self._require_square("Exact solve")
        with self._scope(name):
            side = self._tensor(rhs, "rhs")
            _require_equal(self.range_dimension, _side(side, -1))
            return F.Squeeze(self._solve(F.ExpandDims(side, -1), adjoint), squeeze_dims=[-1])

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return broadcast_solve(self._to_dense(), rhs, adjoint, self._has_cholesky)

    @property
    def _has_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    def _require_square(self, what: str) -> None:
        if self.is_square is False:
            raise NotImplementedError(
                f"{what} not implemented for an operator that is expected to not be square."
            )

    # ---- numbers

    def determinant(self, name: str = "det") -> Tensor:
        """The determinants [...]. NotImplementedError for an operator that is not square."""
        self._require_square("Determinant")
        with self._scope(name):
            return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """The logarithms [...] of the absolute values of the determinants."""
        self._require_square("Determinant")
        with self._scope(name):
            return self._log_abs_determinant()

    def _determinant(self) -> Tensor:
        if self._has_cholesky:
            return F.Exp(self._log_abs_determinant())
        return F.MatrixDeterminant(self._to_dense())

    def _log_abs_determinant(self) -> Tensor:
        if self._has_cholesky:
            diagonal = F.MatrixDiagPart(F.Cholesky(self._to_dense()))
            return F.Mul(convert_to_tensor(2.0, self.dtype), F.Sum(F.Log(diagonal), [-1]))
        logarithm: Tensor = F.LogMatrixDeterminant.several(self._to_dense())[1]
        return logarithm

    def trace(self, name: str = "trace") -> Tensor:
        """The sums [...] of the main diagonals."""
        with self._scope(name):
            return self._trace()

    def _trace(self) -> Tensor:
        return F.Sum(self._diag_part(), [-1])

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """The main diagonals [..., min(m, n)]."""
        with self._scope(name):
            return self._diag_part()

    def _diag_part(self) -> Tensor:
        return F.MatrixDiagPart(self._to_dense())

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """The eigenvalues [..., n] of a self-adjoint operator. NotImplementedError for another."""
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        with self._scope(name):
            return self._eigvals()

    def _eigvals(self) -> Tensor:
        values: Tensor = F.SelfAdjointEigV2.several(self._to_dense(), compute_v=False)[0]
        return values

    def cond(self, name: str = "cond") -> Tensor:
        """The condition numbers [...]: the greatest singular value by the smallest."""
        with self._scope(name):
            return self._cond()

    def _cond(self) -> Tensor:
        if self.is_self_adjoint:
            values = self._eigvals()
        else:
            values = F.Svd.several(self._to_dense(), compute_uv=False)[0]
        sizes = F.Abs(real_part(values))
        return F.Cast(F.RealDiv(F.Max(sizes, [-1]), F.Min(sizes, [-1])), DstT=self.dtype)

    # ---- dense

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """The matrices [..., m, n]."""
        with self._scope(name):
            return self._to_dense()

    def _to_dense(self) -> Tensor:
        identity = eye_like(self._side_tensor(-1), self.dtype)
        dense = self._matmul(identity, False, False)
        return F.BroadcastTo(dense, self.shape_tensor()) if dense.dims is None else dense

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """The sum A + x of the matrices and x [..., m, n]."""
        with self._scope(name):
            return self._add_to_tensor(self._tensor(x, "x"))

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return F.AddV2(self._to_dense(), x)

    # ---- operators of it

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The operator of the conjugate transposes; itself, if it is self-adjoint."""
        if self.is_self_adjoint is True:
            return self
        with self._scope(name):
            return self._adjoint()

    H = property(adjoint)

    def _adjoint(self) -> LinearOperator:
        return MAKERS["adjoint"](self)

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The operator of the inverses. ValueError for a hint that there are none."""
        if self.is_square is False:
            raise ValueError("Cannot take the Inverse: This operator represents a non square matrix.")
        if self.is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        with self._scope(name):
            return self._inverse()

    def _inverse(self) -> LinearOperator:
        return MAKERS["inversion"](self)

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The operator of the Cholesky factors. ValueError unless it is by its hints positive definite."""
        if not self._has_cholesky:
            raise ValueError(
                "Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix."
            )
        with self._scope(name):
            return self._cholesky()

    def _cholesky(self) -> LinearOperator:
        return MAKERS["lower triangular"](F.Cholesky(self._to_dense()), is_non_singular=True)

    # ---- checks

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """An operation that fails if a matrix is singular to the type's precision."""
        with self._scope(name):
            return self._assert_non_singular()

    def _assert_non_singular(self) -> Any:
        condition = real_part(self._cond())
        limit = 1.0 / np.finfo(condition.dtype.as_numpy_dtype).eps
        return self._assert_all(
            F.Less(condition, condition.dtype.as_numpy_dtype(limit)),
            "Singular matrix up to precision epsilon.",
        )

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """An operation that fails if a matrix is not positive definite.

        NotImplementedError for an operator that is not self-adjoint by its hints.
        """
        with self._scope(name):
            return self._assert_positive_definite()

    def _assert_positive_definite(self) -> Any:
        if not self.is_self_adjoint:
            raise NotImplementedError("assert_positive_definite is not implemented.")
        diagonal = F.MatrixDiagPart(F.Cholesky(self._to_dense()))  # of another matrix it fails
        return self._assert_all(F.Greater(real_part(diagonal), 0), "Matrix was not positive definite.")

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """An operation that fails if a matrix is not its own conjugate transpose."""
        with self._scope(name):
            return self._assert_self_adjoint()

    def _assert_self_adjoint(self) -> Any:
        dense = self._to_dense()
        limit = 10 * np.finfo(self.dtype.real_dtype.as_numpy_dtype).eps
        greatest = F.Max(size_of(dense), [-2, -1], keep_dims=True)
        bound = F.Mul(greatest, convert_to_tensor(limit, self.dtype.real_dtype))
        near = F.LessEqual(size_of(F.Sub(dense, adjoint_of(dense))), bound)
        return self._assert_all(near, "Matrix was not equal to its adjoint.")

    def _assert_all(self, condition: Tensor, message: str) -> Any:
        every = F.All(condition, F.Range(0, F.Rank(condition), 1))
        return F.Assert.operation(every, [message.encode(), F.Shape(condition)])


def _side(x: Tensor, at: int) -> Dimension:
    """The last size but `-at - 1` of x. ValueError for a rank that is too small."""
    if x.dims is not None and len(x.dims) < -at:
        raise ValueError(f"Shape must be at least rank {-at} but is rank {len(x.dims)}")
    return Dimension(x.dims[at] if x.dims is not None else None)


def _require_equal(a: Dimension, b: Dimension) -> None:
    if not a.is_compatible_with(b):
        raise ValueError(f"Dimensions {a} and {b} are not compatible")
