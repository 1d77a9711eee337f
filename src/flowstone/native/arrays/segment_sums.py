"""Reductions over segments by machine code (`segment_code.py`), as functions of tensors on a host.

The code for the types of rows, indices and segment numbers is compiled on a thread when a plan first asks
(`segment_sums` of rows that are picked, `segment_rows` of all, `unsorted_rows` of all in any order and
`picked_sums` of picked ones in any, `unsorted_code.py`); what is called before it is there waits.
Threads share what is worth it.
"""

from __future__ import annotations

import ctypes
import functools
import math

import numpy as np
import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.native.arrays import unsorted_code
from flowstone.native.arrays.segment_code import PLACES, ROW_PLACES, WORDS, row_code, segment_code
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.codegen.emitter import FLOATING, FLOATS, INTEGERS, SIZES

__all__ = [
    "PickedCode",
    "RowCode",
    "SegmentCode",
    "UnsortedCode",
    "picked_sums",
    "segment_rows",
    "segment_sums",
    "unsorted_rows",
]

_SHARED = 2  # vectors of a row, from which threads gain more than each needs to look at all numbers
_SHARED_PICKED = 8  # the same where each thread asks for all rows that are picked
_FEW = 64  # indices that Python ranks faster
_WORK = 4  # of an element of a picked row, in additions


def _floats() -> frozenset[str]:
    return FLOATING if host.has_halves() else FLOATS


def _total(dtype: torch.dtype) -> torch.dtype:
    """The type that sums and products are computed in."""
    return torch.float32 if dtype is torch.float16 else dtype


def _numbers() -> frozenset[str]:
    return _floats() | INTEGERS


def segment_sums(how: str, *types: torch.dtype | None) -> SegmentCode | None:
    """The functions for a "sum", "mean" or "sqrtn", for the types of rows, indices and segments' numbers;
    None if there are none, or no native tier."""
    if not flags.NATIVE or host.reason() or None in types:
        return None
    names = tuple(dtypes.from_torch(each).name for each in types if each is not None)
    allowed = _numbers() if how == "sum" else _floats()
    if names[0] not in allowed or not set(names[1:]) <= {"int32", "int64"}:
        return None
    return SegmentCode(_library(how, names))


@functools.cache
def _library(how: str, types: tuple[str, ...]) -> CodeLibrary:
    dtype, index, id_type = types
    lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
    return CodeLibrary(lambda: segment_code(how, (dtype, index, id_type), lanes), WORDS, PLACES)


class SegmentCode:
    """The functions for one reduction and three types."""

    def __init__(self, library: CodeLibrary) -> None:
        self._library = library

    def reduce(
        self, data: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, count: int
    ) -> torch.Tensor | None:
        """[count, …]; None if the numbers cannot be."""
        out = torch.empty((count, *data.shape[1:]), dtype=data.dtype)
        return self._call("reduce", data, indices, ids, out, (data.shape[0], count))

    def spread(
        self, dy: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, rows: int
    ) -> torch.Tensor | None:
        """The gradient [rows, …]; None if the numbers cannot be."""
        out = torch.zeros((rows, *dy.shape[1:]), dtype=_total(dy.dtype))
        found = self._call("spread", dy, indices, ids, out, (rows, dy.shape[0]))
        return found if found is None or out.dtype is dy.dtype else found.to(dy.dtype)

    def spread_picked(
        self, dy: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, rows: int
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The gradient of the rows that are picked, and their indices, sorted; None if the numbers cannot
        be."""
        if 0 < indices.shape[0] <= _FEW:
            return self._spread_few(dy, indices, ids, rows)
        ordered, order = indices.sort()
        ranks, found, notes = torch.empty_like(ordered), torch.empty_like(ordered), (ctypes.c_int64 * 2)()
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(notes), "indices": ordered, "order": order, "ranks": ranks,
            "found": found,
        }  # fmt: skip
        self._library.call("rank", {"count": indices.shape[0], "rows": rows}, places)
        flows = None if notes[0] else self.spread(dy, ranks, ids, notes[1])
        return None if flows is None else (flows, found[: notes[1]])

    def _spread_few(
        self, dy: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, rows: int
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The same of few indices, which Python ranks."""
        at, kind = indices.tolist(), indices.numpy().dtype
        found = sorted(set(at))
        if not 0 <= found[0] <= found[-1] < rows:
            return None
        ranks = {index: i for i, index in enumerate(found)}
        ranked = torch.from_numpy(np.array([ranks[index] for index in at], kind))
        flows = self.spread(dy, ranked, ids, len(found))
        return None if flows is None else (flows, torch.from_numpy(np.array(found, kind)))

    def _call(
        self,
        name: str,
        data: torch.Tensor,
        indices: torch.Tensor,
        ids: torch.Tensor,
        out: torch.Tensor,
        sizes: tuple[int, int],
    ) -> torch.Tensor | None:
        count, columns = indices.shape[0], math.prod(data.shape[1:])
        words = {
            "threads": _threads(count * columns), "count": count, "rows": sizes[0], "segments": sizes[1],
            "columns": columns,
        }  # fmt: skip
        note = ctypes.c_int64()
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "indices": indices.contiguous(), "ids": ids.contiguous(),
            "data": data.contiguous(), "out": out,
        }  # fmt: skip
        self._library.call(name, words, places)
        return None if note.value else out


