"""Distributions over class numbers 0 … n-1, from which candidate samplers draw.

Each has its `size` n, says whether it never changes (`is_fixed`), and has two methods: ``draw(count,
generator)``, int64 [count] independent class numbers, and ``probabilities(ids)``, float64 of the shape of
`ids`. `Draws` draws until enough different classes are found. `expectation` says how often a class is in
such a sample on average: with `tries` draws for `count` results, ``p * count`` if every draw counted
(`tries == count`), else ``1 - (1 - p) ** tries``.

>>> expected, once = expectation(Uniform(4)), torch.tensor([2])
>>> expected(once, 2, 2), expected(once, 2, 3)
(tensor([0.5000]), tensor([0.5781]))
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch

from flowstone.framework import errors


class ClassDistribution(Protocol):
    """What a sampler asks of a distribution."""

    size: int
    is_fixed: bool

    def draw(self, count: int, generator: torch.Generator) -> torch.Tensor: ...

    def probabilities(self, ids: torch.Tensor) -> torch.Tensor: ...


class Uniform:
    """Every class is as likely as any other."""

    is_fixed = True

    def __init__(self, size: int) -> None:
        self.size = size

    def draw(self, count: int, generator: torch.Generator) -> torch.Tensor:
        return torch.randint(self.size, (count,), generator=generator)

    def probabilities(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.full(ids.shape, 1 / self.size, dtype=torch.float64)


class LogUniform:
    """Zipf's law: P(k) = log((k + 2) / (k + 1)) / log(n + 1), for classes numbered by falling frequency."""

    is_fixed = True

    def __init__(self, size: int) -> None:
        self.size = size
        self.log_size = math.log1p(size)
        # A draw of exp(log_size) would be class n: rounding must not lead there.
        self.limit = self.log_size * (1 - 1e-14)

    def draw(self, count: int, generator: torch.Generator) -> torch.Tensor:
        values = torch.empty(count, dtype=torch.float64).uniform_(0, self.limit, generator=generator)
        return values.expm1_().long()

    def probabilities(self, ids: torch.Tensor) -> torch.Tensor:
        return ids.to(torch.float64).add_(1).reciprocal_().log1p_().div_(self.log_size)


class Weighted:
    """Classes by fixed weights, float [n]; a class of weight 0 is never drawn.

    InvalidArgumentError for a negative weight, or if all are 0.
    """

    is_fixed = True

    def __init__(self, weights: np.ndarray) -> None:
        wide = torch.as_tensor(np.asarray(weights, np.float64))
        self.size, self.ends = len(wide), wide.cumsum(0)
        total = float(self.ends[-1]) if self.size else 0.0
        if not total > 0 or bool((wide < 0).any()):
            raise errors.InvalidArgumentError(
                None, None, "Weights must be positive or zero, and not all zero."
            )
        self.total, self.shares = total, wide / total
        self.possible = int((wide > 0).sum())

    def draw(self, count: int, generator: torch.Generator) -> torch.Tensor:
        places = torch.rand(count, dtype=torch.float64, generator=generator).mul_(self.total)
        return torch.searchsorted(self.ends, places, right=True).clamp_(max=self.size - 1)

    def probabilities(self, ids: torch.Tensor) -> torch.Tensor:
        return self.shares[ids]


