"""Convolutions of one small image or volume on a host: by oneDNN, as those of many.

ATen leaves batches of one with few elements (and filters of at most three rows and columns) to kernels of its
own, which unfold the image, know only channels first, and give all that follows this layout. Asked directly,
oneDNN convolves them, and what is convolved with dy. For the gradient by the filter there is no such way; of
a volume it is worth the gradient of a batch of two, the second of zeros.

    [1, 32, 32, 32, 8] to 16 channels, 3 x 3 x 3: 6.6 ms, so 0.6; its gradients 8.2 and 5.5, so 1.1 and 1.3
    [1, 16, 16, 64] to 64, 3 x 3: 0.11 ms, so 0.08; its gradient by the image 0.13, so 0.08
"""

from __future__ import annotations

import math
from typing import Any

import torch

from flowstone.framework import dtypes
from flowstone.framework.kernel import Call
from flowstone.ops.convolution_arrangement import Arrangement

__all__: list[str] = []

_FEW = 20480  # batch * channels * the first two lengths, up to which ATen uses its own kernels
_WORTH = 1_000_000  # multiplications; oneDNN's call costs 20 µs more than ATen's own for small images
_convolve = torch.ops.mkldnn._convolution_pointwise.default
_transpose = torch.ops.mkldnn._convolution_transpose_pointwise.default
_backward = torch.ops.aten.convolution_backward.default


def suits(seen: Arrangement, env: Any, dtype: Any, lengths: tuple[int, ...], channels: int) -> bool:
    """Whether ATen itself would pass over oneDNN for an image of these spatial lengths and channels."""
    if env.device.type != "cpu" or dtype is not dtypes.float32 or not torch.backends.mkldnn.is_available():
        return False
    if seen.image[0] != 1 or seen.groups != 1 or not seen.geometry.last or min(seen.kernel[:-2][-2:]) > 3:
        return False
    work = math.prod(seen.counts) * math.prod(seen.kernel)
    return channels * math.prod(lengths[:2]) <= _FEW and work >= _WORTH


def forward(seen: Arrangement, x: Any, kernel: Any) -> Call:
    """The call that convolves channels-first `x`."""
    call = Call(
        _convolve, x, kernel, None, seen.padding, seen.strides, seen.dilations, seen.groups, "none", (), ""
    )
    if len(seen.strides) < 3 or seen.image[-1] > 1:
        return call
    return Call(torch.Tensor.contiguous, call, memory_format=torch.channels_last_3d)  # one channel: unclear


def by_input(seen: Arrangement, dy: Any, kernel: Any, rest: tuple[int, ...]) -> Call:
    """The call that makes the gradient by the image, channels first; `rest`: what the result has more."""
    return Call(
        _transpose, dy, kernel, None, seen.padding, rest, seen.strides, seen.dilations, seen.groups,
        "none", (), "",
    )  # fmt: skip


def by_filter(seen: Arrangement, dy: Any, x: Any, weights: Any) -> Call:
    """The call that makes the gradient by the filter of a volume, channels first."""
    zeros = (0,) * len(seen.strides)
    both, likewise = Call(_with_zeros, dy), Call(_with_zeros, x)
    return Call(
        _backward, both, likewise, weights, None, seen.strides, seen.padding, seen.dilations, False, zeros,
        seen.groups, (False, True, False),
    )  # fmt: skip


def _with_zeros(x: torch.Tensor) -> torch.Tensor:
    """A batch of `x` and zeros, channels last in memory."""
    last = x.movedim(1, -1)
    result = last.new_zeros((2, *last.shape[1:]))
    result[:1] = last
    return result.movedim(-1, 1)
