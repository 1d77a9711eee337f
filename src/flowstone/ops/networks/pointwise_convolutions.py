"""Convolutions by 1 x 1 filters that skip positions or see few: on a host, as one row of positions.

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

Small convolutions without strides, and both their gradients, are products of matrices on processors where
those are quicker called (`pointwise_products` of a machine's profile):

    [64, 1, 8, 160] to [64, 1, 8, 16]: 75 us, so 16; its gradients 78 and 16 us, 107 and 32 us
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

from flowstone.framework.declarations.kernel import Call, Environment
from flowstone.framework.machine import onednn
from flowstone.framework.tensors.node import Node
from flowstone.framework.types import dtypes

__all__: list[str] = []

_product = onednn.product


def suits(node: Node, env: Environment, geometry: Any, kernel: tuple[int, ...], known: Any) -> bool:
    """Whether this convolution, or gradient with respect to the input, of known shapes is computed so.

    `known`: groups, the result's spatial lengths, and the padding.
    """
    if not _is_product(node.dtype(1), env, geometry, kernel, known):
        return False
    profile = env.machine.profile
    if max(geometry.strides) > 1:
        return profile.pointwise_strides
    return bool(math.prod(known[1]) <= profile.pointwise_positions)


def suits_product(node: Node, env: Environment, geometry: Any, kernel: tuple[int, ...], known: Any) -> bool:
    """Whether the gradient with respect to this filter is computed as a matrix product; arguments as for
    `suits`."""
    if not _is_product(node.dtype(0), env, geometry, kernel, known) or not env.machine.has_onednn:
        return False
    positions = node.known_dims(0)[0] * math.prod(known[1])
    return bool(positions <= env.machine.profile.pointwise_positions_in_all)


def _is_product(dtype: Any, env: Environment, geometry: Any, kernel: tuple[int, ...], known: Any) -> bool:
    groups, _, padding = known
    if env.device.type != "cpu" or dtype is not dtypes.float32 or not geometry.last or geometry.rank != 4:
        return False
    return bool(groups == 1 and set(kernel[:2]) == {1} and not any(padding))


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


def gradient_by_filter(
    x: Any, dy: Any, strides: tuple[int, ...], dims: tuple[int, ...], channels: int
) -> Call:
    """The call that makes [1, 1, channels, out], in memory by outputs as
    `lowering/convolutions/filter_layout.py` keeps filters, from images with so many channels and a gradient
    of shape `dims`.
    """
    *positions, outputs = dims
    count = math.prod(positions)
    rows = Call(torch.reshape, _counting(x, strides), (count, channels))
    by_outputs = Call(torch.t, Call(torch.reshape, dy, (count, outputs)))
    product = Call(_product, by_outputs, Call(torch.t, rows), None, "none", (), "")
    return Call(torch.reshape, Call(torch.t, product), (1, 1, channels, outputs))


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


# ---- small products


def suits_small_product(dtype: Any, env: Environment, seen: Any) -> bool:
    """Whether this arranged convolution of images of a type, or a gradient of it, is one small product of
    matrices."""
    if not _is_product(dtype, env, seen.geometry, seen.kernel, seen.known) or max(seen.strides) > 1:
        return False
    work = seen.image[0] * math.prod(seen.counts) * math.prod(seen.kernel)
    return bool(work <= env.machine.profile.pointwise_products)


def small_product(x: Any, kernel: Any, seen: Any) -> Call:
    """The call that convolves images of dims `image` by one product."""
    channels, outputs = seen.kernel[2:]
    return _product_of(_rows_of(x, channels), _rows_of(kernel, outputs), seen.result_dims(seen.counts))


def small_gradient_by_image(dy: Any, kernel: Any, seen: Any) -> Call:
    """The same of the gradient with respect to the images."""
    outputs = seen.kernel[3]
    return _product_of(_rows_of(dy, outputs), Call(torch.t, _rows_of(kernel, outputs)), seen.image)


def small_gradient_by_filter(x: Any, dy: Any, seen: Any) -> Call:
    """The same of the gradient with respect to the filter."""
    channels, outputs = seen.kernel[2:]
    return _product_of(Call(torch.t, _rows_of(x, channels)), _rows_of(dy, outputs), seen.kernel)


def _rows_of(images: Any, channels: int) -> Call:
    """The call that makes a matrix, of a row a position."""
    return Call(torch.reshape, images, (-1, channels))


def _product_of(x: Call, y: Call, dims: tuple[int, ...]) -> Call:
    return Call(torch.reshape, Call(torch.mm, x, y), dims)
