"""Discrete cosine transforms of the last dimension, of types 1 to 4, by Fourier transforms of real numbers.

Type 2 is the real part of the first n elements of a transform twice as long, each turned by half a step; type
3 is its inverse, up to a factor; type 4 has the odd elements of a type 2 twice as long; type 1 is the
transform of the signal and its mirror image (Makhoul, 1980, and Britanak, Yip and Rao, 2007).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.signals.real_transforms import irfft, rfft

_INT = np.int32
_INVERSE_TYPE = {1: 1, 2: 3, 3: 2, 4: 4}


def dct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The discrete cosine transform of the last dimension of real numbers.

    Args:
        input: float32 or float64 [..., samples].
        type: 1, 2, 3 or 4.
        n: the length to which the dimension is cut or padded with zeros, its own if None.
        axis: -1.
        norm: "ortho" for a transform that keeps lengths (not of type 1), or None.
        name: a name for the operations.
    """
    _check(type, n, axis, norm)
    with get_default_graph().name_scope(name or "dct"):
        x = convert_to_tensor(input, preferred_dtype=dtypes.float32)
        if n is not None:
            x = _of_length(x, n)
        return _TRANSFORMS[type](x, norm == "ortho")


def idct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The inverse of `dct`, times 2 n without a norm (2 (n - 1) for type 1); the arguments are the same.

    `n` must be None.
    """
    _check(type, n, axis, norm)
    if n is not None:
        raise NotImplementedError(f"n should be None for the inverse: got {n}")
    inverse = _INVERSE_TYPE[type]
    return dct(input, inverse, None, axis, norm, name)


def _check(type: int, n: int | None, axis: int, norm: str | None) -> None:
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None")
    if type not in _INVERSE_TYPE:
        raise ValueError("Types I, II, III and IV (I)DCT are supported.")
    if type == 1 and norm == "ortho":
        raise ValueError("Normalization is not supported for the Type-I DCT.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")


def _of_length(x: Tensor, n: int) -> Tensor:
    size = x.dims[-1] if x.dims else None
    if x.dims is None or size is None:
        raise ValueError("n needs an input whose last dimension is known")
    if size >= n:
        return _part(x, 0, n)
    paddings = np.zeros([len(x.dims), 2], _INT)
    paddings[-1, 1] = n - size
    return F.Pad(x, paddings)


def _part(x: Tensor, start: Any, end: Any, step: int = 1) -> Tensor:
    """A slice of the last dimension; an `end` that is None is its end."""
    bounds = [
        F.Pack([_INT(0), value]) if isinstance(value, Tensor) else [0, value or 0] for value in (start, end)
    ]
    return F.StridedSlice(x, *bounds, [1, step], ellipsis_mask=1, end_mask=2 if end is None else 0)


def _size(x: Tensor) -> Any:
    """The last size: an int, or a tensor where it is not known."""
    size = x.dims[-1] if x.dims else None
    if size is not None:
        return size
    return F.StridedSlice(F.Shape(x), [-1], [0], [1], end_mask=1, shrink_axis_mask=1)


def _as(x: Any, dtype: dtypes.DType) -> Any:
    """A number of this type, of an int or a tensor."""
    return F.Cast(x, DstT=dtype) if isinstance(x, Tensor) else dtype.as_numpy_dtype(x)


def _turns(size: Any, sign: int, dtype: dtypes.DType) -> Tensor:
    """2 exp(± i π k / 2n) for k from 0 to n - 1."""
    pair = dtypes.complex64 if dtype is dtypes.float32 else dtypes.complex128
    if not isinstance(size, Tensor):
        values = 2 * np.exp(sign * 0.5j * math.pi * np.arange(size) / size)
        return convert_to_tensor(values.astype(pair.as_numpy_dtype))
    angle = F.RealDiv(_as(F.Range(_INT(0), size, _INT(1)), dtype), _as(size, dtype))
    angle = F.Mul(angle, dtype.as_numpy_dtype(sign * 0.5 * math.pi))
    two = dtype.as_numpy_dtype(2)
    return F.Complex(F.Mul(two, F.Cos(angle)), F.Mul(two, F.Sin(angle)), Tout=pair)


def _first_apart(size: Any, first: Any, others: Any, dtype: dtypes.DType) -> Tensor:
    """A number for each of the elements: `first` for the first, `others` for the rest."""
    places = F.Range(_INT(0), size if isinstance(size, Tensor) else _INT(size), _INT(1))
    return F.SelectV2(F.Equal(places, _INT(0)), first, others)


def _twice(size: Any) -> Any:
    return F.Pack([F.Mul(size, _INT(2))]) if isinstance(size, Tensor) else [2 * size]


def _type_1(x: Tensor, is_ortho: bool) -> Tensor:
    mirrored = F.StridedSlice(x, [0, -2], [0, 0], [1, -1], ellipsis_mask=1)
    both = rfft(F.ConcatV2([x, mirrored], _INT(-1)))
    return F.Real(both, Tout=x.dtype)


def _type_2(x: Tensor, is_ortho: bool) -> Tensor:
    size = _size(x)
    spectrum = _part(rfft(x, _twice(size)), 0, size)
    result = F.Real(F.Mul(spectrum, _turns(size, -1, x.dtype)), Tout=x.dtype)
    if not is_ortho:
        return result
    root = F.Rsqrt(convert_to_tensor(_as(size, x.dtype)))
    half, number = F.Mul(root, x.dtype.as_numpy_dtype(0.5)), x.dtype.as_numpy_dtype
    return F.Mul(result, _first_apart(size, half, F.Mul(half, number(math.sqrt(2))), x.dtype))


def _type_3(x: Tensor, is_ortho: bool) -> Tensor:
    size = _size(x)
    number = x.dtype.as_numpy_dtype
    count = convert_to_tensor(_as(size, x.dtype))
    if is_ortho:
        root = F.Sqrt(count)
        x = F.Mul(x, _first_apart(size, root, F.Mul(root, number(math.sqrt(0.5))), x.dtype))
    else:
        x = F.Mul(x, count)
    turns = _turns(size, 1, x.dtype)
    spectrum = F.Mul(turns, F.Complex(x, F.ZerosLike(x), Tout=turns.dtype))
    return _part(irfft(spectrum, _twice(size)), 0, size)


def _type_4(x: Tensor, is_ortho: bool) -> Tensor:
    size = _size(x)
    padded = F.ConcatV2([x, F.ZerosLike(x)], _INT(-1))
    result = _part(_type_2(padded, False), 1, None, 2)
    if not is_ortho:
        return result
    factor = F.Rsqrt(F.Mul(convert_to_tensor(_as(size, x.dtype)), x.dtype.as_numpy_dtype(2)))
    return F.Mul(result, factor)


_TRANSFORMS = {1: _type_1, 2: _type_2, 3: _type_3, 4: _type_4}
