"""Convolutions by 1 x 1 filters that skip positions or see few: on a host, as one row of positions.

Such a convolution is a product of all positions of all images with the filter. oneDNN cuts the positions of
one image into blocks, of which a 7 x 7 image leaves some half empty, and reads every second position of every
second row slowly. So the positions that count are gathered, and all images become one of a single row.

    [4, 14, 14, 1024] to [4, 7, 7, 2048], stride 2: 3.2 ms, so 2.4; its gradient by the input 3.5 and 2.2
    [4, 7, 7, 2048] to [4, 7, 7, 512]: 1.6 ms, so 1.1

Large images and stride 1 gain nothing, nor do gradients by the filter.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

from flowstone.framework import dtypes
from flowstone.framework.kernel import Call

__all__: list[str] = []

_FEW = 64  # positions of an image


def suits(node: Any, env: Any, geometry: Any, kernel: tuple[int, ...], known: Any) -> bool:
    """Whether this convolution, or gradient by the input, of known shapes is computed so.

    `known`: groups, the result's spatial lengths, and the padding.
    """
    groups, counts, padding = known
    if env.device.type != "cpu" or node.dtype(1) is not dtypes.float32 or not geometry.last:
        return False
    if groups != 1 or set(kernel[: geometry.rank - 2]) != {1} or any(padding) or geometry.rank != 4:
        return False
    return max(geometry.strides) > 1 or math.prod(counts) <= _FEW


def row_of_positions(x: Any, strides: tuple[int, ...], dims: tuple[int, ...]) -> Call:
    """The call that makes [batch, height, width, channels] a channels-first row of the positions that count:

    [1, channels, 1, batch * height * width], where `dims` are those after the strides.
    """
    if max(strides) > 1:
        x = Call(operator.getitem, x, (slice(None), *[slice(None, None, stride) for stride in strides]))
    *positions, channels = dims
    return Call(torch.permute, Call(torch.reshape, x, (1, 1, math.prod(positions), channels)), (0, 3, 1, 2))


def images_of_row(row: Call, dims: tuple[int, ...]) -> Call:
    """The call that makes a channels-first row images of these dims, channels last."""
    return Call(torch.reshape, Call(torch.permute, row, (0, 2, 3, 1)), dims)


def spread(x: Call, strides: tuple[int, ...], dims: tuple[int, ...]) -> Call:
    """The call that puts images at every so many-th position of images of these dims, zeros elsewhere."""
    if max(strides) == 1:
        return x
    places = (slice(None), *[slice(None, None, stride) for stride in strides])

    def put(images: torch.Tensor) -> torch.Tensor:
        result = images.new_zeros(dims)
        result[places] = images
        return result

    return Call(put, x)
