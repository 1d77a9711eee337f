"""Normal numbers between two ends, made of uniform ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from flowstone.framework import errors
from flowstone.framework.machine import machine

__all__: list[str] = []


def normal_within(
    uniform: torch.Tensor,
    mean: torch.Tensor,
    deviation: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
) -> torch.Tensor:
    """Normal values between `low` and `high` in place of uniform numbers, which the parameters broadcast to:

    by the inverse distribution function in the accurate (lower) tail.
    """
    if bool((low >= high).any()) or bool((deviation <= 0).any()):
        raise errors.InvalidArgumentError(
            None, None, "Invalid parameters: need minval < maxval and stdev > 0"
        )
    start, stop = (low - mean) / deviation, (high - mean) / deviation
    sign = torch.where(start > 0, -1.0, 1.0)
    start, stop = torch.where(sign > 0, start, -stop), torch.where(sign > 0, stop, -start)
    least, most = _below(start), _below(stop)
    ends, numbers = (start, stop, low, high), (most - least, least, sign * deviation, mean)
    columns = uniform.shape[-1] if uniform.dim() else 0
    if uniform.device.type != "cpu" or columns < 2 or any(p.shape[-1:] != (1,) for p in (*ends, *numbers)):
        return _of_uniform(uniform, ends, numbers)
    cached = machine.current().profile.core_cache // (2 * uniform.itemsize)  # elements
    some = max(1, cached * columns // uniform.numel()) if uniform.numel() else columns
    for part in uniform.split(some, -1):
        _of_uniform(part, ends, numbers)
    return uniform


def _below(x: torch.Tensor) -> torch.Tensor:
    """The normal distribution function, also where it is small, which ATen's is not right for."""
    return torch.erfc(x * -math.sqrt(0.5)).mul_(0.5)


def _of_uniform(
    uniform: torch.Tensor, ends: Sequence[torch.Tensor], numbers: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Overwrites uniform numbers with values between the ends."""
    (start, stop, low, high), (width, least, scale, mean) = ends, numbers
    places = torch.special.ndtri(uniform.mul_(width).add_(least), out=uniform)
    torch.minimum(torch.maximum(places, start, out=places), stop, out=places)
    places.mul_(scale).add_(mean)
    return torch.minimum(torch.maximum(places, low, out=places), high, out=places)
