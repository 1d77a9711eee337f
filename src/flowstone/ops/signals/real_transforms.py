"""Fourier transforms of real numbers, cut or padded with zeros to a length, and transforms over any axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowstone.framework.declarations.building import operand
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes

__all__ = ["irfft", "irfft2d", "irfft3d", "rfft", "rfft2d", "rfft3d"]

_INT = np.int32
_COMPLEX_OF = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}
_REAL_OF = {pair: real for real, pair in _COMPLEX_OF.items()}


def _last_sizes(x: Tensor, rank: int) -> Any:
    """The sizes of the last dimensions: an array where they are known, else a tensor."""
    dims = None if x.dims is None else x.dims[-rank:]
    if dims is not None and None not in dims:
        return np.array(dims, _INT)
    return F.StridedSlice(F.Shape(x), [-rank], [0], [1], end_mask=1)


def _default_length(x: Tensor, rank: int, is_inverse: bool) -> Tensor:
    """The lengths where none are given: all of x, or the even number that it stands for."""
    sizes = _last_sizes(x, rank)
    if is_inverse and isinstance(sizes, Tensor):
        before = F.StridedSlice(sizes, [0], [-1], [1], begin_mask=1)
        last = F.StridedSlice(sizes, [-1], [0], [1], end_mask=1)
        return F.ConcatV2([before, F.Maximum(_INT(0), F.Mul(F.Sub(last, _INT(1)), _INT(2)))], _INT(0))
    if is_inverse:
        sizes[-1] = max(0, 2 * (sizes[-1] - 1))
    return convert_to_tensor(sizes, name="fft_length")


def _padded(x: Tensor, fft_length: Tensor, rank: int, is_inverse: bool) -> Tensor:
    """x, with zeros where it has fewer elements than the lengths want."""
    lengths, sizes = static_value(fft_length), _last_sizes(x, rank)
    if isinstance(lengths, np.ndarray) and not isinstance(sizes, Tensor) and lengths.shape == (rank,):
        needed = lengths.copy()
        if is_inverse and needed[-1] > 0:
            needed[-1] = needed[-1] // 2 + 1
        missing = np.maximum(needed - sizes, 0)
        if not missing.any():
            return x
        after = np.concatenate([np.zeros(len(x.dims or ()) - rank, _INT), missing])
        return F.Pad(x, np.stack([np.zeros_like(after), after], 1))
    if is_inverse:
        before = F.StridedSlice(fft_length, [0], [-1], [1], begin_mask=1)
        last = F.StridedSlice(fft_length, [-1], [0], [1], end_mask=1)
        half = F.SelectV2(F.Greater(last, _INT(0)), F.AddV2(F.FloorDiv(last, _INT(2)), _INT(1)), last)
        fft_length = F.ConcatV2([before, half], _INT(0))
    lacking = F.Maximum(F.Sub(fft_length, sizes), _INT(0))
    none = F.Fill(F.Pack([F.Sub(F.Rank(x), _INT(rank))]), _INT(0))
    behind = F.ConcatV2([none, lacking], _INT(0))
    return F.Pad(x, F.Pack([F.ZerosLike(behind), behind], axis=1))


def _transform(
    input_tensor: Any, fft_length: Any, rank: int, is_inverse: bool, name: str | None, dtype: Any = None
) -> Tensor:
    kind = f"{'irfft' if is_inverse else 'rfft'}{'' if rank == 1 else f'{rank}d'}"
    preferred = dtypes.complex64 if is_inverse else dtypes.float32
    with get_default_graph().name_scope(name or kind) as scope:
        x = operand(input_tensor, preferred, "Const")
        pairs = _REAL_OF if is_inverse else _COMPLEX_OF
        if x.dtype not in pairs:
            raise ValueError(
                f"the input of {kind} must be one of {[d.name for d in pairs]}, not {x.dtype.name}"
            )
        if x.dims is not None and len(x.dims) < rank:
            raise ValueError(f"the input of {kind} must have at least rank {rank}, not {len(x.dims)}")
        if fft_length is None:
            length = _default_length(x, rank, is_inverse)
        else:
            length = convert_to_tensor(fft_length, dtypes.int32, name="fft_length")
            x = _padded(x, length, rank, is_inverse)
        op = getattr(F, kind.upper())
        types = {"Treal": pairs[x.dtype]} if is_inverse else {"Tcomplex": pairs[x.dtype]}
        result: Tensor = op(x, length, **types, name=scope)
        return result


def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The first n / 2 + 1 elements of the Fourier transform over the last dimension of real numbers.

    Args:
        input_tensor: float32 or float64 [..., m].
        fft_length: [n], to which the dimension is cut or padded with zeros; m if None.
    """
    return _transform(input_tensor, fft_length, 1, False, name)


def rfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """As `rfft` over the last two dimensions; `fft_length` is [2], the last dimension becomes n / 2 + 1."""
    return _transform(input_tensor, fft_length, 2, False, name)


def rfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """As `rfft` over the last three dimensions; `fft_length` is [3], the last dimension becomes n / 2 + 1."""
    return _transform(input_tensor, fft_length, 3, False, name)


def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The n real numbers whose `rfft` this is.

    Args:
        input_tensor: complex64 or complex128 [..., m].
        fft_length: [n], of whose spectrum m elements are cut or padded with zeros; 2 (m - 1) if None.
    """
    return _transform(input_tensor, fft_length, 1, True, name)


def irfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `rfft2d`; see `irfft`."""
    return _transform(input_tensor, fft_length, 2, True, name)


def irfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `rfft3d`; see `irfft`."""
    return _transform(input_tensor, fft_length, 3, True, name)


# ---- over any axes


def _axes_and_lengths(
    x: Tensor, fft_length: Any, axes: Any, is_inverse_real: bool
) -> tuple[list[int], list[int]]:
    """The axes, counted from the start, and their lengths. ValueError for what does not fit."""
    rank = None if x.dims is None else len(x.dims)
    if x.dims is None or rank is None:
        raise ValueError("the rank of the input must be known")
    if axes is None:
        count = rank if fft_length is None else len(fft_length)
        axes = range(rank - count, rank)
    chosen = [int(axis) for axis in axes]
    if any(not -rank <= axis < rank for axis in chosen) or len({axis % rank for axis in chosen}) < len(
        chosen
    ):
        raise ValueError(f"axes {chosen} are not different ones of an input of rank {rank}")
    places = [axis % rank for axis in chosen]
    if fft_length is not None:
        lengths = [int(n) for n in fft_length]
        if len(lengths) != len(places):
            raise ValueError(f"fft_length {lengths} and axes {chosen} must have the same length")
        return places, lengths
    sizes = [x.dims[axis] for axis in places]
    if any(size is None for size in sizes):
        raise ValueError(f"fft_length must be given for a shape that is not known: {x.shape}")
    lengths = [int(size or 0) for size in sizes]
    if is_inverse_real and lengths:
        lengths[-1] = 2 * (lengths[-1] - 1)
    return places, lengths


def _moved(x: Tensor, axis: int) -> tuple[Tensor, list[int] | None]:
    """x with this axis last, and the order that undoes it; None if it is last."""
    rank = len(x.dims or ())
    if axis == rank - 1:
        return x, None
    order = [i for i in range(rank) if i != axis] + [axis]
    return F.Transpose(x, order), [order.index(i) for i in range(rank)]


def _along(x: Tensor, axis: int, length: int, is_inverse: bool) -> Tensor:
    """The complex transform over one axis, cut or padded to a length."""
    moved, back = _moved(x, axis)
    size = moved.dims[-1] if moved.dims else None
    if size != length:
        moved = F.StridedSlice(
            _padded(moved, convert_to_tensor([length]), 1, False),
            [0, 0],
            [0, length],
            [1, 1],
            ellipsis_mask=1,
        )
    result: Tensor = F.IFFT(moved) if is_inverse else F.FFT(moved)
    return result if back is None else F.Transpose(result, back)


def _scaled(x: Tensor, lengths: Sequence[int], norm: str | None, is_inverse: bool) -> Tensor:
    """The transform divided as the norm says: "ortho" by the root of the number of elements, both ways;
    "forward" wholly on the way there; otherwise on the way back, where it is already."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f"Invalid normalization mode {norm!r}: it must be backward, ortho or forward")
    if norm in (None, "backward"):
        return x
    count = float(math.prod(lengths))
    factor = math.sqrt(count) if norm == "ortho" else count
    return F.Mul(x, convert_to_tensor(factor if is_inverse else 1 / factor, x.dtype))


