"""Approximate quantiles of weighted numbers that stream in.

A `Summary` has for some of the values the least and the greatest rank that they can have; two are merged, and
one is compressed to fewer entries, by at most a known error of the ranks. A `Stream` fills a block of values,
makes its summary and merges summaries of equal levels, as one carries when counting in binary, so that its
memory grows with the logarithm of what it has seen. Ranks are float32 sums of weights, as TensorFlow's are.
Algorithm: Q. Zhang, W. Wang, "A Fast Algorithm for Approximate Quantiles in High Speed Data Streams" (2007).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["Stream", "Summary"]

Array = np.ndarray[Any, Any]
_SMALLEST_EPSILON = float(np.finfo(np.float64).eps)


class Summary:
    """Values in ascending order, each with its weight, least and greatest rank.

    Args:
        entries: float32 [entries, 4] of value, weight, least rank, greatest rank.
    """

    def __init__(self, entries: Array | None = None) -> None:
        self.entries = np.zeros((0, 4), np.float32) if entries is None else np.asarray(entries, np.float32)

    @staticmethod
    def of(values: Array, weights: Array) -> Summary:
        """The exact summary of these values; those without weight do not count."""
        kept = weights > 0
        distinct, places = np.unique(values[kept], return_inverse=True)
        sums = np.zeros(len(distinct), np.float32)
        np.add.at(sums, places, weights[kept])
        ends = np.cumsum(sums, dtype=np.float32)
        return Summary(np.stack([distinct, sums, ends - sums, ends], axis=1))

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def total_weight(self) -> float:
        """The weight of all values."""
        return float(self.entries[-1, 3])

    def _before(self) -> Array:
        return self.entries[:, 3] - self.entries[:, 1]  # the greatest rank of what is less than a value

    def _after(self) -> Array:
        return self.entries[:, 2] + self.entries[:, 1]  # the least rank of what is greater than a value

    def merged(self, other: Summary) -> Summary:
        """The summary of the values of both."""
        if not len(other) or not len(self):
            return self if len(self) else other
        values = np.union1d(self.entries[:, 0], other.entries[:, 0])
        return Summary(np.column_stack([values, self._ranks_at(values) + other._ranks_at(values)]))

    def _ranks_at(self, values: Array) -> Array:
        """[values, 3]: weight, least and greatest rank that a value has in this summary, whether it is there
        or not.
        """
        entries, own = self.entries, self.entries[:, 0]
        at = np.searchsorted(own, values)
        here = np.minimum(at, len(own) - 1)
        found = own[here] == values
        least = np.where(at > 0, self._after()[np.maximum(at - 1, 0)], np.float32(0))
        greatest = np.where(at < len(own), self._before()[here], entries[-1, 3])
        absent = np.column_stack([np.zeros_like(least), least, greatest])
        return np.where(found[:, None], entries[here, 1:], absent)

    def compressed(self, size: int, least_error: float = 0.0) -> Summary:
        """About `size` of the entries (two at least), with the first and the last."""
        size = max(size, 2)
        count = len(self)
        if count <= size:
            return self
        spans = self._spans(self.total_weight * max(1.0 / size, least_error)).tolist()
        kept, read, credit = [0], 0, 0
        while read + 1 < count:
            steps = spans[read]
            if credit + size * (steps - 1) >= count:  # credit is spent before
                steps = max(-((credit - count) // size), 0)
            credit += size * steps - count
            read += steps or 1
            kept.append(read)
        return Summary(self.entries[kept])

    def _spans(self, gap: float) -> Array:
        """How many entries in a row after each one begin at most `gap` after it."""
        before, after = self._before().astype(np.float64), self._after().astype(np.float64)
        spans = np.zeros(len(self), np.int64)
        inside = np.arange(len(self))
        for ahead in range(1, len(self)):
            inside = inside[: np.searchsorted(inside, len(self) - ahead)]
            inside = inside[before[inside + ahead] - after[inside] <= gap]
            if not len(inside):
                break
            spans[inside] = ahead
        return spans

    def error(self) -> float:
        """The greatest error of a rank, as a part of the total weight."""
        if not len(self):
            return 0.0
        entries = self.entries
        spread = entries[1:, 3] - entries[1:, 2] - entries[1:, 1]
        gaps = self._before()[1:] - self._after()[:-1]
        return float(max(0.0, spread.max(initial=0), gaps.max(initial=0))) / self.total_weight

    def boundaries(self, count: int) -> Array:
        """float32: about `count` values that part the weight into about equal shares."""
        if not len(self):
            return np.zeros(0, np.float32)
        kept = self.compressed(count, self.error() + 1.0 / count)
        return np.unique(kept.entries[:, 0])

    def quantiles(self, count: int) -> Array:
        """float32: the `count + 1` quantiles, the least and the greatest value among them."""
        if not len(self):
            return np.zeros(0, np.float32)
        count = max(count, 2)
        entries, after, before = self.entries, self._after(), self._before()
        middles = entries[:, 2] + entries[:, 3]
        found, current = [], 0
        for rank in range(count + 1):
            twice = 2 * (rank * entries[-1, 3] / count)
            ahead = current + 1
            while ahead < len(entries) and twice >= middles[ahead]:
                ahead += 1
            current = ahead - 1
            is_here = ahead == len(entries) or twice < after[current] + before[ahead]
            found.append(entries[current if is_here else ahead, 0])
        return np.asarray(found, np.float32)


def _levels(epsilon: float, most: int) -> int:
    """How many values are a block, if `most` values come and ranks may be wrong by a part `epsilon`."""
    if epsilon <= _SMALLEST_EPSILON:
        return max(most, 2)
    level, block = 1, 2
    while (1 << level) * block < most:
        block = math.ceil(level / epsilon) + 1
        level += 1
    return max(block, 2)


class Stream:
    """What has streamed in.

    Args:
        epsilon: by which part of the total weight a rank may be wrong.
        most: how many values come at most.

    `summaries` has that of each level.
    """

    def __init__(self, epsilon: float, most: int) -> None:
        self._epsilon, self._most = epsilon, most
        self._block = _levels(epsilon, most)
        self.summaries: list[Summary] = []

    def push(self, values: Array, weights: Array) -> None:
        """Takes values with their weights in."""
        kept = weights > 0
        values, weights = values[kept], weights[kept]
        size = min(self._block * 2, self._most)
        for start in range(0, len(values), size):
            self.push_summary(Summary.of(values[start : start + size], weights[start : start + size]))

    def push_summary(self, summary: Summary) -> None:
        """Takes what a summary has seen in."""
        summary = summary.compressed(self._block, self._epsilon)
        if not len(summary):
            return
        for level in range(len(self.summaries) + 1):
            if level == len(self.summaries):
                self.summaries.append(Summary())
            current = self.summaries[level]
            summary = summary.merged(current)
            if not len(current) or len(summary) <= self._block + 1:
                self.summaries[level] = summary
                return
            summary = summary.compressed(self._block, self._epsilon)
            self.summaries[level] = Summary()

    def finished(self) -> Summary:
        """The summary of everything."""
        found = Summary()
        for summary in self.summaries:
            found = found.merged(summary)
        return found
