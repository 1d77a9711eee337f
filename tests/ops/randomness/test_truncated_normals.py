"""Normal numbers between two ends: the same whether they are made in parts or at once."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from flowstone.framework import errors
from flowstone.ops.randomness.truncated_normals import normal_within


def below(x: torch.Tensor) -> torch.Tensor:
    """The normal distribution function."""
    return torch.erfc(-x / math.sqrt(2)) / 2


@pytest.mark.parametrize("start", [-30.0, -9.0, 8.0, 20.0])
def test_tails(start: float) -> None:
    """Values far from the mean are spread as the distribution is there, not rounded to steps."""
    low = torch.full((1,), start, dtype=torch.float64)
    uniform = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
    found = normal_within(uniform.clone(), torch.zeros_like(low), torch.ones_like(low), low, low + 1)
    near = abs(start) if start > 0 else abs(start + 1)
    ends = [below(torch.tensor(-end, dtype=torch.float64)) for end in (near, near + 1)]
    share = (below(-found.abs()) - ends[1]) / (ends[0] - ends[1])
    torch.testing.assert_close(share, uniform, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("sizes", "ends"), [((4, 50), (4, 1)), ((3, 7, 11), (3, 1, 1)), ((9,), (9,)), ((0, 3), (1, 1)), ((), ())]
)
def test_parts(sizes: tuple[int, ...], ends: tuple[int, ...], set_profile: Callable[..., None]) -> None:
    chance = torch.Generator().manual_seed(3)
    uniform = torch.rand(sizes, generator=chance, dtype=torch.float64)
    mean, low = torch.randn((2, *ends), generator=chance, dtype=torch.float64)
    deviation, width = torch.rand((2, *ends), generator=chance, dtype=torch.float64) + 0.1
    given = (mean, deviation, low, low + width)
    whole = normal_within(uniform.clone(), *given)
    set_profile(core_cache=400)
    parted = normal_within(uniform.clone(), *given)
    assert torch.equal(parted, whole) and whole.shape == sizes
    assert bool(((whole >= low) & (whole <= low + width)).all())
    start, place, stop = ((x - mean) / deviation for x in (low, whole, low + width))
    is_upper = start > 0  # then by the lower tail of the mirrored distribution
    first, found, last = (below(torch.where(is_upper, -x, x)) for x in (start, place, stop))
    least, most = torch.where(is_upper, last, first), torch.where(is_upper, first, last)
    torch.testing.assert_close((found - least) / (most - least), uniform, rtol=1e-6, atol=1e-6)


def test_ends_in_the_wrong_order() -> None:
    one = torch.ones(1, 1, dtype=torch.float64)
    with pytest.raises(errors.InvalidArgumentError, match="minval < maxval"):
        normal_within(torch.rand(2, 3, dtype=torch.float64), one, one, one, one)
