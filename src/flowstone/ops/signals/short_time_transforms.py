"""Transforms of frames of a signal: the short-time Fourier transform and the modified cosine transform."""

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
from flowstone.ops.signals.cosine_transforms import dct, idct
from flowstone.ops.signals.frames import frame, over_last, overlap_and_add
from flowstone.ops.signals.real_transforms import irfft, rfft
from flowstone.ops.signals.windows import hann_window, vorbis_window

_INT = np.int32
WindowFunction = Callable[..., Tensor]


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: WindowFunction | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The short-time Fourier transform [..., frames, fft_length / 2 + 1] of real signals [..., samples].

    Args:
        signals: float32 or float64.
        frame_length: the number of samples of a frame.
        frame_step: the number of samples between the starts of frames.
        fft_length: the length of the transform; None for the power of two that holds a frame.
        window_fn: ``f(frame_length, dtype=)``, the weights of a frame's samples; None for none.
        pad_end: whether there are frames past the end, filled with zeros.
        name: a name for the operations.
    """
    with get_default_graph().name_scope(name or "stft"):
        x = convert_to_tensor(signals, preferred_dtype=dtypes.float32)
        frames = frame(x, frame_length, frame_step, pad_end)
        if window_fn is not None:
            frames = F.Mul(frames, window_fn(frame_length, dtype=frames.dtype))
        return rfft(frames, _vector(_transform_length(frame_length, fft_length)))


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: WindowFunction | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """The signals [..., samples] whose `stft` is given, the frames weighted by a window and added.

    With ``window_fn=inverse_stft_window_fn(frame_step)`` it undoes `stft`, but for the ends. Other arguments
    are those of `stft`.
    """
    with get_default_graph().name_scope(name or "inverse_stft"):
        x = convert_to_tensor(stfts, preferred_dtype=dtypes.complex64)
        length = _known(frame_length, "frame_length")
        if x.dims is None:
            rest = frame_length, frame_step, fft_length, window_fn
            return over_last(x, 2, lambda rows: inverse_stft(rows, *rest))
        frames = irfft(x, _vector(_transform_length(frame_length, fft_length)))
        frames = _cut_or_padded(frames, length)
        if window_fn is not None:
            frames = F.Mul(frames, window_fn(frame_length, dtype=frames.dtype))
        return overlap_and_add(frames, frame_step)


def _transform_length(frame_length: Any, fft_length: Any) -> Any:
    if fft_length is not None:
        return fft_length
    length = _known(frame_length, "frame_length")
    return 2 ** math.ceil(math.log2(length)) if length > 0 else 1


def _vector(length: Any) -> Any:
    return F.Reshape(convert_to_tensor(length, dtypes.int32), [1])


def _known(value: Any, name: str) -> int:
    """A number that must be known before the step. ValueError otherwise."""
    known = static_value(value) if isinstance(value, Tensor) else value
    if known is None:
        raise ValueError(f"{name} must be known when the graph is built")
    return int(known)


def _cut_or_padded(x: Tensor, length: int) -> Tensor:
    """x with the last dimension cut or padded with zeros to a length."""
    assert x.dims is not None
    size = x.dims[-1]
    if size == length:
        return x
    if size is None or size < length:
        paddings = np.zeros([len(x.dims), 2], _INT)
        paddings[-1, 1] = length if size is None else length - size
        x = F.Pad(x, paddings)
    return F.StridedSlice(x, [0, 0], [0, length], [1, 1], ellipsis_mask=1)


# ---- modified cosine transform


def mdct(
    signals: Any,
    frame_length: Any,
    window_fn: WindowFunction | None = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The modified discrete cosine transform [..., frames, frame_length / 2] of signals [..., samples].

    Args:
        signals: float32 or float64, of known rank.
        frame_length: the samples of a frame, a multiple of 4. Each begins in the middle of the last.
        window_fn: ``f(frame_length, dtype=)``, the weights of a frame's samples; None for sqrt(1/2).
        pad_end: whether there are frames past the end, filled with zeros.
        norm: "ortho" or None.
        name: a name for the operations.
    """
    with get_default_graph().name_scope(name or "mdct"):
        x = convert_to_tensor(signals, preferred_dtype=dtypes.float32)
        length = _known_multiple(frame_length)
        frames = frame(x, length, length // 2, pad_end)
        frames = F.Mul(frames, _window(window_fn, length, x.dtype))
        a, b, c, d = (_quarter(frames, i, length) for i in range(4))
        folded = [F.Sub(F.Neg(_reversed(c)), d), F.Sub(a, _reversed(b))]
        return dct(F.ConcatV2(folded, _INT(-1)), type=4, norm=norm)


def inverse_mdct(
    mdcts: Any,
    window_fn: WindowFunction | None = vorbis_window,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """The signals [..., samples] whose `mdct` is given [..., frames, frame_length / 2]."""
    with get_default_graph().name_scope(name or "inverse_mdct"):
        x = convert_to_tensor(mdcts, preferred_dtype=dtypes.float32)
        half = x.dims[-1] if x.dims else None
        if half is None:
            raise ValueError("the last dimension of mdcts must be known")
        folded = idct(x, type=4, norm=norm)
        if norm is None:
            folded = F.Mul(folded, x.dtype.as_numpy_dtype(0.5 / half))
        first, second = (_part(folded, at, half // 2) for at in (0, half // 2))
        parts = [second, F.Neg(_reversed(second)), F.Neg(_reversed(first)), F.Neg(first)]
        frames = F.Mul(F.ConcatV2(parts, _INT(-1)), _window(window_fn, 2 * half, x.dtype))
        return overlap_and_add(frames, half)


def _known_multiple(frame_length: Any) -> int:
    length = _known(frame_length, "frame_length")
    if length % 4:
        raise ValueError(f"The frame length must be a multiple of 4, got {length}")
    return length


def _window(window_fn: WindowFunction | None, length: int, dtype: dtypes.DType) -> Any:
    if window_fn is None:
        return dtype.as_numpy_dtype(math.sqrt(0.5))
    return window_fn(length, dtype=dtype)


def _quarter(x: Tensor, i: int, length: int) -> Tensor:
    return _part(x, i * length // 4, length // 4)


def _part(x: Tensor, start: int, count: int) -> Tensor:
    return F.StridedSlice(x, [0, start], [0, start + count], [1, 1], ellipsis_mask=1)


def _reversed(x: Tensor) -> Tensor:
    return F.ReverseV2(x, [-1])
