"""What gradients of linear algebra are made of: products, adjoints, columns, gaps between eigenvalues.

All of these add nodes for matrices [..., m, n], real or complex.
"""

from __future__ import annotations

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.ops.algebra.matrices import matmul
from flowstone.ops.arrays.rearranging import matrix_transpose

_SMALLEST = 1e-20  # what keeps the reciprocal of zero at zero


def product(a: Tensor, b: Tensor, adjoint_a: bool = False, adjoint_b: bool = False) -> Tensor:
    """The products of matrices, or of their adjoints."""
    return matmul(a, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


def adjoint(x: Tensor, name: str = "adjoint") -> Tensor:
    """The conjugate transposes of matrices."""
    with get_default_graph().name_scope(name):
        return matrix_transpose(convert_to_tensor(x, name="matrix"), conjugate=True)


def transposed(x: Tensor) -> Tensor:
    """The transposes of matrices."""
    if x.dims is not None:
        last = len(x.dims) - 1
        return F.Transpose(x, [*range(last - 1), last, last - 1])
    rank = F.Rank(x)
    before = F.Range(0, F.Sub(rank, 2), 1)
    return F.Transpose(x, F.ConcatV2([before, F.Pack([F.Sub(rank, 1), F.Sub(rank, 2)])], 0))


def columns_of(x: Tensor, start: int, end: int) -> Tensor:
    """The columns from `start` to before `end`."""
    return F.StridedSlice(x, [0, start], [0, end], [1, 1], ellipsis_mask=1)


def over_matrices(numbers: Tensor) -> Tensor:
    """A number for every matrix, as a matrix of one element."""
    return F.ExpandDims(F.ExpandDims(numbers, -1), -1)


def as_real(x: Tensor) -> Tensor:
    """The real part, of the same type."""
    if not x.dtype.is_complex:
        return x
    real = F.Real(x, Tout=x.dtype.real_dtype)
    return F.Complex(real, F.ZerosLike(real), Tout=x.dtype)


def reciprocal(x: Tensor) -> Tensor:
    """1 / x, and 0 for 0."""
    return F.Div(x, F.AddV2(F.Square(x), convert_to_tensor(_SMALLEST, x.dtype)))


def reciprocal_gaps(values: Tensor) -> Tensor:
    """The matrices of 1 / (values[k] - values[j]) at [j, k], 0 where the values are equal."""
    return reciprocal(F.Sub(F.ExpandDims(values, -2), F.ExpandDims(values, -1)))
