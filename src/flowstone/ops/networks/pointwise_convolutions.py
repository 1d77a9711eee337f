"""Convolutions by 1 x 1 filters that skip positions or see few: on a host, as one row of positions, or as
products of matrices.

Such a convolution is a product of all positions of all images with the filter. oneDNN cuts the positions of
one image into blocks, of which a 7 x 7 image leaves some half empty, and reads every second position of every
second row slowly. So the positions that count are gathered, and all images become one of a single row.

    [4, 14, 14, 1024] to [4, 7, 7, 2048], stride 2: 3.2 ms, so 2.4; its gradient with respect to the input 3.5
    and 2.2 [4, 7, 7, 2048] to [4, 7, 7, 512]: 1.6 ms, so 1.1

Large images and stride 1 gain nothing. The gradient with respect to the filter gains nothing from a row
either; but where all images together have few positions, the matrix product of the two is faster than the
convolution's gradient, which is made in blocks and copied out of them twice:

    [4, 7, 7, 2048] to [4, 7, 7, 512]: 2.2 ms, so 1.1; one such image 1.4 and 0.25
    [4, 14, 14, 1024] to [4, 7, 7, 2048], stride 2: 4.5 ms, so 2.4

On processors whose BLAS is faster than oneDNN, small convolutions (`pointwise_products` of a machine's
profile) and those of few positions (`pointwise_rows`) are products of matrices in all three directions. There
(Intel with AVX-512, two cores; forward, gradients by images and by filter):

    [64, 1, 8, 160] to [64, 1, 8, 16]: 75, 78, 107 us, so 16, 16, 32
    [4, 7, 7, 2048] to [4, 7, 7, 512]: 2.1, 1.9, 3.7 ms, so 1.4, 1.5, 1.3; one such image 1.0, 0.7, 2.6 and
    0.7, 0.5, 0.4
    [4, 14, 14, 1024] to [4, 7, 7, 2048], stride 2: 3.8, 5.6, 7.8 ms, so 3.5, 3.2, 2.8
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

from flowstone.framework.declarations.kernel import Call, Environment
from flowstone.framework.machine import onednn
from flowstone.framework.machine.machine import Machine
from flowstone.framework.types import dtypes

__all__: list[str] = []


def suits(dtype: Any, env: Environment, seen: Any) -> bool:
    """Whether this arranged convolution of images of a type, or its gradient with respect to the images, is
    computed as a row."""
    return bool(env.device.type == "cpu" and is_row(dtype, env.machine.profile, seen))


def is_row(dtype: Any, profile: Any, seen: Any) -> bool:
    """The same of a host with this profile."""
    if not _is_product(dtype, seen):
        return False
    if max(seen.strides) > 1:
        return bool(profile.pointwise_strides)
    return bool(math.prod(seen.counts) <= profile.pointwise_positions)


def _is_product(dtype: Any, seen: Any) -> bool:
    geometry = seen.geometry
    if dtype is not dtypes.float32 or not geometry.last or geometry.rank != 4:
        return False
    is_padded = any(seen.padding) or seen.extra is not None
    return bool(seen.groups == 1 and set(seen.kernel[:2]) == {1} and not is_padded)


def row_of_positions(x: Any, strides: tuple[int, ...], dims: tuple[int, ...]) -> Call:
    """The call that makes [batch, height, width, channels] a channels-first row of the positions that count:

    [1, channels, 1, batch * height * width], where `dims` are those after the strides.
    """
    *positions, channels = dims
    row = Call(torch.reshape, _counting(x, strides), (1, 1, math.prod(positions), channels))
    return Call(torch.permute, row, (0, 3, 1, 2))


def _counting(x: Any, strides: tuple[int, ...]) -> Any:
    """The positions that count."""
    if max(strides) == 1:
        return x
    return Call(operator.getitem, x, (slice(None), *[slice(None, None, stride) for stride in strides]))


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


# ---- products of matrices


def suits_product(dtype: Any, env: Environment, seen: Any, by_filter: bool = False) -> bool:
    """Whether this arranged convolution of images of a type, or a gradient of it (with respect to the filter:
    `by_filter`), is a product of matrices."""
    if env.device.type != "cpu" or not _is_product(dtype, seen):
        return False
    profile = env.machine.profile
    positions = seen.image[0] * math.prod(seen.counts)
    if positions * math.prod(seen.kernel) <= profile.pointwise_products:
        return True
    return bool(positions <= (profile.pointwise_positions_in_all if by_filter else profile.pointwise_rows))


def product(x: Any, kernel: Any, seen: Any) -> Call:
    """The call that convolves images of dims `image` by one product."""
    channels, outputs = seen.kernel[2:]
    rows = _rows_of(_counting(x, seen.strides), channels)
    return _product_of(rows, _rows_of(kernel, outputs), seen.result_dims(seen.counts))


def gradient_by_image(dy: Any, kernel: Any, seen: Any) -> Call:
    """The same of the gradient with respect to the images."""
    channels, outputs = seen.kernel[2:]
    dims = (seen.image[0], *seen.counts, channels)
    found = _product_of(_rows_of(dy, outputs), Call(torch.t, _rows_of(kernel, outputs)), dims)
    return spread(found, seen.strides, seen.image)


def gradient_by_filter(x: Any, dy: Any, seen: Any, machine: Machine) -> Call:
    """The same of the gradient with respect to the filter: in memory by outputs where
    `lowering/convolutions/filter_layout.py` keeps such filters so."""
    channels, outputs = seen.kernel[2:]
    rows, by_outputs = _rows_of(_counting(x, seen.strides), channels), _rows_of(dy, outputs)
    if not machine.packs(channels * outputs, 4):
        return _product_of(Call(torch.t, rows), by_outputs, seen.kernel)
    by_outputs = Call(torch.t, by_outputs)
    if machine.multiplies_by_onednn():
        found = Call(onednn.product, by_outputs, Call(torch.t, rows), None, "none", (), "")
    else:
        found = Call(torch.mm, by_outputs, rows)
    return Call(torch.reshape, Call(torch.t, found), seen.kernel)


def _rows_of(images: Any, channels: int) -> Call:
    """The call that makes a matrix, of a row a position."""
    return Call(torch.reshape, images, (-1, channels))


def _product_of(x: Call, y: Call, dims: tuple[int, ...]) -> Call:
    return Call(torch.reshape, Call(torch.mm, x, y), dims)
