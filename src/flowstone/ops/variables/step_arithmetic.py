"""Arithmetic of optimisers' steps with numbers that are Python's on a host and may be tensors elsewhere."""

from __future__ import annotations

import math
from typing import TypeAlias

import torch

Number: TypeAlias = "float | torch.Tensor"


def add_scaled(x: torch.Tensor, y: torch.Tensor, scale: Number) -> None:
    """x += scale * y, in one call where `scale` is a Python number."""
    if isinstance(scale, torch.Tensor):
        x.add_(y * scale)
    else:
        x.add_(y, alpha=scale)


def add_product(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, scale: Number) -> None:
    """x += scale * y * z."""
    if isinstance(scale, torch.Tensor):
        x.add_(y * z * scale)
    else:
        x.addcmul_(y, z, value=scale)


def inverse(x: Number) -> Number:
    """1 / x, of zero as tensors have it."""
    return 1 / x if isinstance(x, torch.Tensor) or x else math.inf


def move_towards(x: torch.Tensor, y: torch.Tensor, share: Number) -> None:
    """x += share * (y - x)."""
    x.lerp_(y, share) if x.is_floating_point() else x.add_((y - x) * share)


def average_squares(average: torch.Tensor, x: torch.Tensor, rho: Number) -> None:
    """average = rho * average + (1 - rho) * x^2."""
    if isinstance(rho, torch.Tensor):
        average.lerp_(x * x, 1 - rho)
    else:
        average.mul_(rho).addcmul_(x, x, value=1 - rho)


def square_root(x: Number) -> Number:
    return torch.sqrt(x) if isinstance(x, torch.Tensor) else math.sqrt(x)


def soft_threshold(x: torch.Tensor, threshold: Number) -> torch.Tensor:
    """sign(x) * max(|x| - threshold, 0)."""
    return torch.abs(x).sub_(threshold).clamp_min_(0).mul_(torch.sign(x))


def is_zero(number: Number) -> bool:
    return not isinstance(number, torch.Tensor) and number == 0
