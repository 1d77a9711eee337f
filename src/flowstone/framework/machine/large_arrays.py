"""Large arrays for results: memory that the allocator finds again once it is free.

ATen asks glibc for aligned memory. glibc cuts off what lies before and behind, and keeps these small pieces
for small objects; so the block, when it is free, is a little too small for the next array of its size, and
results of one size wander through the caches. An array of NumPy has a block of its own size.

>>> large_array((2, 3), torch.int32).shape, large_array((5,), torch.int8).data_ptr() % 64
(torch.Size([2, 3]), 0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch

__all__ = ["into_large_array", "large_array"]

_LINE = 64  # bytes of the processor's memory, by which ATen aligns arrays


def large_array(dims: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """An array of the host, with anything in it. It costs some microseconds more than ATen's."""
    size = math.prod(dims) * dtype.itemsize
    try:
        block = np.empty(size + _LINE, np.uint8)
    except MemoryError:
        return torch.empty(dims, dtype=dtype)  # which tells so in ATen's words
    first = -block.ctypes.data % _LINE
    return torch.from_numpy(block)[first : first + size].view(dtype).view(dims)


def into_large_array(function: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """ATen's `function` of each element of an array, with a result of its type in a large array."""

    def call(x: torch.Tensor) -> torch.Tensor:
        if x.requires_grad or not x.is_contiguous():
            return function(x)
        return function(x, out=large_array(x.shape, x.dtype))

    return call
