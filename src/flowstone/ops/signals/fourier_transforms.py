"""Discrete Fourier transforms over the last one, two or three dimensions, of complex and of real numbers.

FFT sums exp(-2πi jk / n) x[j], IFFT the conjugate factors, divided by n. RFFT takes real numbers and gives
the first n / 2 + 1 of the last dimension, which tell the rest; IRFFT is its inverse. Both take the lengths n:
RFFT uses the first n elements, IRFFT those of which n real numbers are made. The Batch… ops are older names.
Short lengths with a large prime factor are in `prime_lengths.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, OpDeclaration, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, format_dims
from flowstone.ops.signals import prime_lengths

__all__ = ["fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d"]

_INT = np.int32
_COMPLEX = "Tcomplex: type in [complex64, complex128] = complex64"
_REAL = "Treal: type in [float, double] = float"


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, message)


def _cost(node: Node) -> float:
    """5 n log n for every transform of n elements, half of it for real numbers."""
    count, rank = max(work.count(x) for x in (node.inputs[0], node.outputs[0])), _rank_of(node.type)
    dims = node.dims(0)
    each = max(work.element_count(dims[-rank:] if dims else (None,) * rank), 2)
    return (2.5 if "RFFT" in node.type else 5.0) * count * math.log2(each)


def _rank_of(name: str) -> int:
    """The number of dimensions that an op of this name transforms."""
    return int(name[-2]) if name.endswith("D") else 1


def _at_least(rank: int, dims: Dims) -> Dims:
    if dims is not None and len(dims) < rank:
        raise ValueError(f"Shape must be at least rank {rank} but is rank {len(dims)}: {format_dims(dims)}")
    return dims


def _choice(env: Environment, is_real: bool = False) -> Callable[[Sequence[int]], bool]:
    """Which lengths `prime_lengths` has a way for where the kernel runs; `is_real`: of real numbers."""
    if env.device.type != "cpu":
        return lambda lengths: False
    return functools.partial(prime_lengths.any_by_primes, is_real=is_real)


# ---- complex


def _complex_transform(
    name: str, rank: int, function: Callable[..., torch.Tensor], batch: bool
) -> OpDeclaration:
    if batch:
        instead = name.removeprefix("Batch")
        declaration = op(
            name,
            "input: complex64 -> output: complex64",
            cost=_cost,
            deprecated=(15, instead),
            starts_team=True,
        )
    else:
        declaration = op(name, "input: Tcomplex -> output: Tcomplex", _COMPLEX, cost=_cost, starts_team=True)
    declaration.infer(lambda node: _at_least(rank, node.dims(0)))
    axes, is_inverse = tuple(range(-rank, 0)), function is torch.fft.ifftn

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dims, by_primes = node.static_shape(0), _choice(env)
        if dims is not None and 0 not in dims and not by_primes(dims[-rank:]):
            return Call(function, X0, None, axes)

        def transform(x: torch.Tensor) -> torch.Tensor:
            if x.ndim < rank:
                raise _invalid(f"Input must have rank of at least {rank} but got: {list(x.shape)}")
            if not x.numel():
                return x.clone()
            if by_primes(x.shape[-rank:]):
                return prime_lengths.transform(x, axes, is_inverse)
            return function(x, None, axes)

        return transform

    return declaration


def _count_of(x: Tensor, rank: int) -> Any:
    """The number of elements of a transform, of the type of x."""
    dims = None if x.dims is None else x.dims[-rank:]
    if dims is not None and None not in dims:
        return np.asarray(math.prod(dims), x.dtype.as_numpy_dtype)  # type: ignore[arg-type]
    sizes = F.StridedSlice(F.Shape(x), [-rank], [0], [1], end_mask=1)
    return F.Cast(F.Prod(sizes, _INT(0)), DstT=x.dtype)


def _declare_complex(rank: int) -> None:
    suffix = "" if rank == 1 else f"{rank}D"
    forward, backward = f"FFT{suffix}", f"IFFT{suffix}"
    for batch in (False, True):
        prefix = "Batch" if batch else ""
        ops = [
            _complex_transform(f"{prefix}{name}", rank, function, batch)
            for name, function in ((forward, torch.fft.fftn), (backward, torch.fft.ifftn))
        ]
        if batch:
            for each in ops:
                each.no_gradient()
        else:
            ops[0].gradient(lambda op, dy: F.Mul(getattr(F, backward)(dy), _count_of(dy, rank)))
            ops[1].gradient(lambda op, dy: F.RealDiv(getattr(F, forward)(dy), _count_of(dy, rank)))


for _rank in (1, 2, 3):
    _declare_complex(_rank)


# ---- real


def _lengths_of(node: Node, rank: int) -> tuple[int | None, ...]:
    """The lengths of the transform, as far as they are known. ValueError if they are not `rank` numbers."""
    dims = node.dims(1)
    if dims is not None and len(dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}: {format_dims(dims)}")
    if dims is not None and dims[0] not in (None, rank):
        raise ValueError(f"Dimension must be {rank} but is {dims[0]}")
    value = node.constant(1)
    return (None,) * rank if value is None else tuple(int(n) if n >= 0 else None for n in value)


def _checked_lengths(x: torch.Tensor, fft_length: torch.Tensor, rank: int, is_inverse: bool) -> list[int]:
    """The lengths. InvalidArgumentError if they are no lengths, or x has too few elements."""
    if x.ndim < rank:
        raise _invalid(f"Input must have rank of at least {rank} but got: {list(x.shape)}")
    lengths = [int(n) for n in fft_length.reshape(-1)]
    if fft_length.ndim != 1 or len(lengths) != rank:
        raise _invalid(f"fft_length must have shape [{rank}], got {list(fft_length.shape)}")
    for i, length in enumerate(lengths):
        if length < 0:
            raise _invalid(f"fft_length[{i}] must >= 0, but got: {length}")
        needed = length // 2 + 1 if is_inverse and i == rank - 1 else length
        axis = x.ndim - rank + i
        if length and x.shape[axis] < needed and x.numel():
            raise _invalid(
                f"Input dimension {axis} must have length of at least {needed} but got: {x.shape[axis]}"
            )
    return lengths


def _plain_call(
    function: Callable[..., torch.Tensor], node: Node, result: torch.dtype | None, rank: int,
    by_primes: Callable[[Sequence[int]], bool],
) -> Call | None:  # fmt: skip
    """The call of ATen's transform where sizes and lengths are known, none is 0, and nothing else is to be
    done; else None."""
    dims, lengths = node.static_shape(0), _lengths_of(node, rank)
    if dims is None or None in lengths or 0 in (*dims, *lengths) or by_primes(lengths):  # type: ignore[arg-type]
        return None
    kind = node.dtype(0).torch
    if kind is None or result is None or kind.to_real() != result.to_real():
        return None
    is_inverse = kind.is_complex
    needed = [*lengths[:-1], lengths[-1] // 2 + 1] if is_inverse else lengths  # type: ignore[operator]
    if any(size < most for size, most in zip(dims[-rank:], needed)):  # type: ignore[operator]
        return None
    return Call(function, X0, lengths, tuple(range(-rank, 0)))


def _real_transform(name: str, rank: int) -> OpDeclaration:
    """Declares RFFT of `rank` dimensions."""
    declaration = op(
        name,
        "input: Treal, fft_length: int32 -> output: Tcomplex",
        f"{_REAL} ; {_COMPLEX}",
        host=["fft_length"],
        cost=_cost,
        starts_team=True,
    )
    axes = tuple(range(-rank, 0))

    @declaration.infer
    def _(node: Node) -> Dims:
        dims, lengths = _at_least(rank, node.dims(0)), _lengths_of(node, rank)
        if dims is None:
            return None
        last = None if lengths[-1] is None else lengths[-1] // 2 + 1 if lengths[-1] else 0
        return (*dims[:-rank], *lengths[:-1], last)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dtype, by_primes = node.attributes["Tcomplex"].torch, _choice(env, is_real=True)
        plain = _plain_call(torch.fft.rfftn, node, dtype, rank, by_primes)
        if plain is not None:
            return plain

        def transform(x: torch.Tensor, fft_length: torch.Tensor) -> Any:
            lengths = _checked_lengths(x, fft_length, rank, False)
            if not x.numel() or 0 in lengths:
                last = lengths[-1] // 2 + 1 if lengths[-1] else 0
                return x.new_zeros(*x.shape[:-rank], *lengths[:-1], last, dtype=dtype)
            if by_primes(lengths):
                return prime_lengths.real_transform(x, lengths, axes).to(dtype)
            return torch.fft.rfftn(x, lengths, axes).to(dtype)

        return transform

    return declaration


def _inverse_real_transform(name: str, rank: int) -> OpDeclaration:
    """Declares IRFFT of `rank` dimensions."""
    declaration = op(
        name,
        "input: Tcomplex, fft_length: int32 -> output: Treal",
        f"{_REAL} ; {_COMPLEX}",
        host=["fft_length"],
        cost=_cost,
        starts_team=True,
    )
    axes = tuple(range(-rank, 0))

    @declaration.infer
    def _(node: Node) -> Dims:
        dims, lengths = _at_least(rank, node.dims(0)), _lengths_of(node, rank)
        return None if dims is None else (*dims[:-rank], *lengths)

    @declaration.kernel(CPU, GPU)
    def _(node: Node, env: Environment) -> Kernel:
        dtype, by_primes = node.attributes["Treal"].torch, _choice(env, is_real=True)
        plain = _plain_call(torch.fft.irfftn, node, dtype, rank, by_primes)
        if plain is not None:
            return plain

        def transform(x: torch.Tensor, fft_length: torch.Tensor) -> Any:
            lengths = _checked_lengths(x, fft_length, rank, True)
            if not x.numel() or 0 in lengths:
                return x.new_zeros(*x.shape[:-rank], *lengths, dtype=dtype)
            if by_primes(lengths):
                return prime_lengths.inverse_real_transform(x, lengths, axes).to(dtype)
            return torch.fft.irfftn(x, lengths, axes).to(dtype)

        return transform

    return declaration


def _weights(fft_length: Tensor, ends: float, others: float, dtype: dtypes.DType) -> Tensor:
    """A number for each element of the last dimension of RFFT's result: `ends` for the first, and for the one
    in the middle of an even length, which stand for themselves; `others` for those that stand for two."""
    last = F.StridedSlice(fft_length, [-1], [0], [1], end_mask=1, shrink_axis_mask=1)
    places = F.Range(_INT(0), F.AddV2(F.FloorDiv(last, _INT(2)), _INT(1)), _INT(1))
    at_end = F.LogicalOr(F.Equal(places, _INT(0)), F.Equal(F.Mul(places, _INT(2)), last))
    one = dtype.as_numpy_dtype
    return F.SelectV2(at_end, one(ends), one(others))


def _scale(fft_length: Tensor, dtype: dtypes.DType) -> Tensor:
    return F.Cast(F.Prod(fft_length, _INT(0)), DstT=dtype)


def _as_long_as(flow: Tensor, x: Tensor, rank: int) -> Tensor:
    """The gradient with zeros for the elements at the end of x that the transform did not use."""
    if flow.dims is not None and flow.dims == x.dims and None not in flow.dims[-rank:]:
        return flow
    missing = F.Sub(F.Shape(x), F.Shape(flow))
    last = F.StridedSlice(missing, [-rank], [0], [1], end_mask=1)
    before = F.Fill(F.Pack([F.Sub(F.Rank(x), _INT(rank))]), _INT(0))
    after = F.ConcatV2([before, last], _INT(0))
    return F.Pad(flow, F.Pack([F.ZerosLike(after), after], axis=1))


def _declare_real(rank: int) -> None:
    suffix = "" if rank == 1 else f"{rank}D"
    forward = _real_transform(f"RFFT{suffix}", rank)
    backward = _inverse_real_transform(f"IRFFT{suffix}", rank)
    if rank == 3:
        forward.no_gradient()
        backward.no_gradient()
        return

    @forward.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        x, fft_length = op.inputs
        weighted = F.Mul(dy, _weights(fft_length, 1.0, 0.5, dy.dtype))
        flow = backward(weighted, fft_length, Treal=x.dtype)
        return _as_long_as(F.Mul(flow, _scale(fft_length, x.dtype)), x, rank), None

    @backward.gradient
    def _(op: Operation, dy: Tensor) -> Gradients:
        x, fft_length = op.inputs
        flow = F.Mul(forward(dy, fft_length, Tcomplex=x.dtype), _weights(fft_length, 1.0, 2.0, x.dtype))
        return _as_long_as(F.RealDiv(flow, _scale(fft_length, x.dtype)), x, rank), None


for _rank in (1, 2, 3):
    _declare_real(_rank)


# ---- public functions


def fft(input: Any, name: str | None = None) -> Tensor:
    """The discrete Fourier transform over the last dimension of complex numbers."""
    return F.FFT(input, name=name)


def ifft(input: Any, name: str | None = None) -> Tensor:
    """The inverse of `fft`."""
    return F.IFFT(input, name=name)


def fft2d(input: Any, name: str | None = None) -> Tensor:
    """The discrete Fourier transform over the last two dimensions of complex numbers."""
    return F.FFT2D(input, name=name)


def ifft2d(input: Any, name: str | None = None) -> Tensor:
    """The inverse of `fft2d`."""
    return F.IFFT2D(input, name=name)


def fft3d(input: Any, name: str | None = None) -> Tensor:
    """The discrete Fourier transform over the last three dimensions of complex numbers."""
    return F.FFT3D(input, name=name)


def ifft3d(input: Any, name: str | None = None) -> Tensor:
    """The inverse of `fft3d`."""
    return F.IFFT3D(input, name=name)