class Learned:
    """Classes by how often `add` has seen them, plus one. Any thread may call.

    The counts are rows of about sqrt(n) classes, with a total a row: a draw finds its row, then its column.
    """

    is_fixed = False

    def __init__(self, size: int) -> None:
        self.size = size
        self._width = max(1, math.isqrt(size))
        counts = torch.zeros(-(-size // self._width) * self._width, dtype=torch.int64)
        counts[:size] = 1
        self._counts = counts.view(-1, self._width)
        self._totals = self._counts.sum(1)
        self._lock = threading.Lock()

    def draw(self, count: int, generator: torch.Generator) -> torch.Tensor:
        with self._lock:
            ends = self._totals.cumsum(0)
            tickets = torch.randint(int(ends[-1]), (count,), generator=generator)
            rows = torch.searchsorted(ends, tickets, right=True)
            left = tickets - (ends[rows] - self._totals[rows])
            columns = (self._counts[rows].cumsum(1) <= left[:, None]).sum(1)
        return rows * self._width + columns

    def probabilities(self, ids: torch.Tensor) -> torch.Tensor:
        with self._lock:
            return self._counts.view(-1)[ids] / self._totals.sum().double()

    def add(self, ids: torch.Tensor) -> None:
        """Counts each of `ids`, int64 [k], once more."""
        ones = torch.ones_like(ids)
        with self._lock:
            self._counts.view(-1).index_add_(0, ids, ones)
            self._totals.index_add_(0, ids // self._width, ones)


class Draws:
    """The class numbers that a sampler draws, in order, `ahead` times as many at once as a sample may need.

    Any thread may call. Of a distribution that changes, nothing may be drawn ahead.
    """

    def __init__(self, distribution: ClassDistribution, generator: torch.Generator, ahead: int = 16) -> None:
        self._distribution, self._generator, self._ahead = distribution, generator, ahead
        self._drawn: list[int] = []
        self._used = 0
        self._lock = threading.Lock()

    def different(self, count: int) -> tuple[torch.Tensor, int]:
        """`count` different classes in the order of their first draw, and the number of draws that they took.

        InvalidArgumentError if there are not so many.
        """
        if count > getattr(self._distribution, "possible", self._distribution.size):
            raise errors.InvalidArgumentError(None, None, "Sampler's range is too small.")
        size = count + count // 2 + 1  # about half again as many as are wanted is mostly enough
        with self._lock:
            start = end = self._used
            found: dict[int, None] = {}
            while len(found) < count:
                if end + size > len(self._drawn):
                    self._drawn = self._drawn[start:] + self._more(size)
                    start, end = 0, end - start
                found.update(dict.fromkeys(self._drawn[end : end + size]))
                end += size
            chosen = np.fromiter(found, np.int64, count)
            self._used = self._drawn.index(int(chosen[-1]), start) + 1
            return torch.from_numpy(chosen), self._used - start

    def _more(self, size: int) -> list[int]:
        found: list[int] = self._distribution.draw(self._ahead * size, self._generator).tolist()
        return found


_LARGEST_TABLE = 1 << 20  # classes of which a plan holds a float each

Expectation = Callable[[torch.Tensor, int, int], torch.Tensor]


def has_table(distribution: ClassDistribution) -> bool:
    """Whether what is expected of every class is computed once."""
    return distribution.is_fixed and distribution.size <= _LARGEST_TABLE


def expectation(distribution: ClassDistribution) -> Expectation:
    """How often classes are in a sample from `distribution`: ``f(ids, count, tries)``, float32 of the shape
    of `ids`, int64 [k].

    With a table, log(1 - p) of every class, ids out of range are IndexErrors; else the caller has checked
    them.
    """
    if not has_table(distribution):
        return lambda ids, count, tries: _expected(_log_misses(distribution, ids), count, tries)
    table = _log_misses(distribution, torch.arange(distribution.size)).float()
    return lambda ids, count, tries: _expected(table.index_select(0, ids), count, tries)


def _log_misses(distribution: ClassDistribution, ids: torch.Tensor) -> torch.Tensor:
    """The logarithms of the probabilities that a draw is another class, float64."""
    return distribution.probabilities(ids).neg_().log1p_()


def _expected(log_misses: torch.Tensor, count: int, tries: int) -> torch.Tensor:
    """The expected counts, in place of the logarithms if these are float32."""
    if tries == count:
        return log_misses.expm1_().mul_(-count).float()
    return log_misses.mul_(tries).expm1_().neg_().float()
