"""Distributions over class numbers 0 … n-1, from which candidate samplers draw: TensorFlow's own draws.

Each has its `size` n, says whether it never changes (`is_fixed`) and how many `words` of random bits a draw
takes, and has two methods: ``classes(words)`` makes draws of words, and ``probabilities(ids)`` gives float64
of the shape of `ids`. `Draws` has the samples of a sampler's calls. `expectation` says how often a class
is in such a sample on average: with `tries` draws for `count` results, ``p * count`` if every draw counted
(`tries == count`), else ``1 - (1 - p) ** tries``.

>>> (expected, _), once = expectation(Uniform(4)), torch.tensor([2])
>>> expected(once, 2, 2), expected(once, 2, 3)
(tensor([0.5000]), tensor([0.5781]))
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.ops.randomness.op_seeds import SeededSequence
from flowstone.ops.randomness.philox import WORD, State, blocks_after, doubles

NONE = -1
"""In place of a class, where words give none: the next ones are taken instead."""

_FRACTION, _STEP = np.uint64((1 << 23) - 1), np.float32(2.0**-23)  # of a word's lowest bits
_HALF = np.uint64(32)


class ClassDistribution(Protocol):
    """What a sampler asks of a distribution.

    `classes` takes words of 32 bits, uint64 [calls, draws * words], and gives int64 [calls, draws]: classes,
    and `NONE`, which is to be left out.
    """

    size: int
    is_fixed: bool
    words: int

    def classes(self, words: np.ndarray) -> np.ndarray: ...

    def probabilities(self, ids: torch.Tensor) -> torch.Tensor: ...


def _below(limit: int, numbers: np.ndarray, numbers_in_all: int) -> np.ndarray:
    """Numbers of random bits, uint64, as equally likely ones below `limit`, int64: the rest of the division.
    The least numbers, which would make small rests likelier, are `NONE`."""
    found: np.ndarray = (numbers % np.uint64(limit)).astype(np.int64)
    unfit = numbers_in_all % limit
    if unfit:
        found[numbers < unfit] = NONE
    return found


class Uniform:
    """Every class is as likely as any other."""

    is_fixed, words = True, 2

    def __init__(self, size: int) -> None:
        self.size = size

    def classes(self, words: np.ndarray) -> np.ndarray:
        return _below(self.size, words[:, ::2] | words[:, 1::2] << _HALF, 1 << 64)

    def probabilities(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.full(ids.shape, 1 / self.size, dtype=torch.float64)


class LogUniform:
    """Zipf's law: P(k) = log((k + 2) / (k + 1)) / log(n + 1), for classes numbered by falling frequency."""

    is_fixed, words = True, 2

    def __init__(self, size: int) -> None:
        self.size = size
        self.log_size = math.log1p(size)

    def classes(self, words: np.ndarray) -> np.ndarray:
        fractions = doubles(torch.from_numpy(words.view(np.int64))).view(len(words), -1).numpy()
        values = np.exp(fractions * self.log_size)
        found: np.ndarray = (values.astype(np.int64) - 1) % self.size  # rounding may lead to class n
        return found

    def probabilities(self, ids: torch.Tensor) -> torch.Tensor:
        return ids.to(torch.float64).add_(1).reciprocal_().log1p_().div_(self.log_size)


class Weighted:
    """Classes by fixed weights, float [n]; a class of weight 0 is never drawn.

    Walker's alias method (1977): a draw takes one of n equally likely places, each of which holds a class
    and, above a threshold, another one. InvalidArgumentError for a negative weight, or if all are 0.
    """

    is_fixed, words = True, 2

    def __init__(self, weights: np.ndarray) -> None:
        wide = np.asarray(weights, np.float64)
        total = float(wide.sum()) if len(wide) else 0.0
        if not total > 0 or bool((wide < 0).any()):
            raise errors.InvalidArgumentError(
                None, None, "Weights must be positive or zero, and not all zero."
            )
        self.size, self.possible = len(wide), int((wide > 0).sum())
        self.shares = torch.from_numpy(wide / total)
        self._thresholds, self._others = _alias_table(wide * self.size / total)

    def classes(self, words: np.ndarray) -> np.ndarray:
        places = _below(self.size, words[:, 1::2], 1 << 32)
        heights = words[:, ::2]
        for call in np.flatnonzero((places == NONE).any(1)):
            self._pair_again(words[call], heights[call], places[call])
        fractions = (heights & _FRACTION).astype(np.float32) * _STEP
        found = np.where(fractions < self._thresholds[places], places, self._others[places])
        return np.where(places == NONE, NONE, found)

    def _pair_again(self, words: np.ndarray, heights: np.ndarray, places: np.ndarray) -> None:
        """Sets a call's `heights` and `places` where some words fit no place: then the next word does. At the
        end, draws without words are `NONE`."""
        fits, left = _below(self.size, words, 1 << 32).tolist(), iter(range(len(words)))
        places[:] = NONE
        for draw, height in enumerate(left):
            place = next((fits[i] for i in left if fits[i] != NONE), None)
            if place is None:
                return
            heights[draw], places[draw] = words[height], place

    def probabilities(self, ids: torch.Tensor) -> torch.Tensor:
        return self.shares[ids]


