"""Tensors of which a kernel reads the shape and the strides, but no value."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence

import torch


def untouched(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A tensor of this shape on the host over address space alone: pages that nobody writes take no memory.

    Reading it gives zeros.
    """
    pages = mmap.mmap(-1, max(math.prod(shape), 1) * dtype.itemsize)
    return torch.frombuffer(pages, dtype=dtype, count=math.prod(shape)).view(tuple(shape))
