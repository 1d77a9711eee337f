"""The incomplete beta function's continued fraction by machine code (`fraction_code.py`), on a host.

The code is compiled on a thread when a plan first asks for it; what is called before it is there waits.
"""

from __future__ import annotations

import ctypes
import functools

import torch

from flowstone.framework import flags, machine
from flowstone.framework.machine_code import BetaFraction
from flowstone.native import host
from flowstone.native.code_library import CodeLibrary
from flowstone.native.fraction_code import PLACES, WORDS, fraction_code

__all__ = ["beta_fraction"]

_WORK = 500  # of an element, in additions: some ten steps, with six quotients each


def beta_fraction() -> BetaFraction | None:
    """The function; None if there is no native tier."""
    if not flags.NATIVE or host.reason():
        return None
    return functools.partial(_fraction, _library())


@functools.cache
def _library() -> CodeLibrary:
    return CodeLibrary(lambda: fraction_code(host.lanes() // 2), WORDS, PLACES)


def _fraction(
    library: CodeLibrary, a: torch.Tensor, b: torch.Tensor, x: torch.Tensor, precise: float, most: int
) -> torch.Tensor:
    out, limit = torch.empty(x.shape, dtype=torch.float64), ctypes.c_double(precise)
    has_team = x.numel() * _WORK >= machine.current().profile.native_team
    words = {"threads": torch.get_num_threads() if has_team else 1, "count": x.numel(), "most": most}
    places: dict[str, torch.Tensor | int] = {
        "precise": ctypes.addressof(limit), "a": a.contiguous(), "b": b.contiguous(), "x": x.contiguous(),
        "out": out,
    }  # fmt: skip
    library.call("fraction", words, places)
    return out
