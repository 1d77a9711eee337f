"""Steps take numbers too small to be normal for zero, as TensorFlow's do.

A float32 below 1.2e-38, or a float64 below 2.2e-308, has fewer digits the smaller it is, and a processor
takes ten times as long and more over it: a network that has learnt all there is comes to gradients of such
numbers, and its steps would become slower and slower. Processors read and write them as zeros where a thread
asks for it, which TensorFlow's threads do. So does the thread that runs a step, while it runs it; a team of
threads that is made meanwhile does so from then on. What only moves numbers leaves them as they are.

>>> import torch
>>> flushing(lambda x: x * 1)(torch.tensor(1e-40)).item()
0.0
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from torch import set_flush_denormal

__all__ = ["flushing"]

_Result = TypeVar("_Result")
_SMALL = 1e-310  # greater than zero, unless such numbers are taken for it


def flushing(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """The function, of positional arguments, that takes such numbers for zero on the thread that calls it,
    and leaves the thread as it was."""

    @functools.wraps(function)
    def run(*arguments: Any) -> _Result:
        if not _SMALL > 0.0:
            return function(*arguments)
        set_flush_denormal(True)
        try:
            return function(*arguments)
        finally:
            set_flush_denormal(False)

    return run