def fftnd(
    input_tensor: Any,
    fft_length: Any = None,
    axes: Any = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete Fourier transform of complex numbers over several axes.

    Args:
        input_tensor: complex, of known rank.
        fft_length: a length for each axis, to which it is cut or padded with zeros; None for its size.
        axes: the axes; None for the last ones, or all without lengths.
        norm: "backward" (or None) divides the inverse by the number of elements, "forward" the transform,
            "ortho" both by its root.
    """
    return _over_axes(input_tensor, fft_length, axes, norm, False, name or "fftnd")


def ifftnd(
    input_tensor: Any,
    fft_length: Any = None,
    axes: Any = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of `fftnd`."""
    return _over_axes(input_tensor, fft_length, axes, norm, True, name or "ifftnd")


def _over_axes(x: Any, fft_length: Any, axes: Any, norm: str | None, is_inverse: bool, name: str) -> Tensor:
    with get_default_graph().name_scope(name):
        result = convert_to_tensor(x, preferred_dtype=dtypes.complex64)
        places, lengths = _axes_and_lengths(result, fft_length, axes, False)
        for axis, length in zip(places, lengths, strict=True):
            result = _along(result, axis, length, is_inverse)
        return _scaled(result, lengths, norm, is_inverse)


def rfftnd(
    input_tensor: Any,
    fft_length: Any = None,
    axes: Any = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """As `fftnd` of real numbers: the last of the axes becomes n / 2 + 1."""
    with get_default_graph().name_scope(name or "rfftnd"):
        x = convert_to_tensor(input_tensor, preferred_dtype=dtypes.float32)
        places, lengths = _axes_and_lengths(x, fft_length, axes, False)
        moved, back = _moved(x, places[-1])
        result = rfft(moved, [lengths[-1]])
        result = result if back is None else F.Transpose(result, back)
        for axis, length in zip(places[:-1], lengths[:-1], strict=True):
            result = _along(result, axis, length, False)
        return _scaled(result, lengths, norm, False)


def irfftnd(
    input_tensor: Any,
    fft_length: Any = None,
    axes: Any = None,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of `rfftnd`."""
    with get_default_graph().name_scope(name or "irfftnd"):
        result = convert_to_tensor(input_tensor, preferred_dtype=dtypes.complex64)
        places, lengths = _axes_and_lengths(result, fft_length, axes, True)
        for axis, length in zip(places[:-1], lengths[:-1], strict=True):
            result = _along(result, axis, length, True)
        moved, back = _moved(result, places[-1])
        real = irfft(moved, [lengths[-1]])
        return _scaled(real if back is None else F.Transpose(real, back), lengths, norm, True)


# ---- zero in the middle


def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """x with the first half of each axis (of all, if None) after the second: the zero frequency is in the
    middle."""
    return _halves_changed(x, axes, lambda size: (size + 1) // 2, name or "fftshift")


def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return _halves_changed(x, axes, lambda size: size // 2, name or "ifftshift")


def _halves_changed(x: Any, axes: Any, first: Any, name: str) -> Tensor:
    with get_default_graph().name_scope(name):
        result = convert_to_tensor(x, name="x")
        if result.dims is None:
            raise ValueError("the rank of x must be known")
        rank = len(result.dims)
        if not rank:
            raise TypeError(f"x must have dimensions to be shifted, not {result.shape}")
        chosen = range(rank) if axes is None else [axes] if isinstance(axes, int) else axes
        for axis in chosen:
            place = int(axis) % rank
            size = result.dims[place]
            start: Any = np.array([0] * place + [first(size or 0)], _INT)
            if size is None:
                count = F.StridedSlice(F.Shape(result), [place], [place + 1], [1])
                at = F.FloorDiv(F.AddV2(count, _INT(first(1))), _INT(2))
                start = F.ConcatV2([np.zeros(place, _INT), at], _INT(0))
            mask = (1 << place) - 1
            zeros, ones = np.zeros(place + 1, _INT), np.ones(place + 1, _INT)
            second = F.StridedSlice(result, start, zeros, ones, begin_mask=mask, end_mask=mask | 1 << place)
            begin = F.StridedSlice(result, zeros, start, ones, begin_mask=mask | 1 << place, end_mask=mask)
            result = F.ConcatV2([second, begin], _INT(place))
        return result
