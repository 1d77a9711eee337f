"""The gradients of fractional pooling by machine code (`cut_window_code.py`), on a host.

The code for a type is compiled on a thread when a plan first asks for it; what is called before it is there
waits. Threads share the images where that is worth it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.image_code import CutWindows
from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.codegen.emitter import FLOATS
from flowstone.native.networks.cut_window_code import PLACES, WORDS, cut_window_code

__all__ = ["cut_windows"]

_TYPES = frozenset({torch.float32, torch.float64, torch.int32, torch.int64})
_WORK = 8  # of an element, in additions


def cut_windows(dtype: torch.dtype | None) -> CutWindows | None:
    """The functions for images of a type; None if there are none, or no native tier."""
    if not flags.NATIVE or host.reason() or dtype not in _TYPES:
        return None
    return _Flows(dtype)


@functools.cache
def _library(dtype: torch.dtype) -> CodeLibrary:
    name = dtypes.from_torch(dtype).name
    places = PLACES if name in FLOATS else {"to_largest": PLACES["to_largest"]}
    return CodeLibrary(lambda: cut_window_code(name), WORDS, places)


class _Flows:
    """The functions for a type."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._library, self._is_whole = _library(dtype), not dtype.is_floating_point

    def to_largest(
        self, x: torch.Tensor, dy: torch.Tensor, rows: Sequence[torch.Tensor], columns: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        """The gradient for the images x, of that for their windows' largest elements."""
        return self._call("to_largest", {"x": x.contiguous()}, x.shape, dy, rows, columns)

    def to_all(
        self,
        dy: torch.Tensor,
        rows: Sequence[torch.Tensor],
        columns: Sequence[torch.Tensor],
        shape: Sequence[int],
    ) -> torch.Tensor | None:
        """The gradient for images of this shape, of that for their windows' means; None for integers."""
        return None if self._is_whole else self._call("to_all", {}, shape, dy, rows, columns)

    def _call(
        self,
        name: str,
        given: dict[str, torch.Tensor | int],
        shape: Sequence[int],
        dy: torch.Tensor,
        rows: Sequence[torch.Tensor],
        columns: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        out = dy.new_zeros(list(shape))
        has_team = out.numel() * _WORK >= machine.current().profile.native_team
        words = {"threads": torch.get_num_threads() if has_team else 1}
        words |= dict(zip(WORDS[1:], (*shape, len(rows[0]), len(columns[0]))))
        places = given | {
            "dy": dy.contiguous(), "row_starts": rows[0], "row_counts": rows[1],
            "column_starts": columns[0], "column_counts": columns[1], "out": out,
        }  # fmt: skip
        self._library.call(name, words, places)
        return out
