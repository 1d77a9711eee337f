"""Convolutions of many tiny images of few channels as products of matrices.

Kernels for convolutions fill vectors with channels; of two or three they leave most of a vector empty. An
image of few elements is a row of a matrix [images, elements], and the filter makes a matrix [elements,
results] that has each of its numbers wherever a window meets an element, and zeros elsewhere: it costs more
multiplications, and BLAS does them at its full rate. Of the gradient by the filter the product has a number
for every element and result, of which those that belong to one number of the filter are summed up.

    7000 volumes [2, 3, 3, 2] to 2 channels, 2 x 2 x 2: 5.0 ms, so 0.3; the gradient by the filter 1.7 and 0.4

A zero times an infinity would be no number: where a result is not finite, ATen computes all once more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import Environment
from flowstone.framework.types import dtypes
from flowstone.ops.networks.convolution_arrangement import Arrangement

__all__: list[str] = []

_Kernel = Callable[..., torch.Tensor]


_FEWEST = 64  # images, of which the filter's matrix does not cost more than their convolution


def suits(seen: Arrangement, env: Environment, dtype: Any, is_gradient: bool = False) -> bool:
    """Whether a product is faster: convolutions of few channels take as long as there are positions."""
    if env.device.type != "cpu" or dtype not in (dtypes.float32, dtypes.float64) or seen.image[0] < _FEWEST:
        return False
    profile = env.machine.profile
    most = profile.tiny_gradients if is_gradient else profile.tiny_images
    return bool(math.prod(seen.image[1:]) * seen.kernel[-1] <= most)


def _places(seen: Arrangement) -> torch.Tensor:
    """Of every element of an image and every result, the number of the filter that joins them, flat; behind
    the last one where none does."""
    lengths = seen.geometry.sizes_of(seen.image)
    taps: Any = np.zeros((1, 1), np.int64)  # [positions of images, of results]
    for i, (length, count, size) in enumerate(zip(lengths, seen.counts, seen.kernel)):
        distances = np.arange(length)[:, None] - (np.arange(count) * seen.strides[i] - seen.before[i])
        tap, rest = np.divmod(distances, seen.dilations[i])
        is_tap = (rest == 0) & (tap >= 0) & (tap < size)
        outer, inner = taps[:, None, :, None], np.where(is_tap, tap, -1)[None, :, None, :]
        joined = np.where((outer < 0) | (inner < 0), -1, outer * size + inner)
        taps = joined.reshape(len(taps) * length, -1)
    return torch.from_numpy(_with_channels(seen, taps).reshape(-1))


def _with_channels(seen: Arrangement, taps: np.ndarray) -> np.ndarray:
    """The places of taps [positions of images, of results], with the channels of both in the node's order."""
    *_, inner, outputs = seen.kernel
    inputs = seen.channels
    x, y = np.arange(inputs)[:, None, None], np.arange(outputs)
    is_joined = x // inner == y // (outputs // seen.groups)
    taps = taps[:, None, :, None]
    found = np.where(
        (taps >= 0) & is_joined, (taps * inner + x % inner) * outputs + y, math.prod(seen.kernel)
    )
    return found if seen.geometry.last else found.transpose(1, 0, 3, 2)


def _rows(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(len(x), -1)


def _result_dims(seen: Arrangement) -> tuple[int, ...]:
    counts, outputs = seen.given_counts, seen.kernel[-1]
    return (seen.image[0], *counts, outputs) if seen.geometry.last else (seen.image[0], outputs, *counts)


def _matrix(places: torch.Tensor, kernel: torch.Tensor, elements: int) -> torch.Tensor:
    """[elements of an image, results]."""
    numbers = torch.cat([kernel.reshape(-1), kernel.new_zeros(1)])
    return numbers.index_select(0, places).view(elements, -1)


def _finite(found: torch.Tensor, shape: tuple[int, ...], otherwise: _Kernel, *inputs: Any) -> torch.Tensor:
    return found.view(shape) if math.isfinite(found.sum().item()) else otherwise(*inputs)


def forward(seen: Arrangement, otherwise: _Kernel) -> _Kernel:
    """The kernel of (images, filter)."""
    places, elements, shape = _places(seen), math.prod(seen.image[1:]), _result_dims(seen)

    def run(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
        found = _rows(x) @ _matrix(places, kernel, elements)
        return _finite(found, shape, otherwise, x, kernel)

    return run


def by_input(seen: Arrangement, otherwise: _Kernel) -> _Kernel:
    """The kernel of (sizes, filter, gradient of the results)."""
    places, elements = _places(seen), math.prod(seen.image[1:])

    def run(sizes: Any, kernel: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        found = _rows(dy) @ _matrix(places, kernel, elements).t()
        return _finite(found, seen.given_image, otherwise, sizes, kernel, dy)

    return run


def by_filter(seen: Arrangement) -> _Kernel:
    """The kernel of (images, sizes, gradient of the results)."""
    places, count = _places(seen), math.prod(seen.kernel)

    def run(x: torch.Tensor, sizes: Any, dy: torch.Tensor) -> torch.Tensor:
        every = (_rows(x).t() @ _rows(dy)).view(-1)
        return x.new_zeros(count + 1).index_add_(0, places, every)[:count].view(seen.given_kernel)

    return run