def segment_rows(how: str, *types: torch.dtype | None) -> RowCode | None:
    """What reduces all rows, by the types of these and of the segments' numbers; None if there is none."""
    if not flags.NATIVE or host.reason() or None in types:
        return None
    dtype, ids = (dtypes.from_torch(each).name for each in types if each is not None)
    if dtype not in _numbers() or ids not in ("int32", "int64"):
        return None
    return RowCode(_row_library(how, dtype, ids))


@functools.cache
def _row_library(how: str, dtype: str, ids: str) -> CodeLibrary:
    lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
    return CodeLibrary(lambda: row_code(how, (dtype, ids), lanes), WORDS, ROW_PLACES)


class RowCode:
    """The function for one reduction and two types."""

    def __init__(self, library: CodeLibrary) -> None:
        self._library = library

    def __call__(self, data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor | None:
        """[count, …]; None if the numbers cannot be."""
        out = torch.empty((count, *data.shape[1:]), dtype=data.dtype)
        words = {
            "threads": _threads(data.numel()), "count": ids.shape[0], "segments": count,
            "columns": math.prod(data.shape[1:]),
        }  # fmt: skip
        note = ctypes.c_int64()
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "ids": ids.contiguous(), "data": data.contiguous(), "out": out
        }  # fmt: skip
        self._library.call("gather_up", words, places)
        return None if note.value else out


def unsorted_rows(how: str, *types: torch.dtype | None) -> UnsortedCode | None:
    """What reduces rows by numbers in any order, by the types of both; None if there is none."""
    if not flags.NATIVE or host.reason() or None in types:
        return None
    dtype, ids = (dtypes.from_torch(each).name for each in types if each is not None)
    if dtype not in _numbers() or ids not in ("int32", "int64"):
        return None
    lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
    return UnsortedCode(_unsorted_library(how, dtype, ids, lanes), lanes, how in ("min", "max"))


@functools.cache
def _unsorted_library(how: str, dtype: str, ids: str, lanes: int) -> CodeLibrary:
    text = functools.partial(unsorted_code.unsorted_code, how, dtype, ids, lanes)
    return CodeLibrary(text, unsorted_code.WORDS, unsorted_code.PLACES)


class UnsortedCode:
    """The function for one reduction and two types; so many `lanes` have vectors of rows; results that are
    some of the elements are of their type (`chooses`)."""

    def __init__(self, library: CodeLibrary, lanes: int, chooses: bool) -> None:
        self._library, self._lanes, self._chooses = library, lanes, chooses

    def __call__(self, data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor | None:
        """[count, …]; None if a number is not below the count."""
        sizes = data.shape[1:]
        columns = math.prod(sizes)
        threads = _threads(data.numel()) if columns >= _SHARED * self._lanes else 1
        kind = data.dtype if self._chooses else _total(data.dtype)
        out, seen = torch.empty((count, *sizes), dtype=kind), torch.empty(count, dtype=torch.uint8)
        words = {"threads": threads, "count": ids.shape[0], "segments": count, "columns": columns}
        note = ctypes.c_int64()
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "ids": ids.contiguous(), "data": data.contiguous(), "out": out,
            "seen": seen,
        }  # fmt: skip
        self._library.call("reduce", words, places)
        return None if note.value else out if kind is data.dtype else out.to(data.dtype)


def picked_sums(types: tuple[torch.dtype | None, ...], with_absent: bool) -> PickedCode | None:
    """What adds up rows that indices pick by numbers in any order, by the types of rows, numbers and indices;
    None if there is none. `with_absent`: negative indices stand for zeros."""
    if not flags.NATIVE or host.reason() or None in types:
        return None
    dtype, *numbers = (dtypes.from_torch(each).name for each in types if each is not None)
    if dtype not in _numbers() or not set(numbers) <= {"int32", "int64"}:
        return None
    lanes = host.lanes() * SIZES["float32"] // SIZES[dtype]
    return PickedCode(_picked_library(dtype, *numbers, lanes, with_absent), lanes)


@functools.cache
def _picked_library(dtype: str, ids: str, indices: str, lanes: int, with_absent: bool) -> CodeLibrary:
    text = functools.partial(unsorted_code.unsorted_code, "sum", dtype, ids, lanes, indices, with_absent)
    return CodeLibrary(text, unsorted_code.WORDS, unsorted_code.PLACES)


class PickedCode:
    """The function for three types; so many `lanes` have vectors of rows."""

    def __init__(self, library: CodeLibrary, lanes: int) -> None:
        self._library, self._lanes = library, lanes

    def __call__(
        self, data: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, count: int
    ) -> torch.Tensor | None:
        """[count, …]; None if a number is not below the count, or an index none of a row."""
        sizes = data.shape[1:]
        columns, elements = math.prod(sizes), indices.numel()
        threads = _threads(elements * columns) if columns >= _SHARED_PICKED * self._lanes else 1
        out = torch.empty((count, *sizes), dtype=_total(data.dtype))
        words = {
            "threads": threads, "count": elements, "segments": count, "columns": columns,
            "rows": data.shape[0],
        }  # fmt: skip
        note = ctypes.c_int64()
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "ids": ids.contiguous(), "data": data.contiguous(), "out": out,
            "indices": indices.contiguous(),
        }  # fmt: skip
        self._library.call("pick", words, places)
        return None if note.value else out if out.dtype is data.dtype else out.to(data.dtype)


def _threads(elements: int) -> int:
    return torch.get_num_threads() if elements * _WORK >= machine.current().profile.native_team else 1
