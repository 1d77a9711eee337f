"""Depthwise convolutions in machine code: what is not finite, and when they pay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.convolutions import depthwise
from flowstone.lowering.convolutions.depthwise_convolutions import pays
from flowstone.native.codegen import host
from flowstone.native.networks.depthwise_kernels import Channels

RNG = np.random.default_rng(41)
needs_native = pytest.mark.skipif(bool(host.reason()), reason=host.reason())


def run(x: Any, w: Any, dy: Any, strides: Any, padding: Any) -> list[np.ndarray]:
    """The results and both gradients."""
    with tf.Graph().as_default(), tf.Session() as s:
        images, filters = tf.placeholder(tf.float32, x.shape), tf.placeholder(tf.float32, w.shape)
        y = tf.nn.depthwise_conv2d(images, filters, strides, padding)
        fetches, feed = [y, *tf.gradients(y, [images, filters], tf.constant(dy))], {images: x, filters: w}
        assert s.explain(fetches, feed).count("_DepthwiseConv2D") == (3 if flags.NATIVE else 0)
        return s.run(fetches, feed)


@needs_native
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
@pytest.mark.parametrize("where", ["images", "filter", "gradient"])
@pytest.mark.parametrize("stride", [1, 2])
def test_numbers_that_are_not_finite_stay_where_they_belong(monkeypatch, value, where, stride) -> None:
    x, w = (RNG.standard_normal(dims).astype("f") for dims in ((2, 8, 10, 12), (3, 5, 12, 1)))
    dy = RNG.standard_normal((2, 8 // stride, 10 // stride, 12)).astype("f")
    {"images": x[1, 4, 5], "filter": w[0, 4, :, 0], "gradient": dy[0, 0, 3]}[where][2] = value
    monkeypatch.setattr(depthwise, "pays", lambda channels, what: True)
    monkeypatch.setattr(flags, "NATIVE", 2)
    found = run(x, w, dy, [1, stride, stride, 1], "SAME")
    monkeypatch.setattr(flags, "NATIVE", 0)
    for a, b in zip(found, run(x, w, dy, [1, stride, stride, 1], "SAME")):
        np.testing.assert_array_equal(np.isfinite(a), np.isfinite(b))
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("images", "taps", "stride", "dilation", "before", "expected"),
    [
        ((8, 56, 56, 64), 3, 1, 1, 1, (False, False, False)),  # oneDNN's are fast
        ((8, 56, 56, 64), 3, 2, 1, 0, (True, True, True)),  # more padding behind
        ((16, 28, 28, 96), 5, 1, 1, 2, (False, False, True)),  # the filter's sums
        ((8, 28, 28, 64), 3, 1, 2, 2, (False, True, True)),
        ((1, 14, 14, 64), 3, 1, 1, 1, (True, True, True)),  # small
        ((1, 14, 14, 3), 3, 1, 1, 1, (False, False, False)),  # few channels
    ],
)
def test_where_atens_are_slow_they_pay(images, taps, stride, dilation, before, expected) -> None:
    results = (images[0], images[1] // stride, images[2] // stride, images[3])
    pairs = [(n, n) for n in (taps, stride, dilation, before)]
    channels = Channels(images, results, *pairs)
    assert tuple(pays(channels, what) for what in ("results", "images", "filter")) == expected
