"""Images sampled along one dimension after the other: each result is a weighted sum of a few pixels.

`Taps` says of which: row `j` of the result is the sum over `k` of ``weights[j, k]`` times row
``places[j, k]``.
A row that needs fewer terms than another repeats its last place and shares that weight among the repetitions,
so that an infinite pixel stays one and pixels that do not belong to the row have no influence. The gradient
with respect to the pixels is the same sum by the reversed taps.

>>> half = taps_of(np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3]), np.full(4, 0.5, np.float32), 2)
>>> half.places.tolist(), half.weights.tolist()
([[0, 1], [2, 3]], [[0.5, 0.5], [0.5, 0.5]])
>>> same = Taps(np.zeros((1, 1), np.int64), np.ones((1, 1), np.float32))
>>> sample(torch.tensor([1.0, 3.0, 5.0, 9.0]).view(1, 4, 1, 1), half, same).flatten().tolist()
[2.0, 7.0]
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from flowstone.framework.machine import image_code

Array = np.ndarray[Any, Any]
_AT_ONCE = 2**17  # elements
_REMEMBERED = 64  # shapes seen lately


@dataclasses.dataclass(frozen=True, eq=False)
class Taps:
    """Places and weights, each [results, terms]; equal to themselves alone, so that what is made of them is
    found again."""

    places: Array
    weights: Array

    @functools.cached_property
    def tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Both, contiguous."""
        places, weights = map(np.ascontiguousarray, (self.places, self.weights))
        return torch.from_numpy(places), torch.from_numpy(weights)


def taps_of(results: Array, places: Array, weights: Array, count: int) -> Taps:
    """The taps of `count` results from terms in any order: (result, place, weight) each."""
    order = np.argsort(results, kind="stable")
    results, places, weights = results[order], places[order], weights[order]
    terms = np.bincount(results, minlength=count)
    width = max(int(terms.max(initial=0)), 1)
    starts = np.cumsum(terms) - terms
    own = np.arange(width)[None, :]
    last = np.maximum(terms - 1, 0)[:, None]
    at = starts[:, None] + np.minimum(own, last)
    if not len(places):
        return Taps(np.zeros((count, width), np.int64), np.zeros((count, width), np.float32))
    at = np.minimum(at, len(places) - 1)
    shares = np.where(own >= last, width - last, 1)
    found = np.where(terms[:, None] > 0, weights[at] / shares.astype(np.float32), np.float32(0))
    return Taps(np.where(terms[:, None] > 0, places[at], 0).astype(np.int64), found.astype(np.float32))


@functools.lru_cache(_REMEMBERED)
def reversed_taps(taps: Taps, length: int) -> Taps:
    """Of each of `length` pixels, the results that it has a share in."""
    results = np.repeat(np.arange(len(taps.places)), taps.places.shape[1])
    places, weights = taps.places.reshape(-1), taps.weights.reshape(-1)
    used = weights != 0
    return taps_of(places[used], results[used], weights[used], length)


def sample(images: torch.Tensor, vertical: Taps, horizontal: Taps) -> torch.Tensor:
    """Images [batch, height, width, channels] as float32 [batch, rows, columns, channels].

    What shrinks comes first, since the other dimension then has less to do.
    """
    batch, height, _, channels = images.shape
    rows, columns = len(vertical.places), len(horizontal.places)
    if not images.numel():
        return images.new_zeros((batch, rows, columns, channels), dtype=torch.float32)
    code: Any = image_code.resampler() if images.device.type == "cpu" else None
    if code is not None and (resample := _resample(code, images.shape, vertical, horizontal)) is not None:
        return resample(images.float())
    lines = images.float().reshape(batch * height, -1)
    if rows <= 2 * height:
        lines = _sampled_columns(_Lines(lines, vertical, batch, height), horizontal, channels)
    else:
        lines = _sampled_columns(lines, horizontal, channels)
        lines = _Lines(lines, vertical, batch, height).whole()
    return lines.view(batch, rows, columns, channels)


@functools.lru_cache(_REMEMBERED)
def _resample(
    code: Any, shape: tuple[int, ...], vertical: Taps, horizontal: Taps
) -> Callable[[torch.Tensor], torch.Tensor] | None:
    made: Callable[[torch.Tensor], torch.Tensor] | None = code(shape, vertical.tensors, horizontal.tensors)
    return made


class _Lines:
    """The weighted sums of the lines of several images, computed a few at a time.

    `matrix` has all images' lines below each other; the sums are those of each image.
    """

    def __init__(self, matrix: torch.Tensor, taps: Taps, batch: int, height: int) -> None:
        device = matrix.device
        own = torch.from_numpy(taps.places).to(device)
        first = torch.arange(batch, device=device) * height
        self.matrix = matrix
        self.places = (first[:, None, None] + own).reshape(-1, own.shape[1])
        self.weights = torch.from_numpy(taps.weights).to(device).repeat(batch, 1)
        self.shape = (len(self.places), matrix.shape[1])
        self.device = device

    def __getitem__(self, part: slice) -> torch.Tensor:
        places, weights = self.places[part], self.weights[part]
        total = self.matrix.index_select(0, places[:, 0]).mul_(weights[:, :1])
        for k in range(1, places.shape[1]):
            total.addcmul_(self.matrix.index_select(0, places[:, k]), weights[:, k : k + 1])
        return total

    def whole(self) -> torch.Tensor:
        """All of them."""
        result = torch.empty(self.shape, device=self.device)
        for part in _parts(self.shape, self.device):
            result[part] = self[part]
        return result


def _sampled_columns(lines: torch.Tensor | _Lines, taps: Taps, channels: int) -> torch.Tensor:
    """Lines of pixels, [n, width · channels], with other columns: [n, columns · channels]."""
    own = torch.from_numpy(taps.places).to(lines.device)
    channel = torch.arange(channels, device=lines.device)
    elements = (own.t().unsqueeze(2) * channels + channel).reshape(own.shape[1], -1)
    weights = torch.from_numpy(taps.weights).to(lines.device).t().repeat_interleave(channels, 1)
    result = torch.empty((lines.shape[0], elements.shape[1]), device=lines.device)
    for part in _parts(lines.shape, lines.device):
        some, total = lines[part], result[part]
        torch.index_select(some, 1, elements[0], out=total)
        total.mul_(weights[0])
        for k in range(1, len(elements)):
            total.addcmul_(some.index_select(1, elements[k]), weights[k])
    return result


def _parts(shape: tuple[int, ...] | torch.Size, device: torch.device) -> Iterator[slice]:
    """Lines that fit into a processor's cache together; on a GPU all of them."""
    step = max(_AT_ONCE // max(shape[1], 1), 1) if device.type == "cpu" else max(shape[0], 1)
    for start in range(0, shape[0], step):
        yield slice(start, start + step)
