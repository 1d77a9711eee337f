"""Convolutions as products that are spread: values against float64, infinities, and when they pay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flowstone.framework.machine.machine import using
from flowstone.framework.machine.machine_profiles import INTEL, X86, ZEN5
from flowstone.framework.types import dtypes
from flowstone.lowering.convolutions import spread_convolutions
from flowstone.lowering.convolutions.spread_convolutions import (
    Spreading,
    gradient_by_filter,
    gradient_pays,
    pays,
    spread,
)


def transposed(x: torch.Tensor, w: torch.Tensor, spreading: Spreading) -> torch.Tensor:
    """ATen's transposed convolution, cut to the results; `w`: [channels, outputs, height, width]."""
    found = torch.conv_transpose2d(x.permute(0, 3, 1, 2), w, None, spreading.strides)
    (down, across), (above, beside) = spreading.whole, spreading.before
    found = torch.nn.functional.pad(found, (0, across - found.shape[3], 0, down - found.shape[2]))
    height, width = spreading.results[1:3]
    return found[:, :, above : above + height, beside : beside + width].permute(0, 2, 3, 1)


def rows_of(w: torch.Tensor) -> torch.Tensor:
    return w.reshape(w.shape[0], -1).t()


def drawn(rng: np.random.Generator) -> Spreading:
    """One of any shape, with room behind the results and without."""
    images = tuple(int(n) for n in (*rng.integers(1, 5, 1), *rng.integers(1, 12, 2), *rng.integers(1, 40, 1)))
    pairs = [tuple(int(n) for n in rng.integers(low, high, 2)) for low, high in ((1, 6), (1, 4))]
    (taps, strides), lengths = pairs, []
    before = tuple(int(rng.integers(0, each)) for each in taps)
    for count, stride, size, margin in zip(images[1:3], strides, taps, before):
        end = (count - 1) * stride + size - margin
        lengths.append(max(end + int(rng.integers(-margin, stride)), 1))
    return Spreading(images, (images[0], *lengths, int(rng.integers(1, 7))), taps, strides, before)


@pytest.mark.parametrize("at_once", [1, 5_000, 1 << 19])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_random_shapes_agree_with_float64(monkeypatch, at_once, dtype) -> None:
    monkeypatch.setattr(spread_convolutions, "_AT_ONCE", at_once)
    rng = np.random.default_rng(5)
    torch.manual_seed(5)
    for _ in range(60):
        spreading = drawn(rng)
        x = torch.randn(spreading.images, dtype=dtype)
        w = torch.randn(spreading.images[3], spreading.results[3], *spreading.taps, dtype=dtype)
        expected = transposed(x.double(), w.double(), spreading)
        found = spread(x, rows_of(w), spreading)
        assert found.dtype == dtype and found.is_contiguous() and found.shape == spreading.results
        scale = max(float(expected.abs().max()), 1.0)
        assert float((found - expected).abs().max()) < (1e-5 if dtype == torch.float32 else 1e-12) * scale


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 3e38])
def test_numbers_that_are_not_finite_stay_where_they_belong(value: float) -> None:
    torch.manual_seed(6)
    spreading = Spreading((2, 6, 5, 7), (2, 12, 10, 3), (5, 4), (2, 2), (2, 1))
    x, w = torch.randn(spreading.images), torch.randn(7, 3, 5, 4)
    x[1, 2, 3, 4] = w[2, 1, 3, 3] = value
    found, expected = spread(x, rows_of(w), spreading), transposed(x, w, spreading)
    assert torch.equal(found.isfinite(), expected.isfinite())
    assert torch.equal(found.isnan(), expected.isnan())
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


def convolved(rng: np.random.Generator) -> tuple[Spreading, tuple[int, int]]:
    """An ordinary convolution with stride 1, and the zeros at both ends of its images."""
    taps, padding = zip(*[(k, int(rng.integers(0, k))) for k in (int(n) for n in rng.integers(1, 6, 2))])
    images = tuple(int(n) for n in (*rng.integers(1, 5, 1), *rng.integers(5, 14, 2), *rng.integers(1, 40, 1)))
    counts = [n + 2 * p - k + 1 for n, p, k in zip(images[1:3], padding, taps)]
    before = (taps[0] - 1 - padding[0], taps[1] - 1 - padding[1])
    results = (images[0], *counts, int(rng.integers(1, 7)))
    return Spreading(images, results, taps, (1, 1), before), padding  # type: ignore[arg-type]


def test_gradients_by_filters_agree_with_float64() -> None:
    rng = np.random.default_rng(8)
    torch.manual_seed(8)
    for _ in range(60):
        spreading, padding = convolved(rng)
        x, dy = torch.randn(spreading.images), torch.randn(spreading.results)
        w = torch.zeros(spreading.results[3], spreading.images[3], *spreading.taps).double().requires_grad_()
        y = torch.conv2d(x.double().permute(0, 3, 1, 2), w, padding=padding)
        (exact,) = torch.autograd.grad(y, [w], dy.double().permute(0, 3, 1, 2))
        found = gradient_by_filter(x, dy, spreading)
        expected = exact.permute(2, 3, 1, 0)
        assert found.shape == expected.shape
        assert float((found - expected).abs().max()) < 1e-5 * max(float(expected.abs().max()), 1.0)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 3e38])
