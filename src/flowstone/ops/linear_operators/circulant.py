"""Circulant operators of one, two and three dimensions: products by Fourier transforms.

A circulant matrix turns its first column, the convolution kernel, by one place a column. Fourier transforms
make it diagonal: its eigenvalues, the spectrum, are the transform of the kernel. In more dimensions a column
of n = n1 n2 … elements is an array, and the transform has as many dimensions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, TensorShape
from flowstone.ops.algebra.matrix_gradients import adjoint as adjoint_of
from flowstone.ops.algebra.matrix_gradients import transposed
from flowstone.ops.control.checks import assert_near
from flowstone.ops.linear_operators.dense import conjugated
from flowstone.ops.linear_operators.linear_operator import Hint, LinearOperator

_SUFFIXES = {1: "", 2: "2D", 3: "3D"}


def as_complex(x: Tensor) -> Tensor:
    """x as complex numbers of its precision."""
    if x.dtype.is_complex:
        return x
    pair = dtypes.complex128 if x.dtype is dtypes.float64 else dtypes.complex64
    return F.Cast(x, DstT=pair)


class _Circulant(LinearOperator):
    """What circulant operators have in common, of whatever dimensions.

    Args:
        spectrum: the eigenvalues, real or complex. A real spectrum makes the operator self-adjoint.
        input_output_dtype: the type of arguments and results; of a real one, the real part is taken.

    Other arguments are those of `LinearOperator`.
    """

    _depth: int

    def __init__(
        self,
        spectrum: Any,
        input_output_dtype: Any = dtypes.complex64,
        is_non_singular: Hint = None,
        is_self_adjoint: Hint = None,
        is_positive_definite: Hint = None,
        is_square: Hint = True,
        name: str | None = None,
    ) -> None:
        given = convert_to_tensor(spectrum, name="spectrum")
        depth, self._spectrum = self._depth, as_complex(given)
        if given.dims is not None and len(given.dims) < depth:
            raise ValueError(
                f"Argument spectrum must have at least {depth} dimensions.  Found: {given.shape}"
            )
        if not given.dtype.is_complex:
            if is_self_adjoint is False:
                raise ValueError("A real spectrum always corresponds to a self-adjoint operator.")
            is_self_adjoint = True
        if is_square is False:
            raise ValueError("A circulant operator is always square.")
        super().__init__(
            input_output_dtype,
            [given],
            is_non_singular,
            is_self_adjoint,
            is_positive_definite,
            True,
            name,
            {"spectrum": spectrum, "input_output_dtype": input_output_dtype},
        )

    @property
    def spectrum(self) -> Tensor:
        """The eigenvalues [..., n1, n2, …], complex."""
        return self._spectrum

    @property
    def block_depth(self) -> int:
        """The number of dimensions of a column, read as an array."""
        return self._depth

    @property
    def block_shape(self) -> TensorShape:
        """The shape of a column, read as an array."""
        dims = self._spectrum.dims
        return TensorShape.from_dims(None if dims is None else dims[-self._depth :])

    def block_shape_tensor(self, name: str = "block_shape_tensor") -> Tensor:
        """The shape of a column, read as an array, as an int32 vector."""
        with self._scope(name):
            return self._block()

    def _block(self) -> Tensor:
        return F.StridedSlice(F.Shape(self._spectrum), [-self._depth], [0], [1], end_mask=1)

    def _batch(self) -> Tensor:
        return F.StridedSlice(F.Shape(self._spectrum), [0], [-self._depth], [1], begin_mask=1)

    def _shape(self) -> Dims:
        dims = self._spectrum.dims
        if dims is None:
            return None
        block = dims[-self._depth :]
        size = None if None in block else int(np.prod([n or 0 for n in block]))
        return (*dims[: -self._depth], size, size)

    def _shape_tensor(self) -> Tensor:
        size = F.Prod(self._block(), [0], keep_dims=True)
        return F.ConcatV2([self._batch(), size, size], 0)

    def _transform(self, x: Tensor, inverse: bool = False) -> Tensor:
        result: Tensor = getattr(F, f"{'I' if inverse else ''}FFT{_SUFFIXES[self._depth]}")(x)
        return result

    def _typed(self, x: Tensor) -> Tensor:
        """x of the operator's type; of a real one, the real part."""
        if self.dtype.is_complex:
            return F.Cast(x, DstT=self.dtype)
        return F.Cast(F.Real(x, Tout=x.dtype.real_dtype), DstT=self.dtype)

    def convolution_kernel(self, name: str = "convolution_kernel") -> Tensor:
        """The first column, read as an array [..., n1, n2, …], of the operator's type."""
        with self._scope(name):
            return self._typed(self._transform(self._spectrum, inverse=True))

    def assert_hermitian_spectrum(self, name: str = "assert_hermitian_spectrum") -> Any:
        """An operation that fails unless the spectrum is that of a real operator."""
        with self._scope(name):
            kernel = self._transform(self._spectrum, inverse=True)
            imaginary = F.Imag(kernel, Tout=kernel.dtype.real_dtype)
            size = F.Cast(F.Prod(self._block(), 0), DstT=imaginary.dtype)
            limit = F.Mul(size, imaginary.dtype.as_numpy_dtype(np.finfo(imaginary.dtype.as_numpy_dtype).eps))
            largest = F.Max(F.ComplexAbs(kernel, Tout=imaginary.dtype), F.Range(0, F.Rank(kernel), 1))
            bound = F.Mul(limit, F.Maximum(largest, imaginary.dtype.as_numpy_dtype(1)))
            return self._assert_all(F.LessEqual(F.Abs(imaginary), bound), "Spectrum was not Hermitian")

    def _by_spectrum(self, x: Tensor, apply: Any, adjoint: bool) -> Tensor:
        """`apply` of the transform of the columns of x and the spectrum, transformed back."""
        rows = transposed(as_complex(F.Cast(x, DstT=self._spectrum.dtype)))
        shape = F.Shape(rows)
        outer = F.StridedSlice(shape, [0], [-1], [1], begin_mask=1)  # [..., r]
        blocks = self._transform(F.Reshape(rows, F.ConcatV2([outer, self._block()], 0)))
        factors = conjugated(self._spectrum, adjoint)
        broad = F.ConcatV2([self._batch(), [1], self._block()], 0)
        made = self._transform(apply(blocks, F.Reshape(factors, broad)), inverse=True)
        of_result = F.StridedSlice(F.Shape(made), [0], [-self._depth], [1], begin_mask=1)
        return self._typed(transposed(F.Reshape(made, F.ConcatV2([of_result, [-1]], 0))))

    def _matmul(self, x: Tensor, adjoint: bool, adjoint_arg: bool) -> Tensor:
        return self._by_spectrum(adjoint_of(x) if adjoint_arg else x, F.Mul, adjoint)

    def _solve(self, rhs: Tensor, adjoint: bool) -> Tensor:
        return self._by_spectrum(rhs, F.RealDiv, adjoint)

    def _flat(self) -> Tensor:
        return F.Reshape(self._spectrum, F.ConcatV2([self._batch(), [-1]], 0))

    def _determinant(self) -> Tensor:
        return self._typed(F.Prod(self._flat(), [-1]))

    def _log_abs_determinant(self) -> Tensor:
        sizes = F.ComplexAbs(self._flat(), Tout=self._spectrum.dtype.real_dtype)
        return F.Cast(F.Sum(F.Log(sizes), [-1]), DstT=self.dtype)

    def _eigvals(self) -> Tensor:
        return self._typed(self._flat())

    def eigvals(self, name: str = "eigvals") -> Tensor:
        """The eigenvalues [..., n], complex: the spectrum."""
        with self._scope(name):
            return self._flat()

    def _trace(self) -> Tensor:
        return self._typed(F.Sum(self._flat(), [-1]))

    def _diag_part(self) -> Tensor:
        shape = self._shape_tensor()
        size = F.StridedSlice(shape, [-1], [0], [1], end_mask=1)
        mean = self._typed(F.Mean(self._flat(), [-1], keep_dims=True))
        return F.BroadcastTo(mean, F.ConcatV2([self._batch(), size], 0))

    def _cond(self) -> Tensor:
        sizes = F.ComplexAbs(self._flat(), Tout=self._spectrum.dtype.real_dtype)
        return F.Cast(F.RealDiv(F.Max(sizes, [-1]), F.Min(sizes, [-1])), DstT=self.dtype)

    def _with(self, spectrum: Tensor, is_non_singular: Hint) -> LinearOperator:
        maker: Any = type(self)
        return maker(  # type: ignore[no-any-return]
            spectrum,
            self.dtype,
            is_non_singular=is_non_singular,
            is_self_adjoint=self.is_self_adjoint,
            is_positive_definite=self.is_positive_definite,
        )

    def _adjoint(self) -> LinearOperator:
        return self._with(F.Conj(self._spectrum), self.is_non_singular)

    def _inverse(self) -> LinearOperator:
        return self._with(F.Reciprocal(self._spectrum), True)

    def _assert_non_singular(self) -> Any:
        sizes = F.ComplexAbs(self._spectrum, Tout=self._spectrum.dtype.real_dtype)
        return self._assert_all(F.Greater(sizes, 0), "Singular operator:  Spectrum contained zero values.")

    def _assert_positive_definite(self) -> Any:
        real = F.Real(self._spectrum, Tout=self._spectrum.dtype.real_dtype)
        return self._assert_all(
            F.Greater(real, 0), "Not positive definite:  Real part of spectrum was not all positive."
        )

    def _assert_self_adjoint(self) -> Any:
        imaginary = F.Imag(self._spectrum, Tout=self._spectrum.dtype.real_dtype)
        return assert_near(imaginary, F.ZerosLike(imaginary), message="Spectrum was not real.")


class LinearOperatorCirculant(_Circulant):
    """Circulant matrices whose eigenvalues are `spectrum` [..., n]; see `_Circulant`."""

    _depth = 1


class LinearOperatorCirculant2D(_Circulant):
    """Circulant operators on arrays of two dimensions, with eigenvalues `spectrum` [..., n1, n2]; see
    `_Circulant`."""

    _depth = 2


class LinearOperatorCirculant3D(_Circulant):
    """Circulant operators on arrays of three dimensions, with eigenvalues `spectrum` [..., n1, n2, n3]; see
    `_Circulant`."""

    _depth = 3
