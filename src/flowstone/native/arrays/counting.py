"""Counts by machine code (`count_code.py`), as functions of tensors on a host.

The code is compiled on a thread: that of bins when a plan first asks, that of groups, which depends on what
is given, when it is first called. What is called before it is there waits.
"""

from __future__ import annotations

import ctypes
import functools

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.native.arrays.count_code import (
    BIN_PLACES,
    BIN_WORDS,
    GROUP_PLACES,
    GROUP_WORDS,
    bins_code,
    groups_code,
)
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.codegen.emitter import SIZES

__all__ = ["BinCounts", "GroupCounts", "bin_counts", "group_counts"]

_NUMBERS = frozenset({"int32", "int64", "float32", "float64"})
_WORK = 8  # of a number's bin, in additions
_TABLES, _FEW = 4, 64  # tables of a thread where there are so many numbers a bin
_EXACTLY = {torch.float32: 2**24}  # as many counts as a type has exactly


class BinCounts:
    """The function for a type of numbers."""

    def __init__(self, dtype: str) -> None:
        self._library = _bins(dtype)

    def __call__(self, values: torch.Tensor, low: float, step: float, bins: int) -> torch.Tensor | None:
        """How many of the values are in each bin, int64; None if one is NaN, or there are no such bins."""
        if bins >= 2**31:
            return None
        count = values.numel()
        has_team = count * _WORK >= machine.current().profile.native_team and bins < count
        threads = torch.get_num_threads() if has_team else 1
        tables = _TABLES if bins * _FEW <= count else 1
        counts = torch.zeros((threads * tables, bins), dtype=torch.int64)
        notes, numbers = torch.zeros(threads, dtype=torch.int64), (ctypes.c_double * 2)(low, step)
        words = {"threads": threads, "count": count, "bins": bins, "tables": tables}
        if not values.is_floating_point():
            words["low"] = int(low)
        places: dict[str, torch.Tensor | int] = {
            "values": values.contiguous(), "numbers": ctypes.addressof(numbers), "counts": counts,
            "notes": notes,
        }  # fmt: skip
        self._library.call("bins", words, places)
        return None if any(notes.tolist()) else counts.sum(0) if len(counts) > 1 else counts[0]


class GroupCounts:
    """The function for types of the values and of the weights."""

    def __init__(self, value: str, weight: str) -> None:
        self._library = functools.partial(_groups, value, weight)

    def __call__(
        self,
        rows: torch.Tensor | None,
        values: torch.Tensor,
        weights: torch.Tensor,
        sizes: tuple[int, int, int],
        is_binary: bool,
    ) -> torch.Tensor | None:
        """How often each value below `bins` occurs in each group; None if a row is out of bounds, or the
        type of the weights cannot count so far."""
        groups, width, bins = sizes
        if not len(weights) and values.numel() >= _EXACTLY.get(weights.dtype, 2**31):
            return None
        out, note = torch.zeros((groups, bins), dtype=weights.dtype), ctypes.c_int64()
        words = {"count": values.numel(), "groups": groups, "width": width, "bins": bins}
        places: dict[str, torch.Tensor | int] = {
            "rows": 0 if rows is None else rows.contiguous(), "values": values.contiguous(),
            "weights": weights.contiguous(), "out": out, "notes": ctypes.addressof(note),
        }  # fmt: skip
        how = "marked" if is_binary else "weighed" if len(weights) else "counted"
        self._library(0 if rows is None else rows.shape[1], how).call("groups", words, places)
        return None if note.value else out


@functools.cache
def _bins(dtype: str) -> CodeLibrary:
    lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
    return CodeLibrary(lambda: bins_code(dtype, lanes), BIN_WORDS, BIN_PLACES)


@functools.cache
def _groups(value: str, weight: str, rank: int, how: str) -> CodeLibrary:
    return CodeLibrary(lambda: groups_code(value, weight, rank, how), GROUP_WORDS, GROUP_PLACES)


def _names(*types: torch.dtype | None) -> list[str] | None:
    """The types' names; None where there is no code."""
    if not flags.NATIVE or host.reason():
        return None
    names = [dtypes.from_torch(each).name for each in types if each is not None]
    return names if len(names) == len(types) and _NUMBERS.issuperset(names) else None


def bin_counts(dtype: torch.dtype | None) -> BinCounts | None:
    """What counts numbers of a type in bins of one width; None if there is nothing, or no native tier."""
    names = _names(dtype)
    return BinCounts(*names) if names else None


def group_counts(value: torch.dtype | None, weight: torch.dtype | None) -> GroupCounts | None:
    """What counts whole numbers in groups, for types of the values and of the weights; None if there is
    nothing, or no native tier."""
    names = _names(value, weight)
    return GroupCounts(*names) if names and names[0].startswith("int") else None
