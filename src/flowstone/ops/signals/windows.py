"""Windows: the weights of the samples of a frame, small at its ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType, as_dtype

_INT = np.int32


def hann_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The weights 0.5 - 0.5 cos(2π k / n) [window_length]; n is one less if not `periodic`."""
    return _raised_cosine(name or "hann_window", window_length, periodic, dtype, 0.5, 0.5)


def hamming_window(
    window_length: Any, periodic: Any = True, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The weights 0.54 - 0.46 cos(2π k / n) [window_length]; n is one less if not `periodic`."""
    return _raised_cosine(name or "hamming_window", window_length, periodic, dtype, 0.54, 0.46)


def _raised_cosine(name: str, window_length: Any, periodic: Any, dtype: Any, a: float, b: float) -> Tensor:
    """a - b cos(2π k / n), where n is the length, or of a periodic window of odd length one less."""
    kind = _floating(dtype)
    with get_default_graph().name_scope(name):
        length = convert_to_tensor(window_length, dtypes.int32, name="window_length")
        known, is_periodic = static_value(length), static_value(convert_to_tensor(periodic, dtypes.bool))
        if known is not None and is_periodic is not None:
            size = _checked(known)
            steps = max(size + int(is_periodic) * (1 - size % 2) - 1, 1)
            values = np.ones(1) if size == 1 else a - b * np.cos(2 * math.pi * np.arange(size) / steps)
            return _constant(values, kind)
        one = _INT(1)
        longer = F.Mul(F.Cast(periodic, DstT=dtypes.int32), F.Sub(one, F.FloorMod(length, _INT(2))))
        count = F.Maximum(F.AddV2(length, F.Sub(longer, one)), one)  # of one sample the weight is 1
        angle = F.RealDiv(F.Cast(F.Range(_INT(0), length, one), DstT=kind), F.Cast(count, DstT=kind))
        number = kind.as_numpy_dtype
        cosine = F.Cos(F.Mul(angle, number(2 * math.pi)))
        weights = F.Sub(number(a), F.Mul(number(b), cosine))
        return F.SelectV2(F.Equal(length, one), F.OnesLike(weights), weights)


def kaiser_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The Kaiser window [window_length] of shape `beta`: I0(beta sqrt(1 - x²)) / I0(beta), x from -1 to 1."""
    with get_default_graph().name_scope(name or "kaiser_window"):
        return _constant(_kaiser(_length(window_length), _number(beta)), _floating(dtype))


def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """The window [window_length], of even length, whose squares are the running sums of a Kaiser window."""
    with get_default_graph().name_scope(name or "kaiser_bessel_derived_window"):
        sums = np.cumsum(_kaiser(_length(window_length) // 2 + 1, _number(beta)))
        half = np.sqrt(sums[:-1] / sums[-1])
        return _constant(np.concatenate([half, half[::-1]]), _floating(dtype))


def vorbis_window(window_length: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """The weights sin(π/2 sin²(π (k + 0.5) / n)) [n] of Vorbis' transform."""
    with get_default_graph().name_scope(name or "vorbis_window"):
        size = _length(window_length)
        sine = np.sin(math.pi * (np.arange(size) + 0.5) / max(size, 1))
        return _constant(np.sin(math.pi / 2 * sine**2), _floating(dtype))


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Callable[..., Tensor] = hann_window, name: str | None = None
) -> Callable[[Any, Any], Tensor]:
    """The function ``f(frame_length, dtype)`` of windows for `inverse_stft`.

    They undo frames of this step and this forward window: the forward window divided by what the squares of
    all forward windows that overlap add up to.
    """

    def inverse_window_fn(frame_length: Any, dtype: Any) -> Tensor:
        with get_default_graph().name_scope(name or "inverse_stft_window_fn"):
            length, step = _length(frame_length), _length(frame_step)
            window = forward_window_fn(length, dtype=dtype)
            overlaps = -(-length // step)
            squares = F.Pad(F.Square(window), np.array([[0, overlaps * step - length]], _INT))
            total = F.Sum(F.Reshape(squares, [overlaps, step]), [0], keep_dims=True)
            total = F.Reshape(F.Tile(total, [overlaps, 1]), [overlaps * step])
            return F.RealDiv(window, F.StridedSlice(total, [0], [length], [1]))

    return inverse_window_fn


def _kaiser(size: int, beta: float) -> Any:
    if size <= 1:
        return np.ones(size)
    x = 2 * np.arange(size) / (size - 1) - 1
    return np.i0(beta * np.sqrt(np.maximum(0, 1 - x * x))) / np.i0(beta)


def _constant(values: Any, dtype: DType) -> Tensor:
    return convert_to_tensor(np.asarray(values).astype(dtype.as_numpy_dtype))


def _floating(dtype: Any) -> DType:
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {kind.name}")
    return kind


def _checked(length: Any) -> int:
    if np.ndim(length):
        raise ValueError(f"a window's length must be a scalar, not of shape {np.shape(length)}")
    return int(length)


def _length(length: Any) -> int:
    """The length, which must be known before the step. ValueError otherwise."""
    value = static_value(length) if isinstance(length, Tensor) else length
    if value is None:
        raise ValueError(f"the length must be known when the graph is built, not {length}")
    return _checked(value)


def _number(value: Any) -> float:
    known = static_value(value) if isinstance(value, Tensor) else value
    if known is None:
        raise ValueError(f"beta must be known when the graph is built, not {value}")
    return float(known)
