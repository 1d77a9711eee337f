"""Histograms over limits that grow by a factor, by machine code (`histogram_code.py`), on a host.

The code for a type is compiled on a thread when a plan first asks for it; what is called before it is there
waits.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import torch

from flowstone.framework import flags
from flowstone.framework.types import dtypes
from flowstone.native.arrays.histogram_code import PLACES, SHIFT, TABLES, WORDS, histogram_code
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.codegen.emitter import FLOATS

__all__ = ["SizeHistogram", "size_histogram"]


class SizeHistogram:
    """The function for a type and positive limits, rising, of which the last is the largest number; each
    other is more than 1.0625 times the one before."""

    def __init__(self, dtype: str, limits: tuple[float, ...]) -> None:
        self._library, self._limits = _library(dtype), np.array(limits)
        self._library.prepare()
        cells = self._limits[[0, -2]].view(np.int64) >> SHIFT
        self._first = int(cells[0])
        starts = np.arange(cells[0], cells[1] + 2) << SHIFT
        self._below = torch.from_numpy(
            np.searchsorted(self._limits, starts.view(np.float64), side="right").astype(np.int32)
        )
        self._below[0] = 0

    def __call__(self, values: torch.Tensor) -> tuple[torch.Tensor, list[float]] | None:
        """(how many values are from each limit on below the next, int64 [2 limits + 1]; the least, the
        largest, the sum, the sum of squares, in float64); None if a value or the last sum is not finite."""
        sides = len(self._limits)
        counts = torch.zeros((TABLES, 2 * sides + 1), dtype=torch.int64)
        totals = torch.empty(4, dtype=torch.float64)
        words = {
            "count": values.numel(), "sides": sides, "first": self._first, "cells": len(self._below),
        }  # fmt: skip
        places: dict[str, torch.Tensor | int] = {
            "values": values.contiguous(), "below": self._below, "limits": self._limits.ctypes.data,
            "counts": counts, "totals": totals,
        }  # fmt: skip
        self._library.call("histogram", words, places)
        found = totals.tolist()
        return (counts.sum(0), found) if math.isfinite(found[3]) else None


@functools.cache
def _library(dtype: str) -> CodeLibrary:
    return CodeLibrary(lambda: histogram_code(dtype), WORDS, PLACES)


def size_histogram(dtype: torch.dtype | None, limits: tuple[float, ...]) -> SizeHistogram | None:
    """The function for a type and positive limits; None if there is none, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype is None:
        return None
    name = dtypes.from_torch(dtype).name
    return _histogram(name, limits) if name in FLOATS else None


@functools.cache
def _histogram(dtype: str, limits: tuple[float, ...]) -> SizeHistogram:
    return SizeHistogram(dtype, limits)
