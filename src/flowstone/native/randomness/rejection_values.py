"""Gamma and Poisson values by machine code (`rejection_code.py`), on a host.

The code is compiled on a thread when a plan first asks for it; what is called before it is there waits.
"""

from __future__ import annotations

import functools

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_code import RejectionValues
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.randomness.rejection_code import FUNCTIONS, PLACES, WORDS, rejection_code

__all__ = ["rejection_values"]

_WORK = 200  # of a value, in additions: two blocks of random words and some logarithms
_HALF = 1 << 64


def rejection_values(how: str) -> RejectionValues | None:
    """What draws values of a distribution of `PLACES`; None if there is no native tier."""
    if not flags.NATIVE or host.reason() or not all(map(host.has, FUNCTIONS)):
        return None
    return functools.partial(_drawn, _library(), how)


@functools.cache
def _library() -> CodeLibrary:
    return CodeLibrary(rejection_code, WORDS, PLACES)


def _drawn(
    library: CodeLibrary, how: str, key: int, counter: int, parameters: torch.Tensor, samples: int
) -> torch.Tensor:
    out = torch.empty(samples, len(parameters), dtype=torch.float64)
    has_team = out.numel() * _WORK >= machine.current().profile.native_team
    words = {
        "threads": torch.get_num_threads() if has_team else 1,
        "distributions": len(parameters),
        "samples": samples,
        "key": _signed(key),
        "low": _signed(counter % _HALF),
        "high": _signed(counter // _HALF),
    }
    library.call(how, words, {"parameters": parameters.contiguous(), "out": out})
    return out


def _signed(word: int) -> int:
    return word - _HALF if word >= _HALF >> 1 else word
