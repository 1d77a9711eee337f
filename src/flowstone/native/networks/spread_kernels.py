"""Convolutions with few results a position by machine code (`spread_code.py`), on a host.

The code is compiled on a thread when a plan first asks for it; what is called before it is there waits.
"""

from __future__ import annotations

import functools
import math

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.networks.spread_code import MOST_PRODUCTS, PLACES, WORDS, spread_code

__all__ = ["Spread", "spreads"]


def spreads(products: int) -> bool:
    """Whether there is code for so many products of a position, which are taps times outputs."""
    return bool(flags.NATIVE) and not host.reason() and products <= MOST_PRODUCTS


class Spread:
    """The function of a geometry; `words`: the numbers of a call but for the first, by their names."""

    def __init__(self, words: dict[str, int]) -> None:
        self._library = _library()
        self._library.prepare("spread")
        self._words = words
        self._filter = [words[name] for name in ("channels", "taps_down", "taps_across", "outputs")]
        self._results = [words[name] for name in ("batch", "height", "width", "outputs")]
        work = math.prod(words[name] for name in ("batch", "rows", "columns")) * math.prod(self._filter)
        self._has_team = work >= machine.current().profile.native_team

    def __call__(self, images: torch.Tensor, filters: torch.Tensor) -> torch.Tensor:
        """The results [batch, height, width, outputs] of images, channels last, of float32, and a filter
        [channels, taps down, taps across, outputs]; both may lie in any order."""
        images, results = images.contiguous(), images.new_zeros(self._results)
        size = math.prod(self._filter)
        room = images.new_empty(size + host.lanes())
        room[:size].view(self._filter).copy_(filters)
        threads = torch.get_num_threads() if self._has_team else 1
        places = {"images": images, "filter": room, "results": results}
        self._library.call("spread", {"threads": threads, **self._words}, places)
        return results


@functools.cache
def _library() -> CodeLibrary:
    return CodeLibrary(lambda: spread_code(host.lanes()), WORDS, PLACES)
