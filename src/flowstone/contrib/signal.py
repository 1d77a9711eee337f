"""`tf.contrib.signal`: the functions of `tf.signal` that came from there."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.signal": "frame hamming_window hann_window inverse_stft inverse_stft_window_fn"
        " linear_to_mel_weight_matrix mfccs_from_log_mel_spectrograms overlap_and_add stft",
    },
)