@pytest.mark.parametrize("of_images", [True, False])
def test_gradients_that_are_not_finite_are_atens(value: float, of_images: bool) -> None:
    torch.manual_seed(9)
    spreading = Spreading((2, 6, 5, 20), (2, 6, 5, 2), (3, 3), (1, 1), (1, 1))
    x, dy = torch.randn(spreading.images), torch.randn(spreading.results)
    (x if of_images else dy)[1, 0, 3, 1] = value
    w = torch.zeros(2, 20, 3, 3, requires_grad=True)
    y = torch.conv2d(x.permute(0, 3, 1, 2), w, padding=1)
    (expected,) = torch.autograd.grad(y, [w], dy.permute(0, 3, 1, 2))
    found = gradient_by_filter(x, dy, spreading)
    torch.testing.assert_close(found, expected.permute(2, 3, 1, 0), rtol=1e-4, atol=1e-4, equal_nan=True)


def test_images_may_lie_in_any_order() -> None:
    spreading = Spreading((2, 6, 5, 7), (2, 8, 7, 2), (3, 3), (1, 1), (0, 0))
    x, w = torch.randn(2, 7, 6, 5).permute(0, 2, 3, 1), torch.randn(7, 2, 3, 3)
    torch.testing.assert_close(spread(x, rows_of(w), spreading), transposed(x, w, spreading))


SIZES: list[tuple[Any, Any, Any, Any, bool]] = [
    ((64, 14, 14, 64), (64, 28, 28, 1), (5, 5), (2, 2), True),  # a generator of digits
    ((16, 32, 32, 64), (16, 64, 64, 3), (4, 4), (2, 2), True),  # of images
    ((1, 128, 128, 64), (1, 128, 128, 3), (3, 3), (1, 1), True),  # a decoder
    ((16, 32, 32, 64), (16, 64, 64, 12), (4, 4), (2, 2), False),  # more results
    ((16, 32, 32, 64), (16, 32, 32, 1), (1, 1), (1, 1), False),  # one tap
    ((1, 8, 8, 16), (1, 8, 8, 1), (3, 3), (1, 1), False),  # less than the calls
    ((16, 32, 32, 2), (16, 32, 32, 3), (3, 3), (1, 1), False),  # few channels
]


@pytest.mark.parametrize(("images", "results", "taps", "strides", "expected"), SIZES)
def test_few_results_of_many_channels_pay(monkeypatch, images, results, taps, strides, expected) -> None:
    monkeypatch.setattr(spread_convolutions, "_lanes", lambda: 16)
    with using(X86):
        assert pays(Spreading(images, results, taps, strides, (1, 1))) == expected


@pytest.mark.parametrize(
    ("batch", "channels", "outputs", "expected"),
    [(16, 64, 3, False), (16, 128, 3, True), (16, 32, 1, True), (16, 32, 2, False), (1, 32, 2, True)],
)
def test_spreading_what_no_cache_holds_pays_where_that_is_cheap(
    monkeypatch, batch, channels, outputs, expected
) -> None:
    monkeypatch.setattr(spread_convolutions, "_lanes", lambda: 16)
    spreading = Spreading((batch, 64, 64, channels), (batch, 64, 64, outputs), (3, 3), (1, 1), (1, 1))
    with using(INTEL):
        assert pays(spreading) == expected
    with using(ZEN5):
        assert pays(spreading)


@pytest.mark.parametrize(
    ("images", "results", "taps", "strides", "expected"),
    [
        ((32, 14, 14, 16), (32, 28, 28, 1), (4, 4), (2, 2), True),
        ((4, 64, 64, 32), (4, 64, 64, 3), (3, 3), (1, 1), True),
        ((1, 16, 16, 8), (1, 16, 16, 1), (3, 3), (1, 1), False),  # less than the calls
        ((16, 32, 32, 2), (16, 32, 32, 3), (3, 3), (1, 1), False),  # few channels
    ],
)
def test_machine_code_pays_where_a_product_does_not(
    monkeypatch, images, results, taps, strides, expected
) -> None:
    monkeypatch.setattr(spread_convolutions, "_lanes", lambda: 16)
    spreading = Spreading(images, results, taps, strides, (1, 1))
    with using(INTEL):
        assert not pays(spreading)
        monkeypatch.setattr(spread_convolutions, "spreads", lambda products: True)
        assert pays(spreading) == expected
        assert not pays(spreading, dtypes.float64), "the code is for float32"


def test_gradients_by_filters_of_few_results_pay(monkeypatch) -> None:
    monkeypatch.setattr(spread_convolutions, "_lanes", lambda: 16)
    for images, outputs, expected in (
        ((16, 32, 32, 64), 3, True),
        ((16, 64, 64, 32), 1, True),
        ((16, 32, 32, 64), 8, False),
        ((16, 32, 32, 2), 3, False),
        ((1, 8, 8, 16), 1, False),
    ):
        spreading = Spreading(images, (*images[:3], outputs), (3, 3), (1, 1), (1, 1))
        assert gradient_pays(spreading) == expected
