"""Normal numbers between two ends: the same whether they are made in parts or at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from flowstone.framework import errors
from flowstone.ops.randomness.truncated_normals import normal_within


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
    first, found, last = (torch.special.ndtr(torch.where(is_upper, -x, x)) for x in (start, place, stop))
    least, most = torch.where(is_upper, last, first), torch.where(is_upper, first, last)
    torch.testing.assert_close((found - least) / (most - least), uniform, rtol=1e-6, atol=1e-6)


def test_ends_in_the_wrong_order() -> None:
    one = torch.ones(1, 1, dtype=torch.float64)
    with pytest.raises(errors.InvalidArgumentError, match="minval < maxval"):
        normal_within(torch.rand(2, 3, dtype=torch.float64), one, one, one, one)
