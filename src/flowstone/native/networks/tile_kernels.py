"""Convolutions by Winograd's algorithm in machine code, as functions of tensors (`tile_code.py`).

Images are [batch, height, width, channels] and contiguous, filters [taps, taps, channels, outputs] in any
order of memory, all float32 on a host; taps are 2 to 5. The code for a number of taps is compiled, or read
from the cache, on a thread when a plan asks (`prepare`); what is called before it is there waits.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch

from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.codegen.code_library import CodeLibrary
from flowstone.native.networks.tile_code import PLACES, SKEW, WORDS, row_counts, tile_code
from flowstone.native.networks.tile_transforms import SIDE

__all__ = ["TAPS", "Geometry", "convolve", "filter_gradient", "filter_size", "prepare", "transform_filter"]

TAPS = (2, 3, 4, 5)
"""The sizes of square filters that there is code for."""
_MATRICES = SIDE * SIDE
_KEPT = 1 << 18  # elements of all that one thread has between the steps of a convolution
_SUMMED = 1 << 19  # elements of tiles that are multiplied at once for a filter's gradient
_FEWEST = 128  # tiles even if they have more


class Geometry(NamedTuple):
    """Dims of images and results, a filter's `taps`, and the zeros `above` and `beside` the images."""

    images: tuple[int, ...]
    results: tuple[int, ...]
    taps: int
    above: int
    beside: int

    def backward(self) -> Geometry:
        """The convolution that the gradient with respect to the images is."""
        last = self.taps - 1
        return Geometry(self.results, self.images, self.taps, last - self.above, last - self.beside)


@functools.cache
def _library(taps: int) -> CodeLibrary:
    return CodeLibrary(lambda: tile_code(taps, host.lanes()), WORDS, PLACES)


def prepare(geometry: Geometry, *names: str) -> None:
    """Has these functions of the code for such filters compiled."""
    images, results, taps, *_ = geometry
    step = SIDE + 1 - taps
    tiles = results[0] * -(-results[1] // step) * -(-results[2] // step)
    multiplications = _MATRICES * tiles * images[3] * results[3]
    _library(taps).prepare(*names, waits=multiplications >= machine.current().profile.tiles_much)


def _wide(count: int) -> int:
    """So many elements in whole vectors."""
    lanes = host.lanes()
    return -(-count // lanes) * lanes


# ---- filters


def filter_size(channels: int, outputs: int) -> int:
    """How many elements a filter has once it is transformed."""
    block = max(row_counts(host.lanes())) * host.lanes()
    return _MATRICES * (channels * _wide(outputs) + -(-_wide(outputs) // block) * SKEW)


def transform_filter(filters: torch.Tensor, backward: bool) -> torch.Tensor:
    """The filter as `convolve` takes it; `backward`: as it does for the gradient by the images."""
    taps, _, channels, outputs = filters.shape
    by_row, by_column, by_input, by_output = filters.stride()
    start = filters.data_ptr()
    if backward:
        channels, outputs, by_input, by_output = outputs, channels, by_output, by_input
        start += 4 * (taps - 1) * (by_row + by_column)
        by_row, by_column = -by_row, -by_column
    result = torch.empty(filter_size(channels, outputs))
    words = {
        "threads": torch.get_num_threads(), "channels": channels, "outputs": outputs,
        "wide_outputs": _wide(outputs),
        "by_input": by_input, "by_output": by_output, "by_row": by_row, "by_column": by_column,
    }  # fmt: skip
    _library(taps).call("transform_filter", words, {"filter": start, "transformed": result})
    return result


# ---- convolutions


def _words(geometry: Geometry) -> dict[str, int]:
    images, results, taps, above, beside = geometry
    step = SIDE + 1 - taps
    down, across = -(-results[1] // step), -(-results[2] // step)
    return {
        "threads": torch.get_num_threads(), "height": images[1], "width": images[2], "channels": images[3],
        "rows": results[1], "columns": results[2], "outputs": results[3], "above": above, "beside": beside,
        "down": down, "across": across, "tiles": images[0] * down * across,
        "wide_channels": _wide(images[3]), "wide_outputs": _wide(results[3]),
    }  # fmt: skip


def _at_once(words: dict[str, int]) -> int:
    """How many tiles a thread takes at once."""
    rows = max(row_counts(host.lanes()).values())
    block = max(row_counts(host.lanes())) * host.lanes()
    fit = _KEPT // (_MATRICES * (words["wide_channels"] + min(block, words["wide_outputs"])))
    return max(fit // rows, 1) * rows


def convolve(
    images: torch.Tensor,
    transformed: torch.Tensor,
    bias: torch.Tensor | None,
    geometry: Geometry,
    rectifies: bool = False,
) -> torch.Tensor | None:
    """The convolution, with a bias and without negative numbers if wanted; None if it is not all finite
    before that.
    """
    words = _words(geometry)
    most, threads = _at_once(words), words["threads"]
    block = min(max(row_counts(host.lanes())) * host.lanes(), words["wide_outputs"])
    words["most"], words["rectifies"] = most, int(rectifies)
    words["data_pitch"] = most * words["wide_channels"] + SKEW
    words["result_pitch"] = most * block + SKEW
    pitches = words["data_pitch"] + words["result_pitch"]
    results = torch.empty(geometry.results)
    strange = torch.zeros(threads * host.lanes())
    zeros = torch.zeros(max(words["wide_channels"], words["wide_outputs"]))
    places: dict[str, torch.Tensor | int] = {
        "images": images, "filter": transformed, "bias": zeros if bias is None else bias, "results": results,
        "scratch": torch.empty(_MATRICES * threads * pitches), "strange": strange, "zeros": zeros,
        "waste": torch.empty(words["wide_outputs"]),
    }  # fmt: skip
    _library(geometry.taps).call("convolve", words, places)
    return results if strange.sum().item() == 0 else None


def filter_gradient(images: torch.Tensor, gradient: torch.Tensor, geometry: Geometry) -> torch.Tensor | None:
    """The gradient by the filter [taps, taps, channels, outputs], in memory with the outputs first; None if
    it is not all finite.
    """
    words, taps = _words(geometry), geometry.taps
    threads, channels, outputs = words["threads"], words["wide_channels"], words["wide_outputs"]
    most = min(max(_SUMMED // (_MATRICES * (channels + outputs)), _FEWEST), words["tiles"])
    spare = max(row_counts(host.lanes()).values())
    words["most"] = most
    words["data_pitch"], words["result_pitch"] = most * channels + SKEW, most * outputs + SKEW
    words["sum_pitch"] = (outputs + spare) * channels + SKEW
    result = torch.empty((geometry.results[3], taps, taps, words["channels"]))
    strange = torch.zeros(threads * host.lanes())
    places: dict[str, torch.Tensor | int] = {
        "images": images, "gradient": gradient, "data": torch.empty(_MATRICES * words["data_pitch"]),
        "results": torch.empty(_MATRICES * words["result_pitch"] + spare),
        "sums": torch.empty(_MATRICES * words["sum_pitch"]), "filter": result, "strange": strange,
        "zeros": torch.zeros(max(channels, outputs)),
    }  # fmt: skip
    _library(taps).call("differentiate", words, places)
    return result.permute(1, 2, 3, 0) if strange.sum().item() == 0 else None
