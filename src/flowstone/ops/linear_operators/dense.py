"""What operators make of dense matrices: shapes that broadcast, solutions, identities."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, broadcast
from flowstone.ops.algebra.matrix_gradients import over_matrices
from flowstone.ops.numbers.elementwise import conjugate

__all__ = [
    "batch_of",
    "broadcast_batch",
    "broadcast_solve",
    "conjugated",
    "eye_like",
    "over_matrices",
    "over_rows",
    "real_part",
    "side_of",
    "size_of",
]


def side_of(x: Tensor, at: int) -> Any:
    """A size of x counted from the end: an int, or a scalar tensor where it is not known."""
    size = x.dims[at] if x.dims is not None else None
    if size is not None:
        return size
    return F.StridedSlice(F.Shape(x), [at], [at + 1], [1], end_mask=int(at == -1), shrink_axis_mask=1)


def batch_of(x: Tensor, last: int = 2) -> Tensor:
    """The sizes of x before its last dimensions."""
    return F.StridedSlice(F.Shape(x), [0], [-last], [1], begin_mask=1)


def broadcast_batch(x: Tensor, shape: Dims, batch: Any) -> Tensor:
    """x with its dimensions before the matrices broadcast to a batch, known (`shape`) or else a vector."""
    if x.dims is not None and shape is not None and None not in x.dims[:-2]:
        if broadcast(x.dims[:-2], shape) == x.dims[:-2]:
            return x
    full = F.BroadcastArgs(batch_of(x), batch() if callable(batch) else batch)
    sides = F.StridedSlice(F.Shape(x), [-2], [0], [1], end_mask=1)
    return F.BroadcastTo(x, F.ConcatV2([full, sides], 0))


def broadcast_solve(matrix: Tensor, rhs: Tensor, adjoint: bool, by_cholesky: bool = False) -> Tensor:
    """The solutions of linear systems whose batches broadcast."""
    if by_cholesky:
        factor = F.Cholesky(matrix)
        return F.MatrixTriangularSolve(factor, F.MatrixTriangularSolve(factor, rhs), adjoint=True)
    same = matrix.dims is not None and rhs.dims is not None and matrix.dims[:-2] == rhs.dims[:-2]
    if not same or matrix.dims is None or None in matrix.dims[:-2]:
        of_matrix, of_rhs = matrix, rhs
        matrix = broadcast_batch(of_matrix, _known(of_rhs), lambda: batch_of(of_rhs))
        rhs = broadcast_batch(of_rhs, _known(of_matrix), lambda: batch_of(of_matrix))
    return F.MatrixSolve(matrix, rhs, adjoint=adjoint)


def _known(x: Tensor) -> Dims:
    return None if x.dims is None or None in x.dims[:-2] else x.dims[:-2]


def over_rows(vector: Tensor) -> Tensor:
    """Vectors [..., n] as columns [..., n, 1], that broadcast over the columns of matrices."""
    return F.ExpandDims(vector, -1)


def real_part(x: Tensor) -> Tensor:
    """The real part, of a real type."""
    return F.Real(x, Tout=x.dtype.real_dtype) if x.dtype.is_complex else x


def size_of(x: Tensor) -> Tensor:
    """The absolute values, of a real type."""
    return F.ComplexAbs(x, Tout=x.dtype.real_dtype) if x.dtype.is_complex else F.Abs(x)


def conjugated(x: Tensor, adjoint: bool) -> Tensor:
    """x, or its conjugate for an adjoint."""
    return conjugate(x) if adjoint else x


def eye_like(size: Any, dtype: DType) -> Tensor:
    """The identity matrix of a size, an int or a tensor."""
    length = size if isinstance(size, Tensor) else np.int32(size)
    return F.MatrixDiag(F.Fill(F.Pack([length]), dtype.as_numpy_dtype(1)))
