"""Transforms, frames and windows: values and gradients are TensorFlow's."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import flowstone as tf
import signal_programs
from flowstone.framework.declarations.operation import F
from signal_programs import PROGRAMS

GOLDEN = dict(np.load(pathlib.Path(__file__).parents[2] / "golden" / "signals.npz"))


def close(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == expected.dtype
    scale = np.abs(expected).max(initial=1.0)
    tolerance = 1e-11 if expected.dtype in (np.float64, np.complex128) else 1e-5
    np.testing.assert_allclose(actual, expected, atol=tolerance * scale, rtol=tolerance)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_program(name: str) -> None:
    function, x = PROGRAMS[name]
    expected = GOLDEN[name]
    given = signal_programs.holder(tf, name, x)
    y = function(tf, given)
    assert y.shape.is_compatible_with(expected.shape)
    if not name.endswith("?"):
        assert y.shape.as_list() == list(expected.shape)
    with tf.Session() as session:
        close(session.run(y, {given: x}), expected)
        if f"{name}/gradient" in GOLDEN:
            flow = signal_programs.flow_of(name, expected.shape, expected.dtype)
            (gradient,) = tf.gradients(y, [given], [tf.constant(flow)])
            close(session.run(gradient, {given: x}), GOLDEN[f"{name}/gradient"])


def test_every_program_has_its_answer() -> None:
    assert {name.removesuffix("/gradient") for name in GOLDEN} == set(PROGRAMS)


# ---- where the oracle has no gradient, or fails


@pytest.mark.parametrize(("kind", "shape", "length"), [("", [2, 7], [5]), ("2d", [2, 4, 7], [3, 6])])
def test_gradient_of_a_part_of_the_input(kind: str, shape: list[int], length: list[int]) -> None:
    for name, dtype in ((f"rfft{kind}", np.float64), (f"irfft{kind}", np.complex128)):
        x = np.random.RandomState(0).standard_normal(shape).astype(dtype)
        if dtype is np.complex128:
            x = x + 1j * np.random.RandomState(1).standard_normal(shape)
        for sizes in (shape, [None] * len(shape)):
            given = tf.placeholder(x.dtype.name, sizes)
            y = getattr(tf.spectral, name)(given, length)
            total = tf.reduce_sum(tf.square(tf.abs(y))) + tf.reduce_sum(tf.real(y))
            (gradient,) = tf.gradients(total, [given])
            with tf.Session() as session:
                found = session.run(gradient, {given: x})
                assert found.shape == x.shape
                for index in [(0,) * x.ndim, (1,) * x.ndim, tuple(n - 1 for n in shape)]:
                    expected = 0
                    for step in (1e-6, 1e-6j) if dtype is np.complex128 else (1e-6,):
                        up, down = x.copy(), x.copy()
                        up[index] += step
                        down[index] -= step
                        change = session.run(total, {given: up}) - session.run(total, {given: down})
                        expected += change / 2e-6 * (step / 1e-6)
                    np.testing.assert_allclose(found[index], expected, rtol=1e-6, atol=1e-6)


def test_no_gradient_of_real_transforms_of_three_dimensions() -> None:
    x = tf.constant(np.ones([2, 2, 2], np.float32))
    with pytest.raises(LookupError):
        tf.gradients(tf.abs(tf.spectral.rfft3d(x)), x)


@pytest.mark.parametrize("op", ["FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D"])
def test_batch_forms(op: str) -> None:
    x = signal_programs.SPECTRUM
    with tf.Graph().as_default() as graph:
        graph.producer = 10
        batch = getattr(F, f"Batch{op}")(x)
        with tf.Session() as session:
            one, other = session.run([getattr(F, op)(x), batch])
        np.testing.assert_array_equal(one, other)
        with pytest.raises(LookupError):
            tf.gradients(tf.abs(batch), batch.op.inputs[0])


def run(tensor: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensor)


# ---- over any axes: the oracle has no kernel, NumPy has the function


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize(
    ("lengths", "axes"), [(None, None), ([3], None), ([2, 6], [0, 2]), (None, [1]), ([4, 3], [2, 0])]
)
def test_transforms_over_axes(lengths: list[int] | None, axes: list[int] | None, norm: str | None) -> None:
    real = np.random.RandomState(2).standard_normal([3, 4, 5])
    pair = real + 1j * np.random.RandomState(3).standard_normal([3, 4, 5])
    for name, x in (("fft", pair), ("ifft", pair), ("rfft", real), ("irfft", pair)):
        found = run(getattr(tf.signal, f"{name}nd")(tf.constant(x), lengths, axes, norm))
        chosen = [-1] if axes is None and lengths is not None else axes
        expected = getattr(np.fft, f"{name}n")(x, lengths, chosen, norm)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_names_of_tf_itself() -> None:
    real = np.random.RandomState(2).standard_normal([3, 4])
    pair = tf.constant(real + 1j)
    np.testing.assert_allclose(run(tf.fftnd(pair, [3, 4], [0, 1])), np.fft.fft2(real + 1j))
    np.testing.assert_allclose(run(tf.ifftnd(pair, [2], [0])), np.fft.ifft(real + 1j, 2, 0))
    narrow = run(tf.rfftnd(tf.constant(real), [4], [1]))
    assert narrow.dtype == np.complex64
    np.testing.assert_allclose(narrow, np.fft.rfft(real), rtol=1e-6)
    wide = run(tf.irfftnd(pair, [6], [1], tf.float64))
    np.testing.assert_allclose(wide, np.fft.irfft(real + 1j, 6))
    assert run(tf.irfftnd(pair, [6], [1])).dtype == np.float32


def test_axes_that_do_not_fit() -> None:
    x = np.zeros([2, 3], np.complex64)
    for keywords, message in [
        ({"axes": [2]}, "not different ones"),
        ({"axes": [0, 0]}, "not different ones"),
        ({"fft_length": [2], "axes": [0, 1]}, "the same length"),
        ({"norm": "other"}, "Invalid normalization"),
    ]:
        with pytest.raises(ValueError, match=message):
            tf.signal.fftnd(x, **keywords)


# ---- errors


def test_errors_of_cosine_transforms() -> None:
    x = np.zeros([2, 4], np.float32)
    for error, keywords in [
        (NotImplementedError, {"axis": 0}),
        (ValueError, {"type": 5}),
        (ValueError, {"type": 1, "norm": "ortho"}),
        (ValueError, {"norm": "other"}),
        (ValueError, {"n": 0}),
    ]:
        with pytest.raises(error):
            tf.signal.dct(x, **keywords)
    with pytest.raises(NotImplementedError, match="n should be None"):
        tf.signal.idct(x, n=3)


def test_errors_of_frames_and_windows() -> None:
    with pytest.raises(ValueError, match="axis 2"):
        tf.signal.frame(np.zeros([3, 4]), 2, 1, axis=2)
    with pytest.raises(ValueError, match="rank of the signal"):
        tf.signal.frame(tf.placeholder(tf.float32), 2, 1, axis=0)
    with pytest.raises(ValueError, match="at least 2"):
        tf.signal.overlap_and_add(np.zeros([3]), 1)
    with pytest.raises(ValueError, match="must be an integer"):
        tf.signal.overlap_and_add(np.zeros([3, 4]), 1.5)
    with pytest.raises(ValueError, match="floating point"):
        tf.signal.hann_window(4, dtype=tf.int32)
    with pytest.raises(ValueError, match="multiple of 4"):
        tf.signal.mdct(np.zeros([20], np.float32), 6)
    for keywords in (
        {"num_mel_bins": 0},
        {"sample_rate": 0.0},
        {"lower_edge_hertz": -1.0},
        {"lower_edge_hertz": 4000.0},
        {"upper_edge_hertz": 5000.0},
        {"dtype": tf.int32},
    ):
        with pytest.raises(ValueError):
            tf.signal.linear_to_mel_weight_matrix(**keywords)


def test_names_of_nodes() -> None:
    with tf.Graph().as_default():
        x = np.zeros([2, 4], np.float32)
        assert tf.spectral.rfft(x).op.name == "rfft"
        assert tf.spectral.irfft2d(x.astype(np.complex64), name="back").op.name == "back"
        assert tf.fft(x.astype(np.complex64)).op.name == "FFT"
        assert tf.spectral.dct(x).op.name.startswith("dct/")


def test_signals_of_unknown_rank() -> None:
    """Framed along their last axis, transformed and put together again."""
    values = np.random.RandomState(0).standard_normal([2, 3, 12]).astype(np.float32)

    def made(x: tf.Tensor) -> list[tf.Tensor]:
        frames = tf.signal.frame(x, 4, 2, pad_end=True, pad_value=1)
        transformed = tf.signal.stft(x, 4, 2)
        return [
            frames,
            tf.signal.overlap_and_add(frames, 2),
            transformed,
            tf.signal.inverse_stft(transformed, 4, 2),
        ]

    with tf.Graph().as_default(), tf.Session() as session:
        unknown = tf.placeholder(tf.float32)
        found, expected = session.run([made(unknown), made(tf.constant(values))], {unknown: values})
        for one, other in zip(found, expected):
            assert one.shape == other.shape and np.allclose(one, other)
        with pytest.raises(ValueError, match="rank"):
            tf.signal.frame(unknown, 4, 2, axis=0)


def test_a_step_of_nothing_fails_when_it_is_run() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        for made in (tf.signal.frame(tf.ones([5]), 2, 0), tf.signal.overlap_and_add(tf.ones([5, 2]), 0)):
            with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
                session.run(made)


@pytest.mark.parametrize("name", ["rfft2d", "irfft2d"])
@pytest.mark.parametrize("length", [[3, 4], [7, 6], [7, 10], [2, 34]])
def test_a_real_transform_is_one_call_where_sizes_and_lengths_are_known(name: str, length: list[int]) -> None:
    x = np.random.RandomState(0).standard_normal([2, 7, 20])
    x = x if name == "rfft2d" else x[..., : length[1] // 2 + 1] + 1j
    given, size = tf.placeholder(x.dtype, x.shape), tf.placeholder(tf.int32, [2])
    known, fed = (getattr(tf.spectral, name)(given, each) for each in (length, size))
    with tf.Session() as session:
        found = session.run(known, {given: x})
        np.testing.assert_allclose(found, session.run(fed, {given: x, size: length}), atol=1e-15, rtol=1e-12)
        expected = getattr(np.fft, name.replace("2d", "2"))(x, length)
        np.testing.assert_allclose(found, expected, atol=1e-12, rtol=1e-12)
        # The prime 17 has a way of its own.
        assert (f"fft_{name[:-2]}n(" in session.explain(known, {given: x})) == (length[1] != 34)


@pytest.mark.parametrize("known", [None, [None, None]])
def test_cepstral_coefficients_of_a_size_that_only_a_step_knows(known) -> None:
    x = np.random.RandomState(0).standard_normal((2, 5)).astype(np.float32)
    fed = tf.placeholder(tf.float32, known)
    fetches = [tf.signal.mfccs_from_log_mel_spectrograms(each) for each in (fed, tf.constant(x))]
    with tf.Session() as session:
        found, expected = session.run(fetches, {fed: x})
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
