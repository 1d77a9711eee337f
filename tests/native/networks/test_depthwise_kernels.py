"""Convolutions channel by channel in machine code against ATen's in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from flowstone.native.codegen import host
from flowstone.native.networks import depthwise_kernels
from flowstone.native.networks.depthwise_kernels import Channels

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())


@pytest.fixture(params=[4, 8, 16])
def lanes(request, monkeypatch) -> Iterator[int]:
    monkeypatch.setattr(host, "lanes", lambda: request.param)
    depthwise_kernels._library.cache_clear()
    yield request.param
    depthwise_kernels._library.cache_clear()


def drawn(rng: np.random.Generator) -> tuple[Channels, tuple[int, ...]]:
    """Some shapes, and what pads the images (left, right, above, below)."""
    images = tuple(int(n) for n in (*rng.integers(1, 4, 1), *rng.integers(1, 24, 2), *rng.integers(1, 40, 1)))
    pairs = []
    for low, high in ((1, 6), (1, 4), (1, 4)):
        pairs.append((int(rng.integers(low, high)), int(rng.integers(low, high))))
    taps, strides, dilations = pairs
    if rng.integers(2):
        dilations = (1, 1)
    else:
        strides = (1, 1)
    reach = [(k - 1) * d + 1 for k, d in zip(taps, dilations)]
    above, beside = (int(rng.integers(0, n)) for n in reach)
    below, right = (
        max(int(rng.integers(0, n)), n - length - before)
        for n, length, before in zip(reach, images[1:3], (above, beside))
    )
    ends = [(images[1], above + below), (images[2], beside + right)]
    counts = [(n + p - r) // s + 1 for (n, p), r, s in zip(ends, reach, strides)]
    channels = Channels(images, (images[0], *counts, images[3]), taps, strides, dilations, (above, beside))
    return channels, (beside, right, above, below)


def aten(channels: Channels, sides: tuple[int, ...], x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    padded = torch.nn.functional.pad(x.permute(0, 3, 1, 2), sides)
    filters = w.permute(2, 0, 1).unsqueeze(1)
    y = torch.conv2d(padded, filters, None, channels.strides, 0, channels.dilations, x.shape[3])
    return y.permute(0, 2, 3, 1)


def check(channels: Channels, sides: tuple[int, ...]) -> None:
    x, w = torch.randn(channels.images), torch.randn(*channels.taps, channels.images[3])
    dy = torch.randn(channels.results)
    exact = [x.double().requires_grad_(), w.double().requires_grad_()]
    y = aten(channels, sides, exact[0], exact[1])
    dx, dw = torch.autograd.grad(y, exact, dy.double())
    pairs = [
        (depthwise_kernels.convolve(x, w, channels), y),
        (depthwise_kernels.by_images(w, dy, channels), dx),
        (depthwise_kernels.by_filter(x, dy, channels), dw),
    ]
    for found, expected in ((a, b.detach()) for a, b in pairs):
        assert found.shape == expected.shape
        scale = max(float(expected.abs().max()), 1.0)
        assert float((found - expected).abs().max()) < 1e-5 * scale, channels


def test_random_shapes_agree_with_float64(lanes) -> None:
    torch.manual_seed(7)
    rng = np.random.default_rng(7)
    for _ in range(60):
        check(*drawn(rng))


def test_threads_share_the_rows(set_profile: Callable[..., None]) -> None:
    set_profile(depthwise_team=1)
    torch.manual_seed(8)
    rng = np.random.default_rng(8)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            for _ in range(10):
                check(*drawn(rng))
    finally:
        torch.set_num_threads(before)


def test_sums_over_many_positions_stay_exact() -> None:
    torch.manual_seed(9)
    channels = Channels((16, 56, 56, 24), (16, 56, 56, 24), (3, 3), (1, 1), (1, 1), (1, 1))
    x, dy = torch.randn(channels.images).relu(), torch.randn(channels.results).relu()
    w = torch.zeros(3, 3, 24, dtype=torch.float64, requires_grad=True)
    (exact,) = torch.autograd.grad(aten(channels, (1, 1, 1, 1), x.double(), w), [w], dy.double())
    error = (depthwise_kernels.by_filter(x, dy, channels) - exact).abs().max()
    assert float(error) < 1e-5 * float(exact.abs().max())


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_numbers_that_are_not_finite_stay_where_they_belong(value: float) -> None:
    torch.manual_seed(10)
    channels = Channels((2, 9, 8, 20), (2, 9, 8, 20), (3, 5), (1, 1), (1, 1), (1, 2))
    x, w, dy = torch.randn(channels.images), torch.randn(3, 5, 20), torch.randn(channels.results)
    x[1, 4, 5, 2] = dy[0, 3, 3, 1] = value
    exact = [x.clone().requires_grad_(), w.clone().requires_grad_()]
    y = aten(channels, (2, 2, 1, 1), exact[0], exact[1])
    expected = [y.detach(), *torch.autograd.grad(y, exact, dy)]
    found = [
        depthwise_kernels.convolve(x, w, channels),
        depthwise_kernels.by_images(w, dy, channels),
        depthwise_kernels.by_filter(x, dy, channels),
    ]
    for a, b in zip(found[:2], expected):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)
    # ATen multiplies zeros of explicit padding by infinities.
    assert not found[2].isfinite().all() and found[2][..., 3:].isfinite().all()
