"""Convolutions of one small image or volume: against sums over windows, and which are asked of oneDNN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.ops.networks.test_convolution_arrangement import expected, values

import flowstone as tf
from flowstone.ops.networks import convolution


@pytest.fixture
def asked(monkeypatch: Any, set_profile: Any) -> list[bool]:
    """Whether oneDNN is asked directly, for each kernel, where machine code takes no small images."""
    set_profile(direct_products=0)
    found: list[bool] = []
    inner = convolution.single_images.suits
    monkeypatch.setattr(convolution.single_images, "suits", lambda *a: found.append(inner(*a)) or found[-1])
    return found


def convolved(x: Any, w: Any, strides: tuple[int, ...], direction: Any) -> tuple[list[Any], list[Any]]:
    """Result and gradients, found and expected, of images or volumes."""
    convolve = {2: tf.nn.conv2d, 3: tf.nn.conv3d}[len(strides)]
    with tf.Graph().as_default(), tf.Session() as s:
        image, kernel = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
        y = convolve(image, kernel, [1, *strides, 1], "SAME")
        found = s.run([y, *tf.gradients(y, [image, kernel], direction.astype("f"))], {image: x, kernel: w})
    return found, list(expected(x, w, strides, "SAME", direction))


@pytest.mark.needs_onednn
@pytest.mark.parametrize("strides", [(1, 1), (2, 2), (2, 1)])
@pytest.mark.parametrize("side", [16, 17])
def test_one_image(strides, side, asked) -> None:
    x, w = values(1, side, side, 32), values(3, 3, 32, 64)
    direction = values(1, *[-(-side // n) for n in strides], 64)
    for a, b in zip(*convolved(x, w, strides, direction)):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    assert asked == [True, True]


@pytest.mark.needs_onednn
@pytest.mark.parametrize("strides", [(1, 1, 1), (2, 1, 2)])
@pytest.mark.parametrize("channels", [1, 8])
@pytest.mark.parametrize("depth", [10, 11, 12, 13])
def test_one_volume(strides, channels, depth, asked) -> None:
    x, w = values(1, depth, 12, 13, channels), values(3, 3, 3, channels, 32)
    direction = values(1, *[-(-n // s) for n, s in zip((depth, 12, 13), strides)], 32)
    found, wanted = convolved(x, w, strides, direction)
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    assert len(asked) == 3 and (any(asked) or (channels == 1 and strides[0] > 1))
    assert found[0].flags.c_contiguous


@pytest.mark.by_aten
@pytest.mark.parametrize("dims", [(2, 14, 14, 32), (1, 40, 40, 32), (1, 4, 4, 4)])
def test_others_are_left_to_aten(dims, asked) -> None:
    w, direction = values(3, 3, dims[3], 32), values(*dims[:3], 32)
    for a, b in zip(*convolved(values(*dims), w, (1, 1), direction)):
        assert a.shape == b.shape
    assert asked == [False, False]


@pytest.mark.needs_onednn
def test_with_bias_and_activation(asked) -> None:
    x, w, b = values(1, 14, 14, 32), values(3, 3, 32, 64), values(64)
    with tf.Graph().as_default(), tf.Session() as s:
        image = tf.placeholder(tf.float32, x.shape)
        y = tf.nn.conv2d(image, tf.constant(w.astype("f")), [1, 1, 1, 1], "SAME")
        y = tf.nn.relu(tf.nn.bias_add(y, tf.constant(b.astype("f"))))
        found = s.run(y, {image: x})
    wanted = np.maximum(expected(x, w, (1, 1), "SAME", np.zeros((1, 14, 14, 64)))[0] + b, 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)
    assert asked == [True]
