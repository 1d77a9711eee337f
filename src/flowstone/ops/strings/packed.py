"""Many byte strings end to end in one buffer, so that NumPy can work on all of them at once.

>>> packed = Packed([b"ab", b"", b"xyz"])
>>> packed.starts.tolist(), packed.lengths.tolist()
([0, 3, 4], [2, 0, 3])
>>> packed.words(packed.starts)[0] & 0xFFFF == int.from_bytes(b"ab", "little")
np.True_
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

WORD = 8


class Packed:
    """Strings in `buffer` (uint8), each at its place of `starts`, `lengths` bytes long (both int64).

    One byte stands between two strings, and `WORD` bytes behind the last.
    """

    __slots__ = ("_words", "buffer", "lengths", "starts")

    def __init__(self, strings: Sequence[bytes]) -> None:
        self.buffer = np.frombuffer(b"\0".join(strings) + b"\0" * WORD, np.uint8)
        stop = self.buffer.size - WORD
        ends = np.append(np.flatnonzero(self.buffer[:stop] == 0), stop)
        if len(ends) != max(len(strings), 1):  # a string has a zero byte
            lengths = np.fromiter(map(len, strings), np.int64, len(strings))
            ends = np.cumsum(lengths + 1) - 1
        ends = ends[: len(strings)]
        self.starts = np.zeros_like(ends)
        np.add(ends[:-1], 1, out=self.starts[1:])
        self.lengths = ends - self.starts
        self._words: np.ndarray[Any, Any] | None = None

    def words(self, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The eight bytes from each place of the buffer as numbers, least significant byte first: uint64."""
        if self._words is None:
            size = self.buffer.size - WORD + 1
            self._words = np.ndarray((size,), "<u8", self.buffer.data, 0, (1,))  # unaligned, one a byte
        words: np.ndarray[Any, Any] = self._words[places]
        return words


def lengths_of(strings: Sequence[bytes]) -> np.ndarray[Any, Any]:
    """The number of bytes of each string: int64."""
    return Packed(strings).lengths


def character_counts(strings: Sequence[bytes]) -> np.ndarray[Any, Any]:
    """The number of UTF-8 characters of each string, that of bytes that do not continue one: int64."""
    packed = Packed(strings)
    continues = np.flatnonzero((packed.buffer & 0xC0) == 0x80)
    if not continues.size:
        return packed.lengths
    before = np.searchsorted(continues, np.stack([packed.starts, packed.starts + packed.lengths]))
    counts: np.ndarray[Any, Any] = packed.lengths - (before[1] - before[0])
    return counts


def mapped(function: Callable[[bytes], bytes], strings: list[bytes]) -> list[bytes]:
    """`function` of each string, where it maps every byte by itself and leaves zero bytes alone.

    So it may be called once, on all strings end to end.
    """
    if not strings:
        return []
    results = function(b"\0".join(strings)).split(b"\0")
    return results if len(results) == len(strings) else [function(each) for each in strings]
