"""Images resampled by machine code (`resampling_code.py`), on a host.

The code is compiled on a thread when a plan first asks for it; what is called before it is there waits.
Threads share the resulting lines where that is worth it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.framework.machine.image_code import Resampler
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.images.resampling_code import PLACES, WORDS, resampling_code

__all__ = ["resampler"]

_Taps = tuple[torch.Tensor, torch.Tensor]
_Resample = Callable[[torch.Tensor], torch.Tensor]
_APART = 32  # elements between threads' lines, so that no two write to one line of the cache
_WORK = 4  # of a term, in additions
_MOST_ELEMENTS = (1 << 31) - 1  # of a line, whose numbers are int32


def resampler() -> Resampler | None:
    """What resamples; None if there is no native tier."""
    return None if not flags.NATIVE or host.reason() else _resample


@functools.cache
def _library() -> CodeLibrary:
    return CodeLibrary(lambda: resampling_code(host.lanes()), WORDS, PLACES)


def _resample(shape: Sequence[int], vertical: _Taps, horizontal: _Taps) -> _Resample | None:
    batch, height, width, channels = shape
    rows, columns = vertical[0].shape[0], horizontal[0].shape[0]
    line, new_line = width * channels, columns * channels
    if max(line, new_line) > _MOST_ELEMENTS:
        return None
    words = {
        "batch": batch, "height": height, "line": line, "rows": rows, "columns": columns,
        "channels": channels, "new_line": new_line, "row_terms": vertical[0].shape[1],
        "column_terms": horizontal[0].shape[1], "gathers": int(channels < host.lanes()),
        "apart": line + _APART,
    }  # fmt: skip
    by_row = {"row_places": vertical[0], "row_weights": vertical[1]}
    by_column = _by_column(horizontal, channels)
    row_places, column_places = _addresses(by_row), _addresses(by_column)
    library, dims = _library(), (batch, rows, columns, channels)
    held = by_row, by_column
    if rows <= 2 * height:
        both = library.bound("rows_columns", words, row_places | column_places)
        team = _threads(batch * rows * (line * vertical[0].shape[1] + new_line))

        def resample_at_once(images: torch.Tensor, _alive: object = held) -> torch.Tensor:
            images, threads, out = images.contiguous(), team(), torch.empty(dims)
            between = torch.empty(threads * (line + _APART))
            both(threads, images.data_ptr(), out.data_ptr(), between.data_ptr())
            return out

        return resample_at_once
    first = library.bound("columns", words, column_places)
    second = library.bound("rows", words | {"line": new_line}, row_places)
    first_team = _threads(batch * height * new_line * horizontal[0].shape[1])
    second_team = _threads(batch * rows * new_line * vertical[0].shape[1])

    def resample(images: torch.Tensor, _alive: object = held) -> torch.Tensor:
        images, middle, out = images.contiguous(), torch.empty(batch * height * new_line), torch.empty(dims)
        first(first_team(), images.data_ptr(), middle.data_ptr())
        second(second_team(), middle.data_ptr(), out.data_ptr())
        return out

    return resample


def _addresses(tensors: dict[str, torch.Tensor]) -> dict[str, int]:
    return {name: x.data_ptr() for name, x in tensors.items()}


def _by_column(horizontal: _Taps, channels: int) -> dict[str, torch.Tensor]:
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


def _threads(terms: int) -> Callable[[], int]:
    """How many threads share so many terms."""
    has_team = terms * _WORK >= machine.current().profile.native_team
    return torch.get_num_threads if has_team else lambda: 1
