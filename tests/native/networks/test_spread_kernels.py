"""Convolutions with few results a position by machine code: values against float64, infinities, threads."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.networks import spread_kernels
from flowstone.native.networks.spread_code import MOST_PRODUCTS, WORDS
from flowstone.native.networks.spread_kernels import Spread, spreads

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


def drawn(rng: np.random.Generator) -> dict[str, int]:
    """Any geometry: the results end before the last window does, or behind it."""
    numbers = [int(n) for n in (*rng.integers(1, 5, 1), *rng.integers(1, 21, 2), *rng.integers(1, 40, 1))]
    batch, rows, columns, channels = numbers
    taps, strides = ([int(n) for n in rng.integers(1, end, 2)] for end in (7, 4))
    before = [int(rng.integers(0, each)) for each in taps]
    lengths = [
        max((count - 1) * stride + size - margin + int(rng.integers(-margin, stride)), 1)
        for count, stride, size, margin in zip((rows, columns), strides, taps, before)
    ]
    outputs = int(rng.integers(1, 5))
    values = (batch, rows, columns, channels, *lengths, outputs, *taps, *strides, *before)
    return dict(zip(WORDS[1:], values))


def expected(images: torch.Tensor, filters: torch.Tensor, words: dict[str, int]) -> torch.Tensor:
    """ATen's transposed convolution, cut to the results."""
    kernel = filters.permute(0, 3, 1, 2)
    strides = (words["stride_down"], words["stride_across"])
    found = torch.conv_transpose2d(images.permute(0, 3, 1, 2), kernel, None, strides)
    ends = words["above"] + words["height"], words["beside"] + words["width"]
    room = [max(end - length, 0) for end, length in zip(ends, found.shape[2:])]
    found = torch.nn.functional.pad(found, (0, room[1], 0, room[0]))
    return found[:, :, words["above"] : ends[0], words["beside"] : ends[1]].permute(0, 2, 3, 1)


def operands(words: dict[str, int]) -> tuple[torch.Tensor, torch.Tensor]:
    names = ("batch", "rows", "columns", "channels", "taps_down", "taps_across", "outputs")
    sizes = [words[name] for name in names]
    return torch.randn(sizes[:4]), torch.randn(sizes[3:])


def test_random_shapes_agree_with_float64_and_with_any_threads() -> None:
    rng = np.random.default_rng(7)
    torch.manual_seed(7)
    for _ in range(150):
        words = drawn(rng)
        images, filters = operands(words)
        exact = expected(images.double(), filters.double(), words)
        found = Spread(words)(images, filters)
        scale = max(float(exact.abs().max()), 1.0)
        assert found.dtype == torch.float32 and found.shape == exact.shape and found.is_contiguous()
        assert float((found - exact).abs().max()) < 1e-5 * scale, words
        for has_team in (False, True):
            convolve = Spread(words)
            convolve._has_team = has_team
            assert torch.equal(convolve(images, filters), found), words


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e30])
def test_numbers_that_are_not_finite_stay_where_they_belong(value: float) -> None:
    torch.manual_seed(6)
    words = dict(zip(WORDS[1:], (2, 6, 9, 7, 12, 17, 3, 5, 4, 2, 2, 2, 1)))
    images, filters = operands(words)
    images[1, 2, 3, 4] = filters[2, 3, 3, 1] = value
    found, exact = Spread(words)(images, filters), expected(images, filters, words)
    assert torch.equal(found.isfinite(), exact.isfinite())
    assert torch.equal(found.isnan(), exact.isnan())


def test_operands_may_lie_in_any_order() -> None:
    words = dict(zip(WORDS[1:], (2, 6, 5, 7, 8, 7, 2, 3, 3, 1, 1, 0, 0)))
    images, filters = torch.randn(2, 7, 6, 5).permute(0, 2, 3, 1), torch.randn(2, 3, 3, 7).permute(3, 1, 2, 0)
    torch.testing.assert_close(Spread(words)(images, filters), expected(images, filters, words))


def test_the_code_has_room_for_so_many_products(monkeypatch) -> None:
    assert spreads(MOST_PRODUCTS) and not spreads(MOST_PRODUCTS + 1)
    words = dict(zip(WORDS[1:], (1, 3, 11, 5, 10, 18, 4, 8, 8, 1, 1, 0, 0)))  # 8 x 8 taps, 4 outputs
    images, filters = operands(words)
    torch.testing.assert_close(
        Spread(words)(images, filters), expected(images, filters, words), rtol=1e-4, atol=1e-4
    )
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert not spreads(1)
    assert spread_kernels._library() is spread_kernels._library()
