"""Images sampled along one dimension after the other: each result is a weighted sum of a few pixels.

`Taps` says of which: row `j` of the result is the sum over `k` of ``weights[j, k]`` times row
``places[j, k]``.
A row that needs fewer terms than another repeats its last place and shares that weight among the repetitions,
so that an infinite pixel stays one and pixels that do not belong to the row have no influence. The gradient
with respect to the pixels is the same sum by the reversed taps.

>>> half = taps_of(np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3]), np.full(4, 0.5, np.float32), 2)
>>> half.places.tolist(), half.weights.tolist()
([[0, 1], [2, 3]], [[0.5, 0.5], [0.5, 0.5]])
>>> weighted_rows(torch.tensor([[1.0], [3.0], [5.0], [9.0]]), half).tolist()
[[2.0], [7.0]]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

Array = np.ndarray[Any, Any]
_SEPARATE_TERMS = 8  # more are gathered at once


class Taps(NamedTuple):
    """Places and weights, each [results, terms]."""

    places: Array
    weights: Array


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


def reversed_taps(taps: Taps, length: int) -> Taps:
    """Of each of `length` pixels, the results that it has a share in."""
    results = np.repeat(np.arange(len(taps.places)), taps.places.shape[1])
    places, weights = taps.places.reshape(-1), taps.weights.reshape(-1)
    used = weights != 0
    return taps_of(places[used], results[used], weights[used], length)


def weighted_rows(rows: torch.Tensor, taps: Taps) -> torch.Tensor:
    """The weighted sums of the rows of a float32 matrix."""
    places = torch.from_numpy(taps.places).to(rows.device)
    weights = torch.from_numpy(taps.weights).to(rows.device)
    if weights.shape[1] > _SEPARATE_TERMS:
        gathered = rows.index_select(0, places.reshape(-1)).view(*places.shape, rows.shape[1])
        return gathered.mul_(weights.unsqueeze(2)).sum(1)
    total = rows.index_select(0, places[:, 0]).mul_(weights[:, :1])
    for k in range(1, weights.shape[1]):
        total.addcmul_(rows.index_select(0, places[:, k]), weights[:, k : k + 1])
    return total


def sample(images: torch.Tensor, vertical: Taps, horizontal: Taps) -> torch.Tensor:
    """Images [batch, height, width, channels] as float32 [batch, rows, columns, channels].

    The dimension that shrinks more comes first, since the other then has less to do.
    """
    images = images.float()
    steps = [(1, vertical), (2, horizontal)]
    steps.sort(key=lambda step: len(step[1].places) / max(images.shape[step[0]], 1))
    for axis, taps in steps:
        front = images.movedim(axis, 0)
        shape = [len(taps.places), *front.shape[1:]]
        images = weighted_rows(front.reshape(front.shape[0], -1), taps).view(shape).movedim(0, axis)
    return images.contiguous()
