"""The kernels of convolutions in tiles: exactness in a session, infinities, and when they pay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.machine.machine import using
from flowstone.framework.machine.machine_profiles import INTEL, ZEN5
from flowstone.lowering.convolutions import tiles
from flowstone.lowering.convolutions.tiled_convolutions import Convolution, pays
from flowstone.native.codegen import host

RNG = np.random.default_rng(29)


def needs_native(function: Any) -> Any:
    return pytest.mark.skipif(bool(host.reason()), reason=host.reason())(function)


@pytest.fixture
def everywhere(monkeypatch) -> None:
    """Uses tiles wherever they can be, compiled at plan time."""
    monkeypatch.setattr(flags, "NATIVE", 2)
    monkeypatch.setattr(tiles, "pays", lambda *_: True)


def run(x: Any, w: Any, dy: Any, padding: Any = "SAME", stride: int = 1) -> list[Any]:
    """Results, and gradients by the images and the filter."""
    with tf.Graph().as_default(), tf.Session() as s:
        images = tf.placeholder(tf.float32, x.shape)
        filters = tf.Variable(w)
        y = tf.nn.conv2d(images, filters, [1, stride, stride, 1], padding)
        fetches = [y, *tf.gradients(y, [images, filters], tf.constant(dy))]
        s.run(tf.global_variables_initializer())
        if flags.NATIVE:
            assert s.explain(fetches, {images: x}).count("_TiledConv2D") == 3
        return s.run(fetches, {images: x})


@needs_native
@pytest.mark.parametrize("taps", [2, 3, 4, 5])
def test_results_stay_within_a_hundred_thousandth(everywhere, taps) -> None:
    x = np.maximum(RNG.standard_normal((4, 14, 14, 48)), 0).astype("f")
    w = (RNG.standard_normal((taps, taps, 48, 64)) * 0.05).astype("f")
    dy = RNG.standard_normal((4, 14, 14, 64)).astype("f")
    images = torch.from_numpy(x).double().permute(0, 3, 1, 2).requires_grad_()
    filters = torch.from_numpy(w).double().permute(3, 2, 0, 1).requires_grad_()
    sides = ((taps - 1) // 2, taps // 2) * 2
    y = torch.conv2d(torch.nn.functional.pad(images, sides), filters)
    gradients = torch.autograd.grad(y, (images, filters), torch.from_numpy(dy).double().permute(0, 3, 1, 2))
    order = [y.permute(0, 2, 3, 1), gradients[0].permute(0, 2, 3, 1), gradients[1].permute(2, 3, 1, 0)]
    for found, expected in zip(run(x, w, dy), order):
        exact = expected.detach().numpy()
        assert np.abs(found - exact).max() < 1e-5 * np.abs(exact).max()


@needs_native
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("padding", ["SAME", [[0, 0], [0, 2], [2, 1], [0, 0]]])
def test_numbers_that_are_not_finite_stay_where_they_belong(everywhere, monkeypatch, value, padding) -> None:
    x, w = (RNG.standard_normal(dims).astype("f") for dims in ((2, 9, 10, 8), (3, 3, 8, 6)))
    sides = (9, 10) if padding == "SAME" else (9, 11)
    dy = RNG.standard_normal((2, *sides, 6)).astype("f")
    x[1, 4, 5, 2] = dy[0, 3, 3, 1] = value
    found = run(x, w, dy, padding)
    monkeypatch.setattr(flags, "NATIVE", 0)
    for a, b in zip(found, run(x, w, dy, padding)):
        np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b))
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@needs_native
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_zeros_of_folded_filters_meet_no_infinities(everywhere, monkeypatch, value) -> None:
    x, w = (RNG.standard_normal(dims).astype("f") for dims in ((2, 11, 12, 8), (5, 5, 8, 6)))
    dy = RNG.standard_normal((2, 6, 6, 6)).astype("f")
    x[1, 4, 5, 2] = dy[0, 3, 3, 1] = w[0, 4, 1, 1] = value
    found = run(x, w, dy, stride=2)
    monkeypatch.setattr(flags, "NATIVE", 0)
    for a, b in zip(found, run(x, w, dy, stride=2)):
        np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b))
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("images", "outputs", "taps", "expected"),
    [
        ((16, 27, 27, 64), 192, 5, (True, True)),  # AlexNet
        ((16, 13, 13, 384), 256, 3, (True, True)),
        ((8, 56, 56, 64), 192, 3, (True, True)),  # GoogLeNet
        ((64, 14, 14, 32), 64, 5, (True, True)),
        ((64, 28, 28, 1), 32, 5, (False, False)),  # of one channel
        ((1, 4, 4, 16), 16, 3, (False, False)),  # less than the calls
        ((16, 13, 13, 64), 64, 7, (False, False)),
        ((8, 56, 56, 64), 64, 2, (True, True)),
        ((8, 28, 28, 64), 64, 4, (True, True)),
    ],
)
def test_large_convolutions_pay(images, outputs, taps, expected) -> None:
    convolution = Convolution(images, (*images[:3], outputs), taps, taps // 2, taps // 2)
    with using(ZEN5):
        assert (pays(convolution, "results"), pays(convolution, "filter")) == expected


@pytest.mark.parametrize(
    ("images", "outputs", "taps", "products", "expected"),
    [
        ((16, 14, 14, 8), 16, 5, None, (False, False, False)),
        ((64, 12, 12, 20), 50, 5, None, (True, True, False)),
        ((16, 28, 28, 16), 16, 3, None, (True, True, False)),
        ((1, 64, 64, 64), 64, 3, None, (True, True, True)),
        ((8, 7, 7, 512), 512, 3, None, (False, False, True)),  # 38 MB of matrices
        ((2, 16, 16, 32), 32, 3, 294_912, (True, True, True)),  # instead of both others
        ((1, 4, 4, 16), 16, 3, 2_304, (False, False, False)),
    ],
)
def test_what_pays_beside_the_library_of_intel(images, outputs, taps, products, expected) -> None:
    convolution = Convolution(images, (*images[:3], outputs), taps, taps // 2, taps // 2)
    with using(INTEL):
        found = [pays(convolution, what, products) for what in ("results", "images", "filter")]
    assert tuple(found) == expected


def test_folded_convolutions_pay_for_large_filters() -> None:
    for taps, expected in ((3, False), (5, True)):
        convolution = Convolution((16, 32, 32, 64), (16, 16, 16, 128), taps, taps // 2 - 1, taps // 2 - 1, 2)
        assert pays(convolution, "results") == pays(convolution, "images") == expected


def test_folding_pays_where_moving_is_cheap() -> None:
    convolution = Convolution((16, 16, 16, 32), (16, 8, 8, 64), 5, 1, 2, 2)
    for profile, expected in ((ZEN5, True), (INTEL, False)):
        with using(profile):
            assert pays(convolution, "results") == expected
