"""Calls of signal functions that the oracle and Flowstone both make: names, functions of `tf` and inputs.

The inputs come as placeholders, of the full shape and, where the name ends in "?", of one with unknown sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_random = np.random.RandomState(5)
SIGNAL = np.round(_random.standard_normal([2, 23]), 3).astype(np.float32)
FRAMES = np.round(_random.standard_normal([2, 5, 8]), 3).astype(np.float32)
WIDE = np.round(_random.standard_normal([3, 10]), 3)
SPECTRUM = np.round(_random.standard_normal([2, 4, 5]) + 1j * _random.standard_normal([2, 4, 5]), 3).astype(
    np.complex64
)
CUBE = np.round(_random.standard_normal([2, 3, 4]), 3).astype(np.float32)

Program = tuple[Callable[[Any, Any], Any], np.ndarray]

PROGRAMS: dict[str, Program] = {}


def add(name: str, function: Callable[[Any, Any], Any], x: np.ndarray) -> None:
    PROGRAMS[name] = function, x


for _type in (1, 2, 3, 4):
    for _norm in (None, "ortho"):
        if _type == 1 and _norm:
            continue
        add(f"dct{_type}{_norm}", lambda tf, x, t=_type, n=_norm: tf.spectral.dct(x, t, norm=n), SIGNAL)
        add(f"dct{_type}{_norm} wide", lambda tf, x, t=_type, n=_norm: tf.spectral.dct(x, t, norm=n), WIDE)
        add(f"dct{_type}{_norm}?", lambda tf, x, t=_type, n=_norm: tf.spectral.dct(x, t, norm=n), WIDE)
        add(f"idct{_type}{_norm}", lambda tf, x, t=_type, n=_norm: tf.spectral.idct(x, t, norm=n), SIGNAL)
    for _n in (5, 30):
        add(f"dct{_type} n={_n}", lambda tf, x, t=_type, n=_n: tf.signal.dct(x, t, n=n), SIGNAL)

for _name, _x in (("", WIDE), ("2d", CUBE), ("3d", CUBE)):
    _rank = int(_name[:1] or 1)
    for _mark in ("", "?"):
        add(f"rfft{_name}{_mark}", lambda tf, x, n=_name: getattr(tf.spectral, f"rfft{n}")(x), _x)
        add(
            f"rfft{_name} longer{_mark}",
            lambda tf, x, n=_name, r=_rank: getattr(tf.spectral, f"rfft{n}")(x, [12] * r),
            _x,
        )
        add(f"irfft{_name}{_mark}", lambda tf, x, n=_name: getattr(tf.spectral, f"irfft{n}")(x), SPECTRUM)
        add(
            f"irfft{_name} longer{_mark}",
            lambda tf, x, n=_name, r=_rank: getattr(tf.spectral, f"irfft{n}")(x, [13] * r),
            SPECTRUM,
        )
        add(
            f"irfft{_name} shorter{_mark}",
            lambda tf, x, n=_name, r=_rank: getattr(tf.spectral, f"irfft{n}")(x, [2] * r),
            SPECTRUM,
        )

for _mark in ("", "?"):
    add(f"frame{_mark}", lambda tf, x: tf.signal.frame(x, 6, 4), SIGNAL)
    add(f"frame padded{_mark}", lambda tf, x: tf.signal.frame(x, 6, 4, pad_end=True, pad_value=9), SIGNAL)
    add(f"frame of an axis{_mark}", lambda tf, x: tf.signal.frame(x, 3, 1, axis=1), FRAMES)
    add(f"frame too long{_mark}", lambda tf, x: tf.signal.frame(x, 30, 4), SIGNAL)
    add(f"frame with gaps{_mark}", lambda tf, x: tf.signal.frame(x, 3, 7, pad_end=True), SIGNAL)
    for _step in (1, 3, 4, 8, 9):
        add(f"overlap_and_add {_step}{_mark}", lambda tf, x, s=_step: tf.signal.overlap_and_add(x, s), FRAMES)
    add(f"stft{_mark}", lambda tf, x: tf.signal.stft(x, 7, 3), SIGNAL)
    add(f"stft padded{_mark}", lambda tf, x: tf.signal.stft(x, 7, 3, 16, None, True), SIGNAL)
add("inverse_stft", lambda tf, x: tf.signal.inverse_stft(x, 8, 3), SPECTRUM)
add(
    "inverse_stft shorter",
    lambda tf, x: tf.signal.inverse_stft(x, 5, 3, 8, tf.signal.hamming_window),
    SPECTRUM,
)
add("inverse_stft longer", lambda tf, x: tf.signal.inverse_stft(x, 11, 4, 8), SPECTRUM)
add(
    "inverse_stft undone",
    lambda tf, x: tf.signal.inverse_stft(x, 8, 3, window_fn=tf.signal.inverse_stft_window_fn(3)),
    SPECTRUM,
)
for _norm in (None, "ortho"):
    add(f"mdct {_norm}", lambda tf, x, n=_norm: tf.signal.mdct(x, 8, norm=n), SIGNAL)
    add(f"mdct padded {_norm}", lambda tf, x, n=_norm: tf.signal.mdct(x, 8, None, True, norm=n), SIGNAL)
    add(f"inverse_mdct {_norm}", lambda tf, x, n=_norm: tf.signal.inverse_mdct(x, norm=n), FRAMES)
    add(f"inverse_mdct bare {_norm}", lambda tf, x, n=_norm: tf.signal.inverse_mdct(x, None, n), FRAMES)

for _size in (1, 4, 7):
    for _periodic in (True, False):
        for _window in ("hann_window", "hamming_window"):
            add(
                f"{_window} {_size} {_periodic}",
                lambda tf, x, w=_window, n=_size, p=_periodic: getattr(tf.signal, w)(n, p),
                WIDE,
            )
    add(f"kaiser {_size}", lambda tf, x, n=_size: tf.signal.kaiser_window(n, 5.0), WIDE)
    add(f"vorbis {_size}", lambda tf, x, n=_size: tf.signal.vorbis_window(n), WIDE)
add("kaiser-bessel", lambda tf, x: tf.signal.kaiser_bessel_derived_window(8), WIDE)
add("hann wide", lambda tf, x: tf.signal.hann_window(6, dtype=tf.float64), WIDE)
add("hann of a size?", lambda tf, x: tf.signal.hann_window(tf.shape(x)[-1]), WIDE)
add("hamming of an odd size?", lambda tf, x: tf.signal.hamming_window(tf.shape(x)[-1], False), SIGNAL)
add("mel", lambda tf, x: tf.signal.linear_to_mel_weight_matrix(), WIDE)
add(
    "mel of others",
    lambda tf, x: tf.signal.linear_to_mel_weight_matrix(4, 9, 16000.0, 20.0, 7600.0, tf.float64),
    WIDE,
)
add("mfccs", lambda tf, x: tf.signal.mfccs_from_log_mel_spectrograms(x), FRAMES)
for _axes in (None, 1, [0, 2], [-1]):
    add(f"fftshift {_axes}", lambda tf, x, a=_axes: tf.signal.fftshift(x, a), FRAMES)
    add(f"ifftshift {_axes}?", lambda tf, x, a=_axes: tf.signal.ifftshift(x, a), FRAMES)
add("fft", lambda tf, x: tf.fft(x), SPECTRUM)
add("ifft2d", lambda tf, x: tf.ifft2d(x), SPECTRUM)
add("fft3d", lambda tf, x: tf.fft3d(x), SPECTRUM)


def holder(tf: Any, name: str, x: np.ndarray) -> Any:
    """The placeholder that a program of this name takes."""
    return tf.placeholder(x.dtype.name, [None] * x.ndim if name.endswith("?") else x.shape)


def flow_of(name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """The gradient of a program's result."""
    random = np.random.RandomState(len(name))
    values = random.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)
