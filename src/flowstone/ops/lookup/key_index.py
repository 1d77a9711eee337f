"""Indexes of keys: which row belongs to a key. No values, no locks.

A `NumberIndex` is a hash table with open addressing, in which NumPy looks for all keys of a call together; an
`ObjectIndex` is a dictionary. Rows are numbered as keys come, from 0 on, and a row stays its key's.

>>> index = NumberIndex()
>>> index.add(np.array([7, 5, 7])).tolist(), index.find(np.array([5, 6])).tolist()
([0, 1, 0], [1, -1])
>>> names = ObjectIndex()
>>> names.add([b"a", b"b"]).tolist(), names.remove([b"a", b"c"]).tolist(), names.find([b"a", b"b"]).tolist()
([0, 1], [0], [-1, 1])
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, repeat
from typing import Any

import numpy as np

from flowstone.framework.machine import string_code
from flowstone.ops.arrays.distinct_texts import numbers_in

Rows = np.ndarray[Any, Any]

_EMPTY, _REMOVED = -1, -2
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: Fibonacci hashing
_SMALLEST = 16
_SPARSE = 16  # fewer than one row in so many are not marked but sorted
_MANY = 64  # keys asked for, from which machine code pays


def as_words(keys: np.ndarray[Any, Any]) -> Rows:
    """Numbers as words of 64 bits, equal where the numbers are equal."""
    if keys.dtype.kind in "iub":
        return keys.astype(np.int64).view(np.uint64)
    return (keys.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 is 0.0


class NumberIndex:
    """Rows by numbers of at most 64 bits; see the module."""

    def __init__(self) -> None:
        self._next_row = 0
        self._make(_SMALLEST)

    def _make(self, size: int) -> None:
        self._rows = np.full(size, _EMPTY, np.int64)
        self._words = np.zeros(size, np.uint64)
        self._mask, self._used = size - 1, 0  # used: places that are not empty
        self._shift = np.uint64(64 - size.bit_length() + 1)

    def find(self, keys: np.ndarray[Any, Any]) -> Rows:
        """The row of each key, -1 where there is none: int64."""
        return self._find(as_words(keys))

    def _find(self, words: Rows) -> Rows:
        return self._located(words)[0]

    def _located(self, words: Rows) -> tuple[Rows, Rows]:
        """The row of each, -1 where there is none, and the place where the search has ended."""
        places = self._places(words)
        rows = self._rows[places]
        found = (self._words[places] == words) & (rows >= 0)
        result = np.where(found, rows, -1)
        pending = np.flatnonzero(~found & (rows != _EMPTY))
        while pending.size:
            places[pending] = (places[pending] + 1) & self._mask
            at = places[pending]
            rows = self._rows[at]
            found = (self._words[at] == words[pending]) & (rows >= 0)
            result[pending[found]] = rows[found]
            pending = pending[~found & (rows != _EMPTY)]
        return result, places

    def _places(self, words: Rows) -> Rows:
        """Where to begin to look for each."""
        places: Rows = ((words * _MULTIPLIER) >> self._shift).astype(np.int64)
        return places

    def add(self, keys: np.ndarray[Any, Any]) -> Rows:
        """The row of each key; keys that are new get the next ones."""
        words = as_words(keys)
        rows = self._find(words)
        new = np.flatnonzero(rows < 0)
        if new.size:
            candidates = np.arange(self._next_row, self._next_row + new.size)
            given = self._insert(words[new], candidates)
            is_first = given == candidates
            numbers = self._next_row + np.cumsum(is_first) - 1  # without those of keys that came twice
            rows[new] = numbers[given - self._next_row]
            if not is_first.all():
                self._renumber(numbers)
            self._next_row += int(is_first.sum())
        return rows

    def _renumber(self, numbers: Rows) -> None:
        later = np.flatnonzero(self._rows >= self._next_row)
        self._rows[later] = numbers[self._rows[later] - self._next_row]

    def _insert(self, words: Rows, rows: Rows) -> Rows:
        """Puts in words that are not there, with these rows; of equal words, all get the row of the first."""
        if 2 * (self._used + len(words)) > len(self._rows):
            self._grow(len(words))
        places, pending = self._places(words), np.arange(len(words))
        given: Rows = rows.copy()
        while pending.size:
            at = places[pending]
            free = np.flatnonzero(self._rows[at] == _EMPTY)[::-1]
            self._rows[at[free]] = rows[pending[free]]  # of several for one place, the last written stays
            won = free[self._rows[at[free]] == rows[pending[free]]]
            self._words[at[won]] = words[pending[won]]
            self._used += len(won)
            owner = self._rows[at]
            done = (self._words[at] == words[pending]) & (owner >= 0)
            given[pending[done]] = owner[done]
            pending = pending[~done]
            places[pending] = (places[pending] + 1) & self._mask
        return given

    def _grow(self, more: int) -> None:
        kept = self._rows >= 0
        words, rows = self._words[kept], self._rows[kept]
        self._make(max(_SMALLEST, 1 << (4 * (len(rows) + more) - 1).bit_length()))
        self._insert(words, rows)

    def remove(self, keys: np.ndarray[Any, Any]) -> Rows:
        """Takes keys out; the rows that were theirs."""
        rows, places = self._located(as_words(keys))
        found = rows >= 0
        self._rows[places[found]] = _REMOVED
        return _distinct(rows[found], self._next_row)


def _distinct(rows: Rows, count: int) -> Rows:
    """The rows, which are below `count`, each once."""
    if _SPARSE * len(rows) < count:
        return np.unique(rows)
    marks = np.zeros(count, bool)
    marks[rows] = True
    return np.flatnonzero(marks)


class ObjectIndex:
    """Rows by bytes or other hashable objects; see the module.

    Once as many were asked for since the last change as there are, bytes are found by machine code.
    """

    def __init__(self) -> None:
        self._next_row = 0
        self._row_of: dict[Any, int] = _Absent()
        self._changed()

    def _changed(self) -> None:
        self._asked = 0
        self._texts: string_code.TextIndex | None = None
        self._rows: Rows = np.empty(0, np.int64)  # by the index's numbers

    def find(self, keys: Sequence[Any]) -> Rows:
        """The row of each key, -1 where there is none: int64."""
        if len(keys) >= _MANY and isinstance(keys, list):
            self._asked += len(keys)
            if self._texts is None and self._asked >= len(self._row_of):
                self._index()
            numbers: Rows | None = None if self._texts is None else self._texts.find(keys)
            if numbers is not None:
                return self._rows[numbers]
        return numbers_in(self._row_of, keys)

    def _index(self) -> None:
        code = string_code.distinct_texts()
        self._texts = None if code is None else code.index(list(self._row_of))
        self._rows = np.array([*self._row_of.values(), -1])  # the last one is that of no key

    def add(self, keys: Sequence[Any]) -> Rows:
        """The row of each key; keys that are new get the next ones."""
        rows = self.find(keys)
        if rows.size and rows.min() < 0:
            new = list(dict.fromkeys(compress(keys, (rows < 0).tolist())))
            first, self._next_row = self._next_row, self._next_row + len(new)
            self._row_of.update(zip(new, range(first, self._next_row)))
            self._changed()
            if len(new) == len(keys):
                return np.arange(first, self._next_row)
            rows = self.find(keys)
        return rows

    def remove(self, keys: Sequence[Any]) -> Rows:
        """Takes keys out; the rows that were theirs."""
        rows = np.fromiter(map(self._row_of.pop, keys, repeat(-1)), np.int64, len(keys))
        self._changed()
        return rows[rows >= 0]


class _Absent(dict[Any, int]):
    """A dictionary that gives -1 for what is not there, and stays without it."""

    def __missing__(self, key: Any) -> int:
        return -1
