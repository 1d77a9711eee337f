"""What factors tell of matrices [..., m, n]: logarithms of determinants, ranks, pseudo-inverses, norms.

Also their adjoints, products with vectors, and eigenvalues of tridiagonal ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.algebra import matrix_gradients as matrices
from flowstone.ops.algebra.inverses import log_matrix_determinant_op
from flowstone.ops.algebra.matrices import matmul
from flowstone.ops.algebra.tensor_contractions import norm

_INT = np.int32


class LogDeterminant(NamedTuple):
    """A determinant as its sign (or phase) and the logarithm of its absolute value."""

    sign: Tensor
    log_abs_determinant: Tensor


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The conjugate transposes [..., n, m] of matrices [..., m, n]."""
    return matrices.adjoint(matrix, name or "adjoint")


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithms [...] of the determinants of Hermitian positive definite matrices [..., n, n].

    InvalidArgumentError in the step for a matrix that is not positive definite.
    """
    with get_default_graph().name_scope(name or "logdet"):
        factor = F.Cholesky(matrix)
        diagonal = F.MatrixDiagPart(factor, name="diag_part")
        if diagonal.dtype.is_complex:
            diagonal = F.Real(diagonal, Tout=diagonal.dtype.real_dtype)
        return 2.0 * F.Sum(F.Log(diagonal), [-1])


def slogdet(input: Any, name: str | None = None) -> LogDeterminant:
    """The sign and the logarithm of the absolute value [...] of the determinants of matrices [..., n, n].

    A singular matrix has the sign 0 and the logarithm -infinity.
    """
    return LogDeterminant(*log_matrix_determinant_op.several(input, name=name))


def _singular_values(a: Tensor) -> Tensor:
    """The singular values, real."""
    s: Tensor = F.Svd.several(a, compute_uv=False)[0]
    return F.Real(s, Tout=s.dtype.real_dtype) if s.dtype.is_complex else s


def _greater_side(a: Tensor, dtype: dtypes.DType) -> Any:
    """The number of rows or columns, whichever is greater, as a real number."""
    rows, columns = (None, None) if a.dims is None else a.dims[-2:]
    if rows is not None and columns is not None:
        return dtype.as_numpy_dtype(max(rows, columns))
    sides = F.StridedSlice(F.Shape(a), [-2], [0], [1], end_mask=1)
    return F.Cast(F.Max(sides, _INT(0)), DstT=dtype)


def _matrix(a: Any) -> Tensor:
    x = convert_to_tensor(a, name="a", preferred_dtype=None)
    if not x.dtype.is_floating and not x.dtype.is_complex:
        raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {x.dtype.name}).")
    if x.dims is not None and len(x.dims) < 2:
        raise ValueError(f"Input `a` must have at least 2 dimensions (saw: {len(x.dims)}).")
    return x


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The ranks int32 [...] of matrices [..., m, n]: how many singular values exceed `tol`.

    Without `tol`: the greatest singular value times the greater side times the precision of the type.
    """
    with get_default_graph().name_scope(name or "matrix_rank"):
        x = _matrix(a)
        s = _singular_values(x)
        if tol is None:
            precision = s.dtype.as_numpy_dtype(np.finfo(s.dtype.as_numpy_dtype).eps)
            greatest = F.Max(s, [-1], keep_dims=True)
            limit = F.Mul(F.Mul(greatest, _greater_side(x, s.dtype)), precision)
        else:
            limit = F.ExpandDims(convert_to_tensor(tol, s.dtype), _INT(-1))
        return F.Sum(F.Cast(F.Greater(s, limit), DstT=dtypes.int32), [-1])


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The pseudo-inverses [..., n, m] of matrices [..., m, n].

    Singular values of at most `rcond` [...] times the greatest one count as zero; without, ten times the
    greater side times the precision of the type.
    """
    with get_default_graph().name_scope(name or "pinv"):
        x = _matrix(a)
        s, u, v = F.Svd.several(x, compute_uv=True, full_matrices=False)
        s = F.Real(s, Tout=s.dtype.real_dtype) if s.dtype.is_complex else s
        if rcond is None:
            precision = s.dtype.as_numpy_dtype(10 * np.finfo(s.dtype.as_numpy_dtype).eps)
            ratio: Any = F.Mul(convert_to_tensor(_greater_side(x, s.dtype)), precision)
        else:
            ratio = F.ExpandDims(convert_to_tensor(rcond, s.dtype), _INT(-1))
        limit = F.Mul(F.Max(s, [-1], keep_dims=True), ratio)
        kept = F.Greater(s, limit)
        safe = F.SelectV2(kept, s, F.OnesLike(s))
        inverse = F.SelectV2(kept, F.Reciprocal(safe), F.ZerosLike(s))
        if u.dtype.is_complex:
            inverse = F.Cast(inverse, DstT=u.dtype)
        return matrices.product(F.Mul(v, F.ExpandDims(inverse, _INT(-2))), u, adjoint_b=True)


def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The tensor divided by its norm over `axis`, and the norm, whose reduced dimensions stay as 1."""
    with get_default_graph().name_scope(name or "normalize"):
        x = convert_to_tensor(tensor)
        size = norm(x, ord, axis, True)
        if size.dtype is not x.dtype:
            size = F.Cast(size, DstT=x.dtype)
        return F.RealDiv(x, size), size


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The products [..., m] of matrices [..., m, n] and vectors [..., n]; batches broadcast.

    The first may be transposed or taken as its adjoint. That either has many zeros is not used.
    """
    with get_default_graph().name_scope(name or "MatVec"):
        column = F.ExpandDims(convert_to_tensor(b, name="b"), _INT(-1))
        result = matmul(
            a,
            column,
            transpose_a=transpose_a,
            adjoint_a=adjoint_a,
            a_is_sparse=a_is_sparse,
            b_is_sparse=b_is_sparse,
        )
        return F.Squeeze(result, squeeze_dims=[-1])


def eigh_tridiagonal(
    alpha: Any,
    beta: Any,
    eigvals_only: bool = True,
    select: str = "a",
    select_range: Any = None,
    tol: Any = None,
    name: str | None = None,
) -> Any:
    """The eigenvalues [..., n], ascending, of Hermitian tridiagonal matrices.

    Args:
        alpha: the main diagonals [..., n], of which the real part counts.
        beta: the diagonals above them [..., n - 1].
        eigvals_only: whether to leave the eigenvectors out.
        select: "a" for all; "i" for those from the first to the second, inclusive, of `select_range`, in
            their order; "v" for those above the first and up to the second, of one matrix.
        select_range: a pair of numbers, for "i" and "v".
        tol: accepted; values are exact to the type's precision.
        name: a name for the operations.

    Returns:
        The eigenvalues, or they and the eigenvectors, the columns of [..., n, k].
    """
    if select not in ("a", "i", "v"):
        raise ValueError(f"select must be 'a', 'i' or 'v', not {select!r}")
    if select != "a" and (
        select_range is None or len(select_range) != 2 or select_range[0] > select_range[1]
    ):
        raise ValueError(f"select_range must be a pair in order, not {select_range}")
    with get_default_graph().name_scope(name or "eigh_tridiagonal"):
        main = convert_to_tensor(alpha, name="alpha")
        above = convert_to_tensor(beta, main.dtype, name="beta")
        matrix = _hermitian_tridiagonal(main, above)
        e, v = F.SelfAdjointEigV2.several(matrix, compute_v=not eigvals_only)
        if e.dtype.is_complex:
            e = F.Real(e, Tout=e.dtype.real_dtype)
        if select == "i":
            first, last = (int(i) for i in select_range)
            e = matrices.columns_of(e, first, last + 1)
            v = v if eigvals_only else matrices.columns_of(v, first, last + 1)
        if select == "v":
            low, high = (e.dtype.as_numpy_dtype(bound) for bound in select_range)
            inside = F.LogicalAnd(F.Greater(e, low), F.LessEqual(e, high))
            places = F.Reshape(F.Where(inside), [-1])
            e = F.GatherV2(e, places, _INT(0))
            v = v if eigvals_only else F.GatherV2(v, places, _INT(1))
        return e if eigvals_only else (e, v)


def _hermitian_tridiagonal(main: Tensor, above: Tensor) -> Tensor:
    """The matrices of these diagonals; below the main one are the conjugates of those above."""
    zero, size = main.dtype.as_numpy_dtype(0), _INT(-1)
    matrix = F.MatrixDiagV3(above, _INT(1), size, size, zero)
    below = matrices.adjoint(matrix)
    return F.AddV2(F.AddV2(matrix, below), F.MatrixDiag(matrices.as_real(main)))
