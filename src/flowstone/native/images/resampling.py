"""Images resampled by machine code (`resampling_code.py`), on a host.

The code is compiled on a thread when a plan first asks for it; what is called before it is there waits.
Threads share the resulting lines where that is worth it.
"""

from __future__ import annotations

import functools

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.image_code import Resampler
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.images.resampling_code import PLACES, WORDS, resampling_code

__all__ = ["resampler"]

_Taps = tuple[torch.Tensor, torch.Tensor]
_APART = 32  # elements between threads' lines, so that no two write to one line of the cache
_WORK = 4  # of a term, in additions
_MOST_ELEMENTS = (1 << 31) - 1  # of a line, whose numbers are int32


def resampler() -> Resampler | None:
    """What resamples; None if there is no native tier."""
    return None if not flags.NATIVE or host.reason() else _resample


@functools.cache
def _library() -> CodeLibrary:
    return CodeLibrary(lambda: resampling_code(host.lanes()), WORDS, PLACES)


def _resample(images: torch.Tensor, vertical: _Taps, horizontal: _Taps) -> torch.Tensor | None:
    batch, height, width, channels = images.shape
    rows, columns = len(vertical[0]), len(horizontal[0])
    line, new_line = width * channels, columns * channels
    if max(line, new_line) > _MOST_ELEMENTS:
        return None
    words = {
        "batch": batch, "height": height, "line": line, "rows": rows, "columns": columns,
        "channels": channels, "new_line": new_line, "row_terms": vertical[0].shape[1],
        "column_terms": horizontal[0].shape[1], "gathers": int(channels < host.lanes()),
    }  # fmt: skip
    images = images.contiguous()
    by_row: dict[str, torch.Tensor | int] = {"row_places": vertical[0], "row_weights": vertical[1]}
    by_column = _by_column(horizontal, channels)
    out = torch.empty((batch, rows, columns, channels))
    if rows <= 2 * height:
        words["threads"] = _threads(batch * rows * (line * vertical[0].shape[1] + new_line))
        words["apart"] = line + _APART
        between = torch.empty((words["threads"], words["apart"]))
        given = {"x": images, "out": out, "between": between, **by_row, **by_column}
        _library().call("rows_columns", words, given)
        return out
    middle = torch.empty((batch, height, columns, channels))
    words["threads"] = _threads(middle.numel() * horizontal[0].shape[1])
    _library().call("columns", words, {"x": images, "out": middle, **by_column})
    words |= {"threads": _threads(out.numel() * vertical[0].shape[1]), "line": new_line}
    _library().call("rows", words, {"x": middle, "out": out, **by_row})
    return out


def _by_column(horizontal: _Taps, channels: int) -> dict[str, torch.Tensor | int]:
    places, weights = horizontal
    if channels >= host.lanes():
        elements, element_weights = places, weights  # which nothing reads
    else:
        channel = torch.arange(channels)
        elements = (places.t().unsqueeze(2) * channels + channel).reshape(places.shape[1], -1).int()
        element_weights = weights.t().repeat_interleave(channels, 1)
    return {
        "column_places": places, "column_weights": weights,
        "elements": elements.contiguous(), "element_weights": element_weights.contiguous(),
    }  # fmt: skip


def _threads(terms: int) -> int:
    """How many threads share so many terms."""
    has_team = terms * _WORK >= machine.current().profile.native_team
    return torch.get_num_threads() if has_team else 1
