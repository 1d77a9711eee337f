"""Sound under the names that programs use: `tf.audio`, and those of the tutorial on speech commands."""

from __future__ import annotations

from importlib import import_module

import numpy as np

import flowstone as tf
from flowstone.contrib.module_paths import find_contrib_sources

RATE = 16000


def contrib_audio(name: str) -> object:
    """A name of the module that the tutorial imports."""
    for source in find_contrib_sources("tensorflow.contrib.framework.python.ops.audio_ops") or ():
        if hasattr(import_module(source), name):
            return getattr(import_module(source), name)
    raise AttributeError(name)


def test_features_of_speech_find_a_tone() -> None:
    tone = np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE).astype(np.float32)[:, None]
    file = tf.audio.encode_wav(0.5 * tone, RATE)
    decoded = contrib_audio("decode_wav")(file, desired_channels=1, desired_samples=RATE)
    spectrogram = contrib_audio("audio_spectrogram")(
        decoded.audio, window_size=480, stride=160, magnitude_squared=True
    )
    features = contrib_audio("mfcc")(spectrogram, decoded.sample_rate, dct_coefficient_count=40)
    assert features.shape.as_list() == [1, 98, 40]
    with tf.Session() as session:
        audio, rate, powers, found = session.run([decoded.audio, decoded.sample_rate, spectrogram, features])
    assert rate == RATE
    np.testing.assert_allclose(audio, 0.5 * tone, atol=1 / 32768)
    assert (powers[0].argmax(1) == 1000 / (RATE / 512)).all()
    assert np.ptp(found, axis=1).max() < 0.2  # all windows see the same


def test_what_is_written_is_read() -> None:
    samples = np.random.default_rng(1).integers(-(2**15), 2**15, (50, 3)) / np.float32(2**15)
    decoded = tf.audio.decode_wav(tf.audio.encode_wav(samples.astype(np.float32), 44100))
    assert decoded.audio.shape.as_list() == [None, None]
    with tf.Session() as session:
        audio, rate = session.run(list(decoded))
    assert rate == 44100
    np.testing.assert_array_equal(audio, samples)


def test_long_sound_is_transformed_in_parts() -> None:
    samples = np.random.default_rng(1).standard_normal((30_000, 2)).astype(np.float32)
    spectrogram = contrib_audio("audio_spectrogram")(samples, window_size=1000, stride=7)
    with tf.Session() as session:
        found = session.run(spectrogram)
    assert found.shape == (2, 4143, 513)
    fade = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(1000) / 1000)
    for frame in (0, 1047, 1048, 1049, 4142):
        expected = np.abs(np.fft.rfft(samples[frame * 7 : frame * 7 + 1000].T * fade, 1024))
        np.testing.assert_allclose(found[:, frame], expected, rtol=1e-4, atol=1e-4)
