"""Convolutions of small images, and both their gradients, in machine code (`direct_code.py`), on a host.

The code is compiled on a thread when a plan first asks for it; what is called before it is there waits.
Threads share the blocks of a call that is large enough, and each number is made by one of them: its terms are
added in the same order however many threads there are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.network_code import Windows
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.networks.direct_code import PLACES, WORDS, direct_code
from flowstone.native.networks.direct_tables import Tables, least_products, tables

__all__ = ["direct_windows", "pays", "products"]

_MOST_NUMBERS = 1 << 16  # of all tables of a call
_MOST_PRODUCTS = 1 << 26  # of numbers, beyond which no table is made to see


def direct_windows(
    kind: str, seen: Windows, biased: bool = False, rectified: bool = False
) -> Callable[..., torch.Tensor | None] | None:
    """The function of images and filter ("results"), gradient and filter ("images"), or images and gradient
    ("filter"): `DirectWindows`. None where it does not pay, or there is no native tier."""
    made = _tables(kind, seen) if pays(kind, seen) else None
    if made is None:
        return None
    _library().prepare("windows")
    return _Sums(made, any(seen.before) or _reaches_out(seen), biased, rectified)


def pays(kind: str, seen: Windows) -> bool:
    """Whether a convolution, or a gradient, is expected to be faster in this code than by a library."""
    if not flags.NATIVE or host.reason():
        return False
    most = machine.current().profile.direct_products
    if least_products(kind, seen, host.lanes()) > most:  # tables of large images take long to make
        return False
    made = _tables(kind, seen)
    return made is not None and made.products <= most


def products(kind: str, seen: Windows) -> int | None:
    """How many products of two vectors the code takes; None where it has no tables."""
    made = _tables(kind, seen)
    return None if made is None else made.products


@functools.lru_cache(maxsize=256)
def _tables(kind: str, seen: Windows) -> Tables | None:
    if math.prod(seen.counts) * math.prod(seen.taps) * seen.images[3] * seen.outputs > _MOST_PRODUCTS:
        return None
    made = tables(kind, seen, host.lanes())
    return made if made is not None and made.terms.size + made.blocks.size <= _MOST_NUMBERS else None


def _reaches_out(seen: Windows) -> bool:
    """Whether windows reach beyond the end of images."""
    found = zip(seen.images[1:3], seen.counts[1:], seen.taps, seen.strides, seen.dilations, seen.before)
    return any((n - 1) * s + (t - 1) * d + 1 - b > length for length, n, t, s, d, b in found)


@functools.cache
def _library() -> CodeLibrary:
    return CodeLibrary(lambda: direct_code(host.lanes()), WORDS, PLACES)


class _Sums:
    """The function of a geometry; `is_padded`: zeros around the images are multiplied."""

    def __init__(self, made: Tables, is_padded: bool, biased: bool, rectified: bool) -> None:
        self._shape, self._is_padded = made.shape, is_padded
        words = {**made.words, "biased": int(biased), "rectified": int(rectified)}
        self._copied = words["size"]
        self._turned = words["taps"] * words.get("tap_rows", 0) * words.get("tap_columns", 0)
        self._most = torch.get_num_threads() if made.products >= machine.current().profile.direct_team else 1
        self._arrays = {name: getattr(made, name) for name in ("places", "taps", "terms", "blocks", "ranges")}
        fixed = {name: each.ctypes.data for name, each in self._arrays.items()}
        self._call = _library().bound("windows", words, fixed, more=self._most - 1)

    def __call__(
        self, images: torch.Tensor, factors: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor | None:
        images, factors = images.contiguous(), factors.contiguous()
        bias = None if bias is None else bias.contiguous()
        result, copy = torch.empty(self._shape), torch.empty(self._copied + self._turned)
        read, by, start = images.data_ptr(), factors.data_ptr(), copy.data_ptr()
        memory = self._call(
            min(self._most, torch.get_num_threads()),
            read,
            by,
            result.data_ptr(),
            start if self._copied else read,
            start + 4 * self._copied if self._turned else by,
            by if bias is None else bias.data_ptr(),
        )
        return None if self._is_padded and any(memory[-self._most :]) else result
