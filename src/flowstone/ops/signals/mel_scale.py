"""The mel scale, on which equal steps sound equal: weights of a spectrum, and cepstral coefficients.

A frequency f is 1127 log(1 + f / 700) mels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import as_dtype
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.signals.cosine_transforms import dct

_BREAK_HERTZ = 700.0
_FACTOR = 1127.0


def _mels(hertz: Any) -> Any:
    return _FACTOR * np.log1p(np.asarray(hertz, np.float64) / _BREAK_HERTZ)


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: int = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """The matrix [num_spectrogram_bins, num_mel_bins] that a spectrum is multiplied with for one in mels.

    A column is a triangle on the mel scale, from the middle of the band before to that of the band after; the
    bands divide the interval from `lower_edge_hertz` to `upper_edge_hertz` evenly. The first bin, of constant
    signals, has no weight. ValueError for edges or counts that make no bands.
    """
    rate = static_value(sample_rate) if isinstance(sample_rate, Tensor) else sample_rate
    if rate is None:
        raise ValueError("sample_rate must be known when the graph is built")
    _check(num_mel_bins, float(rate), lower_edge_hertz, upper_edge_hertz, dtype)
    with get_default_graph().name_scope(name or "linear_to_mel_weight_matrix"):
        bins = _mels(np.linspace(0.0, float(rate) / 2, num_spectrogram_bins)[1:])[:, None]
        edges = np.linspace(_mels(lower_edge_hertz), _mels(upper_edge_hertz), num_mel_bins + 2)
        lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
        rising, falling = (bins - lower) / (center - lower), (upper - bins) / (upper - center)
        weights = np.maximum(0.0, np.minimum(rising, falling))
        weights = np.concatenate([np.zeros([1, num_mel_bins]), weights])
        return convert_to_tensor(weights.astype(as_dtype(dtype).as_numpy_dtype))


def _check(num_mel_bins: int, sample_rate: float, lower: float, upper: float, dtype: Any) -> None:
    if num_mel_bins <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {num_mel_bins}")
    if lower < 0.0:
        raise ValueError(f"lower_edge_hertz must be non-negative. Got: {lower}")
    if lower >= upper:
        raise ValueError(f"lower_edge_hertz {lower} >= upper_edge_hertz {upper}")
    if sample_rate <= 0.0:
        raise ValueError(f"sample_rate must be positive. Got: {sample_rate}")
    if upper > sample_rate / 2:
        raise ValueError(
            f"upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). Got {upper} "
            f"for sample_rate: {sample_rate}"
        )
    if not as_dtype(dtype).is_floating:
        raise ValueError(f"dtype must be a floating point type. Got: {dtype}")


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """The cepstral coefficients [..., mel bins] of logarithms of spectra in mels: their cosine transform.

    ValueError if there are no bins.
    """
    with get_default_graph().name_scope(name or "mfccs_from_log_mel_spectrograms"):
        x = convert_to_tensor(log_mel_spectrograms)
        count = x.dims[-1] if x.dims else None
        if count == 0:
            raise ValueError(f"num_mel_bins must be positive. Got: {x.shape}")
        if count is None:
            factor = F.Rsqrt(F.Cast(shape(x)[-1], DstT=x.dtype) * 2.0)
        else:
            factor = x.dtype.as_numpy_dtype(1 / np.sqrt(2 * count))
        return F.Mul(dct(x, type=2), factor)
