"""Images are resampled to the same numbers by machine code and by ATen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.images import resampling
from flowstone.ops.images.weighted_sampling import Taps, sample, taps_of

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


def random_taps(random: np.random.RandomState, length: int, count: int, terms: int) -> Taps:
    results, places = np.repeat(np.arange(count), terms), random.randint(0, length, count * terms)
    return taps_of(results, places, random.randn(count * terms).astype(np.float32), count)


def strided(*dims: int) -> torch.Tensor:
    return torch.randn(dims[0], dims[3], dims[1], dims[2]).permute(0, 2, 3, 1)


@pytest.mark.parametrize("make", [torch.randn, strided])
@pytest.mark.parametrize("channels", [1, 3, 16, 37])
@pytest.mark.parametrize("size", [(5, 9), (40, 3), (30, 60), (1, 1)])
def test_the_same_as_by_aten(
    monkeypatch, size: tuple[int, int], channels: int, make: Callable[..., torch.Tensor]
) -> None:
    random = np.random.RandomState(channels)
    images = make(3, 9, 7, channels)
    images[1, 2, 3] = np.inf
    vertical, horizontal = random_taps(random, 9, size[0], 3), random_taps(random, 7, size[1], 2)
    found = sample(images, vertical, horizontal)
    monkeypatch.setattr(flags, "NATIVE", 0)
    wanted = sample(images, vertical, horizontal)
    torch.testing.assert_close(found, wanted, rtol=2e-6, atol=2e-6, equal_nan=True)


def test_lines_that_are_too_long(monkeypatch) -> None:
    """They are left to ATen."""
    monkeypatch.setattr(resampling, "_MOST_ELEMENTS", 5)
    same = Taps(np.zeros((1, 1), np.int64), np.ones((1, 1), np.float32))
    resample = resampling.resampler()
    assert resample is not None
    assert resample((1, 1, 6, 1), same.tensors, same.tensors) is None
    assert sample(torch.ones(1, 1, 6, 1), same, same).tolist() == [[[[1.0]]]]


@pytest.mark.parametrize("size", [(5, 9), (40, 9)])
def test_taps_serve_images_of_any_shape(size: tuple[int, int]) -> None:
    """What is prepared for one is not what another takes; few images, and many by a team."""
    random = np.random.RandomState(0)
    vertical, horizontal = random_taps(random, 9, size[0], 3), random_taps(random, 7, size[1], 2)
    images = torch.randn(300, 9, 7, 5)
    for batch, channels in ((1, 5), (300, 5), (1, 2), (1, 5)):
        some = images[:batch, ..., :channels]
        found = sample(some, vertical, horizontal)
        rows = torch.einsum("bhwc,rh->brwc", some.double(), matrix(vertical, 9))
        wanted = torch.einsum("brwc,sw->brsc", rows, matrix(horizontal, 7))
        torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)


def matrix(taps: Taps, length: int) -> torch.Tensor:
    places, weights = taps.tensors
    return torch.zeros(len(places), length, dtype=torch.float64).scatter_add_(1, places, weights.double())
