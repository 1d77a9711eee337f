"""Spectra of sound: how strong each frequency is over time, and the coefficients that describe speech.

A spectrogram has the Fourier transforms of windows that overlap, each faded in and out (von Hann). MFCC are
the mel frequency cepstral coefficients: sums of a spectrum over overlapping triangles, which are equally wide
on the scale of pitches that people hear as equally far apart (mel), the logarithms of these sums, and of
those a cosine transform. S. Davis, P. Mermelstein, "Comparison of parametric representations for monosyllabic
word recognition", 1980.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import op
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.networks.windows import require_rank

Array = np.ndarray[Any, Any]
_AT_ONCE = 2**21  # windowed samples that are transformed together
_SILENCE = 1e-12  # the least sum that has a logarithm

# ---- spectrograms

audio_spectrogram_op = op(
    "AudioSpectrogram",
    "input: float -> spectrogram: float",
    "window_size: int ; stride: int ; magnitude_squared: bool = false",
    cost=50,
)
audio_spectrogram_op.no_gradient()


def _transformed_size(window: int) -> int:
    """The least power of two that is not less than the window."""
    return 1 << (window - 1).bit_length()


@audio_spectrogram_op.infer
def _(node: Node) -> Dims:
    samples, channels = require_rank(node.dims(0), 2)
    window, stride = node.attributes["window_size"], node.attributes["stride"]
    if window <= 1:
        raise ValueError(f"window size must be > 1, got {window}")
    if stride <= 0:
        raise ValueError(f"stride must be strictly positive, got {stride}")
    frames = None if samples is None else max((samples - window) // stride + 1, 0)
    return (channels, frames, _transformed_size(window) // 2 + 1)


@audio_spectrogram_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    window, stride = node.attributes["window_size"], node.attributes["stride"]
    squared, size = node.attributes["magnitude_squared"], _transformed_size(window)
    fade = torch.hann_window(window, periodic=True, dtype=torch.float64, device=env.device)

    def run(samples: torch.Tensor) -> torch.Tensor:
        if samples.dim() != 2:
            raise invalid(f"input must be 2-dimensional: {list(samples.shape)}")
        channels, frames = samples.shape[1], max((samples.shape[0] - window) // stride + 1, 0)
        result = torch.empty((channels, frames, size // 2 + 1), device=samples.device)
        if not result.numel():
            return result
        windows = samples.t().contiguous().unfold(1, window, stride)
        step = max(_AT_ONCE // (window * channels), 1)
        for start in range(0, frames, step):
            part = torch.fft.rfft(windows[:, start : start + step].double() * fade, n=size)
            power = torch.view_as_real(part).square_().sum(-1)
            result[:, start : start + step] = power if squared else power.sqrt_()
        return result

    return run


# ---- cepstral coefficients


class _Shape(NamedTuple):
    """What a spectrum is summed to: the limits in hertz, triangles and coefficients."""

    highest: float
    lowest: float
    triangles: int
    coefficients: int


def _mel(hertz: Any) -> Any:
    return 1127 * np.log1p(np.asarray(hertz, np.float64) / 700)


@functools.lru_cache(16)
def _triangles(bins: int, rate: int, shape: _Shape) -> Array | None:
    """The share of each frequency in each triangle, [bins, triangles]; None if bins end too early."""
    width = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + shape.lowest / width), int(shape.highest / width)
    if last >= bins:
        return None
    low, high = _mel(shape.lowest), _mel(shape.highest)
    centres = low + (high - low) / (shape.triangles + 1) * np.arange(1, shape.triangles + 2)
    pitch = _mel(np.arange(bins) * width)
    above = np.searchsorted(centres[: shape.triangles], pitch)  # the triangle that rises at each frequency
    starts = np.where(above > 0, centres[above - 1], low)
    fall = (centres[above] - pitch) / (centres[above] - starts)
    shares = np.zeros((bins, shape.triangles + 2))
    at = np.arange(bins)
    shares[at, above] = fall  # column 0 and the last stand for what lies beyond the triangles
    shares[at, above + 1] = 1 - fall
    shares[(at < first) | (at > last)] = 0
    return shares[:, 1:-1]


def _cosines(shape: _Shape) -> Array:
    """The cosine transform, [triangles, coefficients]."""
    places = np.arange(shape.triangles) + 0.5
    angles = np.pi / shape.triangles * np.outer(places, np.arange(shape.coefficients))
    return np.asarray(np.sqrt(2 / shape.triangles) * np.cos(angles))


def _check(bins: int, rate: int, shape: _Shape) -> None:
    fits = bins >= 2 and rate > 0 and shape.triangles >= 1 and 1 <= shape.coefficients <= shape.triangles
    if not (fits and 0 <= shape.lowest < shape.highest):
        raise invalid(
            f"Mfcc initialization failed for channel count {bins}, sample rate {rate} and "
            f"filterbank_channel_count {shape.triangles}, dct_coefficient_count {shape.coefficients}, "
            f"limits {shape.lowest} and {shape.highest}"
        )


mfcc_op = op(
    "Mfcc",
    "spectrogram: float, sample_rate: int32 -> output: float",
    "upper_frequency_limit: float = 4000 ; lower_frequency_limit: float = 20 ; "
    "filterbank_channel_count: int = 40 ; dct_coefficient_count: int = 13",
    host=["sample_rate"],
    capturable=False,
    cost=100,
)
mfcc_op.no_gradient()


@mfcc_op.infer
def _(node: Node) -> Dims:
    channels, frames, _ = require_rank(node.dims(0), 3)
    require_rank(node.dims(1), 0)
    return (channels, frames, node.attributes["dct_coefficient_count"])


@mfcc_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    a = node.attributes
    shape = _Shape(
        a["upper_frequency_limit"],
        a["lower_frequency_limit"],
        a["filterbank_channel_count"],
        a["dct_coefficient_count"],
    )

    def run(spectrogram: torch.Tensor, rate: torch.Tensor) -> torch.Tensor:
        if spectrogram.dim() != 3:
            raise invalid(f"spectrogram must be 3-dimensional: {list(spectrogram.shape)}")
        if rate.dim():
            raise invalid(f"Input sample_rate should be a scalar tensor, got {list(rate.shape)}")
        bins, frequency = spectrogram.shape[2], int(rate)
        _check(bins, frequency, shape)
        shares = _triangles(bins, frequency, shape)
        if shares is None:
            return spectrogram.new_zeros((*spectrogram.shape[:2], shape.coefficients))
        cosines = torch.from_numpy(_cosines(shape)).to(spectrogram.device)
        heard = np.flatnonzero(shares.any(1))  # the other frequencies need no square root
        part = slice(heard[0], heard[-1] + 1) if len(heard) else slice(0, 0)
        roots = spectrogram[:, :, part].double().sqrt_()
        sums = roots @ torch.from_numpy(shares[part]).to(spectrogram.device)
        sums = torch.where(sums < _SILENCE, torch.full_like(sums, _SILENCE), sums)
        return (sums.log_() @ cosines).float()

    return run


def audio_spectrogram(
    input: Any, window_size: int, stride: int, magnitude_squared: bool = False, name: str | None = None
) -> Tensor:
    """The spectrogram of sound, float32 [samples, channels], as float32 [channels, windows, frequencies].

    A window of `window_size` samples begins every `stride` samples; the transform has the next power of two
    as its size, and frequencies are half of that and one. `magnitude_squared`: powers, as `mfcc` takes them,
    in place of magnitudes. ValueError if the window is not longer than one, or `stride` not positive.
    """
    return audio_spectrogram_op(
        input, window_size=window_size, stride=stride, magnitude_squared=magnitude_squared, name=name
    )


def mfcc(
    spectrogram: Any,
    sample_rate: Any,
    upper_frequency_limit: float = 4000,
    lower_frequency_limit: float = 20,
    filterbank_channel_count: int = 40,
    dct_coefficient_count: int = 13,
    name: str | None = None,
) -> Tensor:
    """Mel frequency cepstral coefficients of a spectrogram of powers, [channels, windows, frequencies].

    The result is float32 [channels, windows, dct_coefficient_count]. `sample_rate` in samples a second, the
    limits in hertz. A spectrogram that ends below the upper limit gives zeros. InvalidArgumentError for
    limits and counts that cannot be.
    """
    return mfcc_op(
        spectrogram,
        sample_rate,
        upper_frequency_limit=upper_frequency_limit,
        lower_frequency_limit=lower_frequency_limit,
        filterbank_channel_count=filterbank_channel_count,
        dct_coefficient_count=dct_coefficient_count,
        name=name,
    )
