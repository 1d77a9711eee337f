"""`flowstone.signal`: transforms of signals, their frames and windows."""

from flowstone.ops.signals.cosine_transforms import dct, idct
from flowstone.ops.signals.fourier_transforms import fft, fft2d, fft3d, ifft, ifft2d, ifft3d
from flowstone.ops.signals.frames import frame, overlap_and_add
from flowstone.ops.signals.mel_scale import linear_to_mel_weight_matrix, mfccs_from_log_mel_spectrograms
from flowstone.ops.signals.real_transforms import (
    fftnd,
    fftshift,
    ifftnd,
    ifftshift,
    irfft,
    irfft2d,
    irfft3d,
    irfftnd,
    rfft,
    rfft2d,
    rfft3d,
    rfftnd,
)
from flowstone.ops.signals.short_time_transforms import inverse_mdct, inverse_stft, mdct, stft
from flowstone.ops.signals.windows import (
    hamming_window,
    hann_window,
    inverse_stft_window_fn,
    kaiser_bessel_derived_window,
    kaiser_window,
    vorbis_window,
)
