"""Where the windows of small images lie: a convolution, or a gradient of it, as tables for `direct_code.py`.

Of the results a row is a position of an image (for a gradient by the filter: a place of a window and a
channel), a term a place of a window and a channel (there: a position). Neighbouring positions of a row are a
*run*, which is cut into blocks. Gradients by images whose windows skip positions have as many kinds of
positions as there are steps in a skip, each with terms of its own.

>>> seen = Windows((1, 4, 4, 1), (3, 3), 1, (1, 4, 4), (1, 1), (1, 1), (1, 1))
>>> made = tables("results", seen, 16)
>>> made.words["size"], made.blocks.shape, made.terms.tolist()
(36, (4, 4), [0, 1, 2, 6, 7, 8, 12, 13, 14])
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.framework.machine.network_code import Windows
from flowstone.native.networks.direct_code import rows_of_blocks

__all__ = ["Tables", "least_products", "tables"]

_Array = np.ndarray[Any, Any]
_SHORTEST = 8  # sums at once, with fewer of which an addition waits for the one before


class _Copy(NamedTuple):
    """Images with zeros around them: `lengths` of the images and `whole` ones, what lies `before` them,
    (vertical, horizontal); channels beside each other or apart; columns sorted by their rest of a division by
    `skip`."""

    batch: int
    lengths: tuple[int, int]
    whole: tuple[int, int]
    before: tuple[int, int]
    channels: int
    beside: bool = False
    skip: int = 1

    @property
    def along(self) -> int:
        """Columns with the same rest."""
        return -(-self.whole[1] // self.skip)

    @property
    def row_step(self) -> int:
        return self.channels * (self.whole[1] if self.beside else self.skip * self.along)

    @property
    def image_step(self) -> int:
        return self.whole[0] * self.row_step

    @property
    def channel_step(self) -> int:
        return 1 if self.beside else self.skip * self.along

    def column(self, x: int) -> int:
        """Where a column of the whole image lies."""
        return x * self.channels if self.beside else x % self.skip * self.along + x // self.skip

    def words(self) -> dict[str, int]:
        """What the code is told; nothing is copied where the images are as wanted already."""
        is_same = self.lengths == self.whole and (self.beside or self.channels == self.skip == 1)
        return {
            "image_rows": self.batch, "rows": self.lengths[0], "width": self.lengths[1],
            "channels": self.channels, "image_step": self.image_step, "row_step": self.row_step,
            "first": self.before[0] * self.row_step, "channel_step": self.channel_step,
            "size": 0 if is_same else self.batch * self.image_step,
        }  # fmt: skip

    def places(self) -> _Array:
        """Of each column of the images."""
        return _whole([self.column(x + self.before[1]) for x in range(self.lengths[1])])


class _Run(NamedTuple):
    """Neighbouring rows of the result: where windows and results begin, how many there are, and which terms
    they have."""

    start: int
    place: int
    length: int
    terms: tuple[int, int]


class Tables(NamedTuple):
    """Numbers and arrays of a call, the shape of the result, and how many products of vectors it takes."""

    words: dict[str, int]
    places: _Array
    taps: _Array
    terms: _Array
    blocks: _Array
    ranges: _Array
    shape: tuple[int, ...]
    products: int


def tables(kind: str, seen: Windows, lanes: int) -> Tables | None:
    """Those of a convolution ("results"), or of its gradient by "images" or "filter"; None where a position
    has no terms."""
    return {"results": _results, "images": _by_images, "filter": _by_filter}[kind](seen, lanes)


def least_products(kind: str, seen: Windows, lanes: int) -> int:
    """A number that `Tables.products` is not below, without tables."""
    taps, channels = math.prod(seen.taps), seen.images[3]
    if kind != "images":
        return math.prod(seen.counts) * taps * channels * -(-seen.outputs // lanes)
    positions = [length // stride for length, stride in zip(seen.images[1:3], seen.strides)]
    return seen.images[0] * math.prod(positions) * taps * seen.outputs * -(-channels // lanes)


def _results(seen: Windows, lanes: int) -> Tables:
    batch, height, width, channels = seen.images
    copy = _Copy(batch, (height, width), _whole_lengths(seen), seen.before, channels, skip=seen.strides[1])
    terms = [
        i * seen.dilations[0] * copy.row_step + k * copy.channel_step + copy.column(j * seen.dilations[1])
        for i, j, k in itertools.product(*map(range, (*seen.taps, channels)))
    ]
    _, rows, columns = seen.counts
    runs = [
        _Run(
            b * copy.image_step + r * seen.strides[0] * copy.row_step,
            (b * rows + r) * columns * seen.outputs,
            columns,
            (0, len(terms)),
        )
        for b, r in itertools.product(range(batch), range(rows))
    ]
    return _made(copy, runs, terms, (*seen.counts, seen.outputs), lanes)


def _by_images(seen: Windows, lanes: int) -> Tables | None:
    (batch, *lengths, channels), (_, *counts) = seen.images, seen.counts
    lows = [
        (b - (t - 1) * d) // s for b, t, d, s in zip(seen.before, seen.taps, seen.dilations, seen.strides)
    ]
    before = [max(-low, 0) for low in lows]
    ends = [(n - 1 + b) // s + 1 for n, b, s in zip(lengths, seen.before, seen.strides)]
    whole = [p + max(n, end) for p, n, end in zip(before, counts, ends)]
    copy = _Copy(batch, _pair(counts), _pair(whole), _pair(before), seen.outputs)
    taps: list[int] = []
    terms: list[int] = []
    runs: list[_Run] = []
    for (y, rows), (x, columns) in itertools.product(_kinds(seen, 0), _kinds(seen, 1)):
        if not rows or not columns:
            return None
        first = len(terms)
        for (i, r), (j, c) in itertools.product(rows, columns):
            taps.append((i * seen.taps[1] + j) * channels * seen.outputs)
            terms += [r * copy.row_step + o * copy.channel_step + c for o in range(seen.outputs)]
        for b, (m, row) in itertools.product(range(batch), enumerate(range(y, lengths[0], seen.strides[0]))):
            start = b * copy.image_step + (m + before[0]) * copy.row_step + before[1]
            place = ((b * lengths[0] + row) * lengths[1] + x) * channels
            runs.append(_Run(start, place, -(-(lengths[1] - x) // seen.strides[1]), (first, len(terms))))
    made = _made(copy, runs, terms, seen.images, lanes, seen.strides[1] * channels)
    made.words.update(taps=len(taps), tap_rows=channels, tap_columns=seen.outputs)
    return made._replace(taps=_whole(taps))


def _kinds(seen: Windows, axis: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """The first position of each kind, with its taps and the results that these have there, before those of
    the next position of the kind."""
    stride, dilation, before = seen.strides[axis], seen.dilations[axis], seen.before[axis]
    for first in range(min(stride, seen.images[axis + 1])):
        reach = [(tap, first + before - tap * dilation) for tap in range(seen.taps[axis])]
        yield first, [(tap, at // stride) for tap, at in reach if at % stride == 0]


def _by_filter(seen: Windows, lanes: int) -> Tables:
    batch, height, width, channels = seen.images
    copy = _Copy(batch, (height, width), _whole_lengths(seen), seen.before, channels, beside=True)
    _, rows, columns = seen.counts
    terms = [
        b * copy.image_step + r * seen.strides[0] * copy.row_step + copy.column(c * seen.strides[1])
        for b, r, c in itertools.product(range(batch), range(rows), range(columns))
    ]
    together = seen.taps[1] if seen.dilations[1] == 1 else 1
    runs = [
        _Run(
            i * seen.dilations[0] * copy.row_step + copy.column(j * seen.dilations[1]),
            (i * seen.taps[1] + j) * channels * seen.outputs,
            together * channels,
            (0, len(terms)),
        )
        for i, j in itertools.product(range(seen.taps[0]), range(0, seen.taps[1], together))
    ]
    return _made(copy, runs, terms, (*seen.taps, channels, seen.outputs), lanes)


def _whole_lengths(seen: Windows) -> tuple[int, int]:
    """Those of images with what surrounds them, as far as windows reach."""
    found = zip(seen.images[1:3], seen.counts[1:], seen.taps, seen.strides, seen.dilations, seen.before)
    return _pair([max((n - 1) * s + (t - 1) * d + 1, b + length) for length, n, t, s, d, b in found])


def _made(
    copy: _Copy,
    runs: Sequence[_Run],
    terms: Sequence[int],
    shape: tuple[int, ...],
    lanes: int,
    row_gap: int | None = None,
) -> Tables:
    columns = shape[-1]
    row_gap = columns if row_gap is None else row_gap
    across = -(-columns // lanes)
    groups = -(-across // 4)
    vectors = -(-across // groups)
    most, products = rows_of_blocks(lanes, vectors), 0
    by_rows: list[list[tuple[int, ...]]] = [[] for _ in range(most)]
    for run in runs:
        parts = -(-run.length // most)
        ends = [run.length * (i + 1) // parts for i in range(parts)]
        for first, end in zip([0, *ends], ends):
            by_rows[end - first - 1].append((run.start + first, run.place + first * row_gap, *run.terms))
            products += groups * (run.terms[1] - run.terms[0]) * max((end - first) * vectors, _SHORTEST)
    words = {**copy.words(), "columns": columns, "vectors": vectors, "row_gap": row_gap, "taps": 0}
    counts = np.cumsum([0, *map(len, by_rows)])
    blocks = _whole([each for some in by_rows for each in some])
    return Tables(words, copy.places(), _whole([0]), _whole(terms), blocks, _whole(counts), shape, products)


def _whole(numbers: Any) -> _Array:
    return np.ascontiguousarray(numbers, dtype=np.int64)


def _pair(numbers: Sequence[int]) -> tuple[int, int]:
    first, second = numbers
    return first, second
