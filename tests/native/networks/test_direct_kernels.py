"""Convolutions of small images, and their gradients, in machine code against ATen's in float64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_profiles import generic
from flowstone.framework.machine.network_code import Windows
from flowstone.native.codegen import host
from flowstone.native.networks import direct_kernels

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())

KINDS = ("results", "images", "filter")


@pytest.fixture(params=[4, 8, 16])
def lanes(request, monkeypatch) -> Iterator[int]:
    monkeypatch.setattr(host, "lanes", lambda: request.param)
    for made in (direct_kernels._library, direct_kernels._tables):
        made.cache_clear()
    yield request.param
    for made in (direct_kernels._library, direct_kernels._tables):
        made.cache_clear()


@pytest.fixture(autouse=True)
def everywhere() -> Iterator[None]:
    """Every convolution pays, with a team."""
    with machine.using(generic()._replace(direct_products=1 << 40, direct_team=1000)):
        yield


def drawn(rng: np.random.Generator) -> tuple[Windows, tuple[int, ...]]:
    """Some shapes, and what pads the images (left, right, above, below)."""
    batch, height, width, channels = (int(rng.integers(1, n)) for n in (4, 14, 18, 20))
    outputs = int(rng.choice([1, 3, 8, 17, 40, 70, 130]))
    taps, strides, dilations = (tuple(int(n) for n in rng.integers(1, k, 2)) for k in (6, 4, 3))
    reach = [(k - 1) * d + 1 for k, d in zip(taps, dilations)]
    before = tuple(int(rng.integers(0, n)) for n in reach)
    after = [
        max(int(rng.integers(0, n)), n - length - b) for n, length, b in zip(reach, (height, width), before)
    ]
    counts = [
        (length + b + a - n) // s + 1
        for length, b, a, n, s in zip((height, width), before, after, reach, strides)
    ]
    images = (batch, height, width, channels)
    windows = Windows(images, taps, outputs, (batch, *counts), strides, dilations, before)  # type: ignore[arg-type]
    return windows, (before[1], after[1], before[0], after[0])


def aten(windows: Windows, sides: tuple[int, ...], x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    padded = torch.nn.functional.pad(x.permute(0, 3, 1, 2), sides)
    filters = w.permute(3, 2, 0, 1).contiguous()
    y = torch.conv2d(padded, filters, None, windows.strides, 0, windows.dilations)
    return y.permute(0, 2, 3, 1)


def check(windows: Windows, sides: tuple[int, ...]) -> int:
    """How many of the three functions there are; they compute what ATen does."""
    x, w = torch.randn(windows.images), torch.randn(*windows.taps, windows.images[3], windows.outputs)
    dy = torch.randn(*windows.counts, windows.outputs)
    exact = [x.double().requires_grad_(), w.double().requires_grad_()]
    y = aten(windows, sides, *exact)
    wanted = dict(zip(KINDS, [y, *torch.autograd.grad(y, exact, dy.double())]))
    operands = {"results": (x, w), "images": (dy, w), "filter": (x, dy)}
    count = 0
    for kind in KINDS:
        function = direct_kernels.direct_windows(kind, windows)
        if function is None:
            continue
        count += 1
        found = function(*operands[kind])
        assert found is not None
        scale = float(wanted[kind].detach().abs().max()) + 1e-6
        assert found.shape == wanted[kind].shape
        assert float((found - wanted[kind]).detach().abs().max()) < 2e-6 * scale * np.sqrt(
            1 + dy.numel() ** 0.5
        )
    return count


@pytest.mark.parametrize("seed", range(6))
def test_drawn_shapes(lanes, seed) -> None:
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    assert sum(check(*drawn(rng)) for _ in range(6)) >= 12


def test_a_position_without_a_window_is_left_to_others() -> None:
    windows = Windows((1, 6, 6, 2), (1, 2), 3, (1, 3, 3), (2, 2), (1, 1), (0, 0))
    assert direct_kernels.direct_windows("images", windows) is None
    assert check(windows, (0, 0, 0, 0)) == 2


def test_as_many_threads_as_there_are_make_the_same_bits() -> None:
    windows = Windows((3, 16, 15, 5), (3, 3), 20, (3, 16, 15), (1, 1), (1, 1), (1, 1))
    x, w, dy = torch.randn(3, 16, 15, 5), torch.randn(3, 3, 5, 20), torch.randn(3, 16, 15, 20)
    before = torch.get_num_threads()
    for kind, operands in (("results", (x, w)), ("images", (dy, w)), ("filter", (x, dy))):
        found = []
        function = direct_kernels.direct_windows(kind, windows)
        assert function is not None
        for threads in (1, 2, before):
            torch.set_num_threads(threads)
            found.append(function(*operands))
        torch.set_num_threads(before)
        assert all(torch.equal(found[0], each) for each in found)  # type: ignore[arg-type]


@pytest.mark.parametrize("terms", [9, 1030, 2 * 1024])
def test_a_bias_and_relu_come_once_after_all_terms(lanes, terms) -> None:
    windows = Windows((2, 4, 4, terms), (1, 2), 19, (2, 4, 3), (1, 1), (1, 1), (0, 0))
    x, w, bias = torch.randn(2, 4, 4, terms), torch.randn(1, 2, terms, 19), torch.randn(19)
    bias[3] = float("nan")
    function = direct_kernels.direct_windows("results", windows, True, True)
    assert function is not None
    found = function(x, w, bias)
    wanted = (aten(windows, (0, 0, 0, 0), x.double(), w.double()) + bias).relu()
    torch.testing.assert_close(found, wanted.float(), rtol=1e-4, atol=1e-3, equal_nan=True)


def test_what_is_not_finite_is_left_to_others_where_images_are_padded() -> None:
    x, w = torch.randn(1, 6, 6, 3), torch.randn(3, 3, 3, 4)
    w[0, 0, 0, 0] = float("inf")
    padded = Windows((1, 6, 6, 3), (3, 3), 4, (1, 6, 6), (1, 1), (1, 1), (1, 1))
    plain = Windows((1, 6, 6, 3), (3, 3), 4, (1, 4, 4), (1, 1), (1, 1), (0, 0))
    for windows, is_left in ((padded, True), (plain, False)):
        function = direct_kernels.direct_windows("results", windows)
        assert function is not None
        assert (function(x, w) is None) is is_left
    assert torch.isinf(function(x, w)[..., 0]).all()  # type: ignore[index]


def test_operands_may_lie_in_any_order() -> None:
    windows = Windows((2, 5, 5, 3), (3, 3), 4, (2, 3, 3), (1, 1), (1, 1), (0, 0))
    x, w = torch.randn(2, 3, 5, 5).permute(0, 2, 3, 1), torch.randn(4, 3, 3, 3).permute(1, 2, 3, 0)
    function = direct_kernels.direct_windows("results", windows)
    assert function is not None
    torch.testing.assert_close(function(x, w), aten(windows, (0, 0, 0, 0), x, w), rtol=1e-5, atol=1e-5)


def test_large_convolutions_are_left_to_libraries() -> None:
    windows = Windows((64, 56, 56, 64), (3, 3), 64, (64, 56, 56), (1, 1), (1, 1), (1, 1))
    assert all(direct_kernels.direct_windows(kind, windows) is None for kind in KINDS)
