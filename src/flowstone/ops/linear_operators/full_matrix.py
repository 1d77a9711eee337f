"""LinearOperatorFullMatrix: matrices that are given."""

from __future__ import annotations

from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator


def as_matrix(value: Any, name: str) -> Tensor:
    """The argument as a tensor of matrices. TypeError, ValueError for another type or rank."""
    matrix = convert_to_tensor(value, name=name)
    if not (matrix.dtype.is_floating or matrix.dtype.is_complex):
        raise TypeError(f"Argument {name} must be of floats or complex numbers.  Found: {matrix.dtype.name}")
    if matrix.dims is not None and len(matrix.dims) < 2:
        raise ValueError(f"Argument {name} must have at least 2 dimensions.  Found: {matrix.shape}")
    return matrix


class LinearOperatorFullMatrix(LinearOperator):
    """The matrices `matrix` [..., m, n]. Other arguments are those of `LinearOperator`."""

    def __init__(
        self,
        matrix: Any,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        self._matrix = as_matrix(matrix, "matrix")
        super().__init__(
            self._matrix.dtype,
            [self._matrix],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            is_square,
            name,
            {"matrix": matrix},
        )

    @property
    def matrix(self) -> Tensor:
        """The matrices [..., m, n]."""
        return self._matrix

    def _shape(self) -> Dims:
        return self._matrix.dims

    def _shape_tensor(self) -> Tensor:
        return F.Shape(self._matrix)

    def _to_dense(self) -> Tensor:
        return self._matrix
