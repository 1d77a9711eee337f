"""Quotients, remainders and powers of many integers by machine code (`quotient_code.py`), on a host.

The code for a type is made on a thread when a kernel first asks; until it is there, and where there is no
native tier, `quotients` is None. Threads share the elements where that is worth it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np
import torch

from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary, when_asked
from flowstone.native.numerics.quotient_code import PLACES, WORDS, quotient_code

__all__ = ["Quotients", "quotients"]

_TYPES = {getattr(torch, name): name for name in ("int8", "uint8", "int16", "int32", "int64")}
_WORK = 8  # of an element, in additions


class Quotients:
    """The functions for a type."""

    def __init__(self, dtype: str) -> None:
        self._library = CodeLibrary(lambda: quotient_code(dtype, host.lanes()), WORDS, PLACES)

    def __call__(self, name: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor | None:
        """What `name` (of `PLACES`) gives of x and y, None where a divisor is 0, an exponent below,
        or they do not broadcast."""
        try:
            shape = np.broadcast_shapes(x.shape, y.shape)  # torch's own imports sympy: 0.1 s
        except ValueError:
            return None  # ATen says why
        is_one = y.numel() == 1
        x = x.expand(shape).contiguous()
        y = y.contiguous() if is_one else y.expand(shape).contiguous()
        out, note = torch.empty_like(x), ctypes.c_int64()
        has_team = x.numel() * _WORK >= machine.current().profile.native_team
        words = {
            "threads": torch.get_num_threads() if has_team else 1, "count": x.numel(), "is_one": int(is_one),
        }  # fmt: skip
        places: dict[str, torch.Tensor | int] = {
            "x": x, "y": y, "out": out, "notes": ctypes.addressof(note)
        }  # fmt: skip
        self._library.call(name, words, places)
        return None if note.value else out


@functools.cache
def _asked(dtype: str) -> Callable[[], Quotients | None]:
    return when_asked(lambda: Quotients(dtype))


def quotients(dtype: torch.dtype | None) -> Quotients | None:
    """The functions for integers of a type; None if there are none, or not yet."""
    return _asked(_TYPES[dtype])() if dtype in _TYPES else None