def _alias_table(parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The thresholds, float32, and the other classes, of places that weights of mean 1 fill; each place that
    a weight does not fill is topped up by a class that has more."""
    left: list[float] = parts.tolist()
    thresholds, others = [1.0] * len(left), list(range(len(left)))
    small = [k for k, part in enumerate(left) if part < 1]
    large = [k for k, part in enumerate(left) if part >= 1]
    while small and large:
        low, high = small.pop(), large.pop()
        thresholds[low], others[low] = left[low], high
        left[high] += left[low] - 1
        (small if left[high] < 1 else large).append(high)
    return np.array(thresholds, np.float32), np.array(others)


class Learned:
    """Classes by how often `add` has seen them, plus one. Any thread may call.

    The counts are rows of about sqrt(n) classes, with a total a row: a draw finds its row, then its column.
    """

    is_fixed, words = False, 1

    def __init__(self, size: int) -> None:
        self.size = size
        self._width = max(1, math.isqrt(size))
        counts = torch.zeros(-(-size // self._width) * self._width, dtype=torch.int64)
        counts[:size] = 1
        self._counts = counts.view(-1, self._width)
        self._totals = self._counts.sum(1)
        self._lock = threading.Lock()

    def classes(self, words: np.ndarray) -> np.ndarray:
        with self._lock:
            ends = self._totals.cumsum(0)
            tickets = torch.from_numpy(_below(int(ends[-1]), words, 1 << 32))
            flat = tickets.view(-1).clamp(min=0)
            rows = torch.searchsorted(ends, flat, right=True)
            left = flat - (ends[rows] - self._totals[rows])
            columns = (self._counts[rows].cumsum(1) <= left[:, None]).sum(1)
        found = (rows * self._width + columns).view(tickets.shape)
        return torch.where(tickets < 0, NONE, found).numpy()

    def probabilities(self, ids: torch.Tensor) -> torch.Tensor:
        with self._lock:
            return self._counts.view(-1)[ids] / self._totals.sum().double()

    def add(self, ids: torch.Tensor) -> None:
        """Counts each of `ids`, int64 [k], once more."""
        ones = torch.ones_like(ids)
        with self._lock:
            self._counts.view(-1).index_add_(0, ids, ones)
            self._totals.index_add_(0, ids // self._width, ones)


_CALLS = 16  # whose draws are made at once
_DRAWS_LEFT = 2048  # words of its sequence that a call leaves for each class it wants


class Sample(NamedTuple):
    """Classes, int64 [count]; the number of draws that they took; and, if it is known before, how often each
    of them is expected in such a sample, float32 [count]."""

    classes: torch.Tensor
    tries: int
    expected: torch.Tensor | None


class Draws:
    """The samples of `count` classes, all different if `unique`, that calls of a sampler give, in order.

    Any thread may call. Several samples are made at once, but where the distribution changes. `table`:
    log(1 - p) of every class, if they are to have what is expected.
    InvalidArgumentError if there are not so many different classes.
    """

    def __init__(
        self,
        distribution: ClassDistribution,
        sequence: SeededSequence,
        count: int,
        unique: bool,
        table: torch.Tensor | None = None,
    ) -> None:
        if unique and count > getattr(distribution, "possible", distribution.size):
            raise errors.InvalidArgumentError(None, None, "Sampler's range is too small.")
        self._distribution, self._sequence = distribution, sequence
        self._count, self._unique, self._table = count, unique, table
        self._blocks = count * _DRAWS_LEFT // 4  # of a call
        # About half again as many as are wanted is mostly enough.
        self._draws = count + count // 2 + 1 if unique else count
        self._calls = _CALLS if distribution.is_fixed else 1
        self._ready: list[Sample] = []
        self._lock = threading.Lock()

    def next(self) -> Sample:
        """The next call's sample."""
        with self._lock:
            if not self._ready:
                self._ready = self._samples()[::-1]
            return self._ready.pop()

    def _samples(self) -> list[Sample]:
        """The samples of the next calls."""
        calls, size, count = self._calls, self._blocks, self._count
        state = self._sequence.take_blocks(calls * size)
        drawn = self._drawn(state, self._draws, calls)
        found = [self._chosen(state, i * size, row) for i, row in enumerate(drawn)]
        classes, tries = torch.tensor([each for each, _ in found]).view(calls, count), [x for _, x in found]
        expected: Any = [None] * calls
        if self._table is not None:
            misses = self._table.index_select(0, classes.view(-1)).view(calls, count)
            expected = _expected(misses, count, torch.tensor(tries)[:, None])
        return [Sample(*each) for each in zip(classes, tries, expected)]

    def _chosen(self, state: State, skipped: int, drawn: list[int]) -> tuple[list[int], int]:
        """The classes of a call, which begins so many blocks after a state and draws these at first, and the
        number of draws that they took."""
        count, draws = self._count, self._draws
        while True:
            found = dict.fromkeys(drawn) if self._unique else drawn
            if NONE in found:
                drawn = [k for k in drawn if k != NONE]
            elif len(found) >= count:
                break
            else:
                draws *= 2
                (drawn,) = self._drawn(state.skipped(skipped), draws, 1)
        chosen = [*itertools.islice(found, count)]
        return chosen, drawn.index(chosen[-1]) + 1 if self._unique else count

    def _drawn(self, state: State, draws: int, calls: int) -> list[list[int]]:
        """The first draws of calls that begin at `state`."""
        words = draws * self._distribution.words
        starts = torch.arange(0, calls * self._blocks, self._blocks)[:, None]
        made = blocks_after(state, (starts + torch.arange(-(-words // 4))).view(-1)) & WORD
        by_call = made.numpy().view(np.uint64).reshape(calls, -1)
        rows: list[list[int]] = self._distribution.classes(by_call[:, :words]).tolist()
        return rows


_LARGEST_TABLE = 1 << 20  # classes of which a plan holds a float each

Expectation = Callable[[torch.Tensor, int, int], torch.Tensor]


def has_table(distribution: ClassDistribution) -> bool:
    """Whether what is expected of every class is computed once."""
    return distribution.is_fixed and distribution.size <= _LARGEST_TABLE


def expectation(distribution: ClassDistribution) -> tuple[Expectation, torch.Tensor | None]:
    """How often classes are in a sample from `distribution`: ``f(ids, count, tries)``, float32 of the shape
    of `ids`, int64 [k]; and the table that it looks them up in, log(1 - p) of every class, if it has one.

    With a table, ids out of range are IndexErrors; else the caller has checked them.
    """
    if not has_table(distribution):
        return lambda ids, count, tries: _expected(_log_misses(distribution, ids), count, tries), None
    table = _log_misses(distribution, torch.arange(distribution.size)).float()
    return lambda ids, count, tries: _expected(table.index_select(0, ids), count, tries), table


def _log_misses(distribution: ClassDistribution, ids: torch.Tensor) -> torch.Tensor:
    """The logarithms of the probabilities that a draw is another class, float64."""
    return distribution.probabilities(ids).neg_().log1p_()


def _expected(log_misses: torch.Tensor, count: int, tries: int | torch.Tensor) -> torch.Tensor:
    """The expected counts, in place of the logarithms if these are float32."""
    if isinstance(tries, torch.Tensor):
        once = _expected(log_misses.clone(), count, count)
        return torch.where(tries == count, once, log_misses.mul_(tries).expm1_().neg_())
    if tries == count:
        return log_misses.expm1_().mul_(-count).float()
    return log_misses.mul_(tries).expm1_().neg_().float()
