"""Quantised images normalised and resized: within a step of what floats give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

IMAGES = np.random.RandomState(1).randint(0, 256, (2, 3, 4, 2)).astype(np.uint8)


def eight(values: Any) -> tf.Tensor:
    """A tensor of quint8."""
    return tf.constant(np.array(values, np.uint8), tf.quint8)


def numbers(integers: Any, low: float, high: float) -> np.ndarray:
    """What integers of 8 bits stand for."""
    return np.asarray(integers, np.float64) * (high - low) / 255 + low


@pytest.mark.parametrize("given", [True, False])
def test_each_image_and_channel_is_normalised(given: bool) -> None:
    form = {"output_range_given": True, "given_y_min": -1.0, "given_y_max": 2.0} if given else {}
    with tf.Session() as session:
        found = session.run(F.QuantizedInstanceNorm(eight(IMAGES), -1.25, 2.5, **form))
    x = numbers(IMAGES, -1.25, 2.5)
    expected = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    low, high = (-1.0, 2.0) if given else (expected.min(), expected.max())
    np.testing.assert_allclose(found[1:], [low, high], rtol=1e-5)
    step = (high - low) / 255
    np.testing.assert_allclose(numbers(found.y, low, high), expected.clip(low, high), atol=step)


def test_a_range_has_a_least_width() -> None:
    with tf.Session() as session:
        found = session.run(
            F.QuantizedInstanceNorm(eight(np.full((1, 2, 2, 1), 7)), 0.0, 1.0, min_separation=0.5)
        )
    assert found.y_max - found.y_min == pytest.approx(0.5)


@pytest.mark.parametrize("form", [(2.0, 1.0), (1.0, 1.0)])
def test_ranges_the_wrong_way_round_are_refused(form: tuple[float, float]) -> None:
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="must be less than"):
        session.run(F.QuantizedInstanceNorm(eight(IMAGES), *form))


@pytest.mark.parametrize("scales", [True, False])
def test_given_moments_normalise(scales: bool) -> None:
    m, v, beta, gamma = [10, 20], [200, 150], [30, 240], [90, 200]
    ends = ((-1.0, 2.0), (-1.0, 2.0), (0.0, 2.0), (-1.0, 2.0), (-2.0, 4.0))  # zero is an integer
    inputs = [
        part
        for values, (low, high) in zip((IMAGES, m, v, beta, gamma), ends, strict=True)
        for part in (eight(values), low, high)
    ]
    form = {"variance_epsilon": 0.001, "scale_after_normalization": scales, "out_type": tf.qint32}
    with tf.Session() as session:
        found = session.run(F.QuantizedBatchNormWithGlobalNormalization(*inputs, **form))
    t, m, v, beta, gamma = (
        numbers(each, *pair) for each, pair in zip((IMAGES, m, v, beta, gamma), ends, strict=True)
    )
    expected = (t - m) / np.sqrt(v + 0.001) * (gamma if scales else 1) + beta
    assert (found.result_min, found.result_max) == (-(2.0**20), 2.0**20)
    step = 2.0**21 / 2**32
    np.testing.assert_allclose(found.result.astype(np.float64) * step, expected, atol=2 * step)


@pytest.mark.parametrize("mode", ["first", "corners", "middles"])
@pytest.mark.parametrize("dtype", ["quint8", "qint32", "float32"])
def test_images_are_resized(dtype: str, mode: str) -> None:
    form = {"align_corners": mode == "corners", "half_pixel_centers": mode == "middles"}
    with tf.Graph().as_default(), tf.Session() as session:
        plain = IMAGES.astype({"quint8": np.uint8, "qint32": np.int32}.get(dtype, np.float32))
        images = tf.constant(plain, dtype)
        found, expected = session.run(
            [F.QuantizedResizeBilinear(images, [5, 6], -1.0, 2.0, **form),
             F.ResizeBilinear(IMAGES.astype(np.float32), [5, 6], **form)]
        )  # fmt: skip
    assert tuple(found[1:]) == (-1.0, 2.0)
    tolerance = 1e-4 if dtype == "float32" else 0.501
    np.testing.assert_allclose(found.resized_images.astype(np.float64), expected, atol=tolerance)
