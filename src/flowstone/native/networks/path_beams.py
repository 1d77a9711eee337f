"""Prefix beam search (`ops/networks/ctc_beams.py`) by machine code (`beam_code.py`), on a host.

The code for a type is compiled on a thread when a plan first asks for it; what is called before it is there
waits. Threads share the rows where that is worth it.
"""

from __future__ import annotations

import ctypes
import functools

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.codegen.emitter import FLOATS, SIZES, sleef_name
from flowstone.native.networks.beam_code import FIELDS, PLACES, WORD_FIELDS, WORDS, beams_code
from flowstone.native.numerics import exponential_functions

__all__ = ["PathBeams", "path_beams"]

_WORK = 50  # of a beam in a time step, in additions
_CANDIDATES = 2**31  # which 32 bits number


class PathBeams:
    """The function for a type."""

    def __init__(self, dtype: str) -> None:
        self._library, self._lanes = _library(dtype), _lanes(dtype)
        self._library.prepare()

    def __call__(
        self, logs: torch.Tensor, lengths: torch.Tensor, width: int, paths: int, merges: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
        """The labels [rows, paths, steps] of the best sequences, how many each has, and the logarithms of
        their probabilities, [rows, paths]; None if there are logarithms that are NaN."""
        steps, rows, classes = logs.shape
        if max(width, classes) >= _CANDIDATES:
            return None
        labels = torch.empty((rows, paths, steps), dtype=torch.int64)
        counts, scores = torch.empty((rows, paths), dtype=torch.int64), logs.new_empty(rows, paths)
        work = steps * rows * (width * _WORK + classes)
        threads = torch.get_num_threads() if work >= machine.current().profile.native_team else 1
        room = (width // self._lanes + 1) * self._lanes
        note = ctypes.c_int64()
        words = {
            "threads": threads, "steps": steps, "rows": rows, "classes": classes, "width": width,
            "paths": paths, "room": room, "merges": int(merges),
        }  # fmt: skip
        places: dict[str, torch.Tensor | int] = {
            "notes": ctypes.addressof(note), "logs": logs.contiguous(),
            "lengths": lengths.long().contiguous(), "numbers": logs.new_empty(threads * FIELDS * room),
            "sequences": torch.empty(threads * WORD_FIELDS * room, dtype=torch.int64),
            "marks": torch.zeros(threads * classes, dtype=torch.int64),
            "history": torch.empty(threads * steps * width, dtype=torch.int64),
            "labels": labels, "counts": counts, "scores": scores,
        }  # fmt: skip
        self._library.call("search", words, places)
        return None if note.value else (labels, counts, scores)


def _lanes(dtype: str) -> int:
    return host.lanes() * SIZES["float32"] // SIZES[dtype]


@functools.cache
def _library(dtype: str) -> CodeLibrary:
    return CodeLibrary(lambda: beams_code(dtype, _lanes(dtype)), WORDS, PLACES)


def path_beams(dtype: torch.dtype | None) -> PathBeams | None:
    """The function for a type; None if there is none, no native tier, or no exponential function."""
    if not flags.NATIVE or host.reason() or dtype is None:
        return None
    name = dtypes.from_torch(dtype).name
    if name not in FLOATS:
        return None
    has = exponential_functions.is_polynomial(name) or all(
        host.has(sleef_name(each, name)) for each in ("exp", "log")
    )
    return PathBeams(name) if has else None
