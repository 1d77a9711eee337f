"""Convolutions of one small image or volume on a host: by oneDNN, as those of many.

ATen leaves batches of one with few elements (and filters of at most three rows and columns) to kernels of its
own, which unfold the image, know only channels first, and give all that follows this layout. Asked directly,
oneDNN convolves them, and makes the gradient with respect to them. For the gradient with respect to the
filter there is no such way; of a volume that is made by its two halves, as of a batch of two.

    [1, 32, 32, 32, 8] to 16 channels, 3 x 3 x 3: 6.6 ms, so 0.6; its gradients 8.2 and 5.5, so 1.1 and 0.8
    [1, 16, 16, 64] to 64, 3 x 3: 0.11 ms, so 0.08; its gradient with respect to the image 0.13, so 0.08
"""

from __future__ import annotations

import math
from typing import Any

import torch

from flowstone.framework.declarations.kernel import Call, Environment
from flowstone.framework.machine import onednn
from flowstone.framework.types import dtypes
from flowstone.ops.networks.convolution_arrangement import Arrangement

__all__: list[str] = []

_FEW = 20480  # batch * channels * the first two lengths, up to which ATen uses its own kernels
_convolve = onednn.convolve
_transpose = onednn.transpose_convolve
_backward = torch.ops.aten.convolution_backward.default


def suits(seen: Arrangement, env: Environment, dtype: Any, lengths: tuple[int, ...], channels: int) -> bool:
    """Whether ATen itself would pass over oneDNN for an image of these spatial lengths and channels."""
    if env.device.type != "cpu" or dtype is not dtypes.float32:
        return False
    if seen.image[0] != 1 or seen.groups != 1 or not seen.geometry.last or min(seen.kernel[:-2][-2:]) > 3:
        return False
    work = math.prod(seen.counts) * math.prod(seen.kernel)
    return channels * math.prod(lengths[:2]) <= _FEW and env.machine.convolves_by_onednn(work)


def forward(seen: Arrangement, x: Any, kernel: Any) -> Call:
    """The call that convolves channels-first `x`."""
    call = Call(
        _convolve, x, kernel, None, seen.padding, seen.strides, seen.dilations, seen.groups, "none", (), ""
    )
    return _with_channels_last(seen, call)


def by_input(seen: Arrangement, dy: Any, kernel: Any, rest: tuple[int, ...]) -> Call:
    """The call that makes the gradient with respect to the image, channels first; `rest`: what the result has
    more."""
    call = Call(
        _transpose, dy, kernel, None, seen.padding, rest, seen.strides, seen.dilations, seen.groups,
        "none", (), "",
    )  # fmt: skip
    return _with_channels_last(seen, call)


def _with_channels_last(seen: Arrangement, call: Call) -> Call:
    """A batch of one volume, of one channel or of a transposed gradient, passes for one of channels first."""
    if len(seen.strides) < 3:
        return call
    return Call(torch.Tensor.contiguous, call, memory_format=torch.channels_last_3d)


def by_filter(seen: Arrangement, dy: Any, x: Any, weights: Any) -> Call:
    """The call that makes the gradient with respect to the filter of a volume, channels first."""
    zeros, (margin, *padding) = (0,) * len(seen.strides), seen.padding
    count = seen.counts[0]
    if count % 2:
        dy, x, padding = Call(_with_zeros, dy), Call(_with_zeros, x), [margin, *padding]
    else:
        step = count // 2 * seen.strides[0]
        length = step - seen.strides[0] + (seen.kernel[0] - 1) * seen.dilations[0] + 1
        dy, x, padding = Call(_halves, dy), Call(_overlapping, x, margin, step, length), [0, *padding]
    return Call(
        _backward, dy, x, weights, None, seen.strides, tuple(padding), seen.dilations, False, zeros,
        seen.groups, (False, True, False),
    )  # fmt: skip


def _with_zeros(x: torch.Tensor) -> torch.Tensor:
    """A batch of `x` and zeros, channels last in memory."""
    last = x.movedim(1, -1)
    result = last.new_zeros((2, *last.shape[1:]))
    result[:1] = last
    return result.movedim(-1, 1)


def _halves(dy: torch.Tensor) -> torch.Tensor:
    """A batch of the two halves of the first spatial dimension."""
    last = dy.movedim(1, -1)
    return last.reshape(2, last.shape[1] // 2, *last.shape[2:]).movedim(-1, 1)


def _overlapping(x: torch.Tensor, margin: int, step: int, length: int) -> torch.Tensor:
    """A batch of what the windows of either half see: of the first spatial dimension, padded by `margin`,
    `length` from 0 on and `length` from `step` on; channels last in memory.
    """
    last = x.movedim(1, -1)
    result = last.new_zeros((2, length, *last.shape[2:]))
    for half, start in enumerate((-margin, step - margin)):
        first, end = max(start, 0), min(start + length, last.shape[1])
        result[half, first - start : end - start] = last[0, first:end]
    return result.movedim(-1, 1)
