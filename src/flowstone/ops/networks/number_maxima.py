"""Maxima of windows as TensorFlow has them on a host: of numbers, while one NaN makes ATen's NaN.

ATen pools first. Only where its maxima are not all above minus infinity is the input pooled again with NaN
as minus infinity; elsewhere the answer is ATen's. Where a window has no number above them, its maximum is
the lowest number in images and minus infinity in volumes. On a GPU a look at the maxima would wait for
them: there ATen's answer stands.
"""

from __future__ import annotations

import math
from typing import Any

import torch

__all__ = ["MAX_INDICES", "are_numbers", "largest", "largest_with_places"]

_MAX = {2: torch.max_pool2d, 3: torch.max_pool3d}
MAX_INDICES = {2: torch._C._nn.max_pool2d_with_indices, 3: torch._C._nn.max_pool3d_with_indices}


def are_numbers(maxima: torch.Tensor) -> bool:
    """Whether all are above minus infinity (or cannot be otherwise)."""
    if not maxima.is_floating_point() or not maxima.is_cpu or not maxima.numel():
        return True
    return maxima.amin().item() > -math.inf


def without_nan(x: torch.Tensor) -> torch.Tensor:
    """x with minus infinity for NaN."""
    return x.nan_to_num(nan=-math.inf, posinf=math.inf, neginf=-math.inf)


def largest(x: torch.Tensor, arguments: tuple[Any, ...], keeps_nan: bool = False) -> torch.Tensor:
    """The maxima of windows, ATen's `arguments`, of a channels-first x.

    `keeps_nan`: windows of nothing but NaN have that, and there is no lowest number.
    """
    n = x.dim() - 2
    y = _MAX[n](x, *arguments)
    if are_numbers(y):
        return y
    y = _MAX[n](without_nan(x), *arguments)
    if keeps_nan:
        return y.masked_fill(_MAX[n]((x == x).to(x.dtype), *arguments) == 0, math.nan)
    return _raised(y)


def _raised(maxima: torch.Tensor) -> torch.Tensor:
    return maxima.clamp(min=torch.finfo(maxima.dtype).min) if maxima.dim() == 4 else maxima


def largest_with_places(
    x: torch.Tensor, arguments: tuple[Any, ...], border: torch.Tensor | None = None, keeps_nan: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """(the maxima, their positions in a plane): the first of equals; in images, NaN that is the first of all.

    `border`: planes [1, 1, …] of zeros with minus infinity where x is padded.
    """
    n = x.dim() - 2
    values, places = MAX_INDICES[n](x, *arguments)
    if are_numbers(values):
        return values, places
    values, places = largest(x, arguments, keeps_nan), MAX_INDICES[n](without_nan(x), *arguments)[1]
    if n == 2:
        blank = torch.zeros_like(x[:1, :1]) if border is None else border
        corners = MAX_INDICES[n](blank, *arguments)[1].expand_as(places)
        strange = x.isnan().flatten(2).gather(2, corners.flatten(2)).view(places.shape)
        places = corners.where(strange, places)
    return values, places
