"""Pooling over windows in machine code, as functions of tensors (`window_pool_code.py`), on a host.

The code for a type is compiled on a thread when it is first asked for; until then, and where there is no
native tier, `window_pool` is None. Threads share the rows of results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch

from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, when_asked
from flowstone.native.codegen.emitter import HALF, SIZES
from flowstone.native.networks.window_pool_code import PLACES, WORDS, window_pool_code

__all__ = ["WindowPool", "window_pool"]

_NAMES = {
    torch.float16: HALF, torch.float32: "float32", torch.float64: "float64", torch.uint8: "uint8",
    torch.int8: "int8",
}  # fmt: skip
_AXES = 3


class WindowPool:
    """The functions for a type of numbers."""

    def __init__(self, dtype: str) -> None:
        lanes = host.lanes() * SIZES["float32"] // max(SIZES[dtype], SIZES["float32"])
        self._library = CodeLibrary(lambda: window_pool_code(dtype, lanes), WORDS, PLACES)

    def __call__(
        self,
        name: str,
        images: torch.Tensor,
        counts: Sequence[int],
        windows: Sequence[Sequence[int]],
        from_infinity: bool = False,
    ) -> torch.Tensor:
        """See `network_code.WindowPool`."""
        batch, *lengths, channels = images.shape
        out = images.new_empty((batch, *counts, channels))
        has_team = images.numel() >= machine.current().profile.pool_team
        words = {
            "threads": torch.get_num_threads() if has_team else 1, "batch": batch, "channels": channels,
            "from_infinity": int(from_infinity),
        }  # fmt: skip
        rest = _AXES - len(lengths)
        sizes, strides, before = windows
        for key, values, other in (
            ("length", lengths, 1), ("count", counts, 1), ("size", sizes, 1), ("stride", strides, 1),
            ("before", before, 0),
        ):  # fmt: skip
            words |= {f"{key}{i}": each for i, each in enumerate([*[other] * rest, *values])}
        self._library.call(name, words, {"images": images, "out": out})
        return out


@functools.cache
def _asked(dtype: str) -> Callable[[], WindowPool | None]:
    return when_asked(lambda: WindowPool(dtype))


def window_pool(dtype: torch.dtype | None) -> WindowPool | None:
    """What pools numbers of a type; None if it is not there, or not yet."""
    if dtype not in _NAMES or (dtype is torch.float16 and not host.has_halves()):
        return None
    return _asked(_NAMES[dtype])()
