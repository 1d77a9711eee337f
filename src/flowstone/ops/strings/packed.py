"""Many byte strings end to end in one buffer, so that NumPy can work on all of them at once.

>>> packed = Packed([b"ab", b"", b"xyz"])
>>> packed.starts.tolist(), packed.lengths.tolist()
([0, 3, 4], [2, 0, 3])
>>> packed.words(packed.starts)[0] & 0xFFFF == int.from_bytes(b"ab", "little")
np.True_
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from flowstone.framework.machine.string_code import Texts, byte_strings, string_codecs

WORD = 8
BLOCK = 16384  # so many short strings end to end stay in the processor's cache
_SAMPLE = 50
MANY = 64  # strings, from which machine code pays
_READ = (list, np.ndarray)  # by machine code
_LONG = 40  # bytes: where asking each string for its length is faster than looking for zero bytes
KEPT = np.array([(1 << 8 * i) - 1 for i in range(WORD + 1)], "<u8")  # of a word, its first i bytes


class Packed:
    """Strings in `buffer` (uint8), each at its place of `starts`, `lengths` bytes long (both int64).

    One byte stands between two strings, and `WORD` bytes behind the last.
    """

    __slots__ = ("_words", "buffer", "lengths", "starts")

    def __init__(self, strings: Texts) -> None:
        self._words: np.ndarray[Any, Any] | None = None
        code = byte_strings() if len(strings) >= MANY and isinstance(strings, _READ) else None
        packed = None if code is None else code.packed(strings, WORD)
        if packed is not None:
            self.buffer, self.starts, self.lengths = packed
            return
        self.buffer = np.frombuffer(b"\0".join(strings) + b"\0" * WORD, np.uint8)
        stop = self.buffer.size - WORD
        if stop < _LONG * len(strings):
            ends = np.append(np.flatnonzero(self.buffer[:stop] == 0), stop)
            if len(ends) == max(len(strings), 1):  # else a string has a zero byte
                ends = ends[: len(strings)]
                self.starts = np.zeros_like(ends)
                np.add(ends[:-1], 1, out=self.starts[1:])
                self.lengths = ends - self.starts
                return
        self.lengths = lengths_of(strings)
        self.starts = np.cumsum(self.lengths + 1) - self.lengths - 1

    @classmethod
    def of(
        cls, buffer: np.ndarray[Any, Any], starts: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]
    ) -> Packed:
        """The strings at these places of a buffer that has `WORD` bytes more."""
        packed = cls.__new__(cls)
        packed.buffer, packed.starts, packed.lengths, packed._words = buffer, starts, lengths, None
        return packed

    def words(self, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The eight bytes from each place of the buffer as numbers, least significant byte first: uint64."""
        if self._words is None:
            size = self.buffer.size - WORD + 1
            self._words = np.ndarray((size,), "<u8", self.buffer.data, 0, (1,))  # unaligned, one a byte
        words: np.ndarray[Any, Any] = self._words[places]
        return words

    def characters(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The places where characters of UTF-8 begin, of all strings and of the bytes behind each; for each
        string which of them is its first, and the number of its characters.

        A character is a byte with those after it that can only continue one.
        """
        begins = (self.buffer & 0xC0) != 0x80
        begins[self.starts] = True
        numbers = np.cumsum(begins)
        first = numbers[self.starts] - 1
        return np.flatnonzero(begins), first, numbers[self.starts + self.lengths] - 1 - first

    def pieces(self, starts: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The parts of the buffer that begin at `starts` and have so many bytes: an object array of bytes.

        None reaches into the last `WORD` bytes.
        """
        if (code := byte_strings()) is not None and self.buffer.flags.c_contiguous:
            pieces: np.ndarray[Any, Any] = code.pieces(self.buffer, starts, lengths)
            return pieces
        found = np.empty(len(starts), object)
        for i in range(0, len(starts), BLOCK):
            found[i : i + BLOCK] = self._pieces(starts[i : i + BLOCK], lengths[i : i + BLOCK])
        return found

    def _pieces(self, starts: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> Any:
        if are_similar(lengths):
            return texts_of(self.rows(starts, lengths), lengths)
        data = self.buffer.data
        return [data[a:b].tobytes() for a, b in zip(starts.tolist(), (starts + lengths).tolist())]

    def rows(
        self, starts: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any], step: int = WORD
    ) -> np.ndarray[Any, Any]:
        """Each part as a row of words, one at least, with `step` bytes of it in each, and zeros behind it.

        The result is uint64 [parts, words].
        """
        width = max(-(-int(lengths.max(initial=0)) // step), 1)
        rows = np.empty((len(starts), width), np.uint64)
        last = self.buffer.size - WORD
        for i in range(width):
            words = self.words(np.minimum(starts + i * step, last))
            rows[:, i] = words & KEPT[np.clip(lengths - i * step, 0, step)]
        return rows


def are_similar(lengths: np.ndarray[Any, Any]) -> bool:
    """Whether rows of the greatest length take not much more memory than the texts do."""
    return int(lengths.max(initial=0)) * len(lengths) <= WORD * (int(lengths.sum()) + 2 * len(lengths))


def texts_of(rows: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The texts in the bytes of the rows, with zeros behind each: an object array of bytes."""
    if (code := byte_strings()) is not None and rows.flags.c_contiguous:
        width = rows.itemsize * rows.shape[1]
        pieces: np.ndarray[Any, Any] = code.pieces(rows, np.arange(len(rows)) * width, lengths)
        return pieces
    found = (
        rows.view(f"S{rows.itemsize * rows.shape[1]}").ravel().astype(object)
    )  # without zeros at their ends
    places = np.arange(len(rows)) * (rows.itemsize * rows.shape[1]) + lengths
    ends_in_zero = (rows.view(np.uint8).reshape(-1)[np.maximum(places - 1, 0)] == 0) & (lengths > 0)
    for i in np.flatnonzero(ends_in_zero).tolist():
        found[i] = rows[i].tobytes()[: lengths[i]]
    return found


def lengths_of(strings: Texts) -> np.ndarray[Any, Any]:
    """The number of bytes of each string: int64."""
    code = byte_strings() if len(strings) >= MANY and isinstance(strings, _READ) else None
    found = None if code is None else code.lengths(strings)
    if found is not None:
        lengths: np.ndarray[Any, Any] = found
        return lengths
    try:
        return np.frombuffer(bytes(map(len, strings)), np.uint8).astype(np.int64)
    except ValueError:  # a string has more than 255
        return np.fromiter(map(len, strings), np.int64, len(strings))


def character_counts(strings: Texts) -> np.ndarray[Any, Any]:
    """The number of UTF-8 characters of each string, that of bytes that do not continue one: int64."""
    code = string_codecs() if len(strings) >= MANY else None
    found: np.ndarray[Any, Any] | None = None if code is None else code.character_counts(strings)
    if found is not None:
        return found
    if b"".join(strings).isascii():
        return lengths_of(strings)
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *[_character_counts(Packed(block)) for block in blocks_of(list(strings))]])


def _character_counts(packed: Packed) -> np.ndarray[Any, Any]:
    continues = (packed.buffer & 0xC0) == 0x80
    before = np.cumsum(continues) - continues
    counts: np.ndarray[Any, Any] = (
        packed.lengths - before[packed.starts + packed.lengths] + before[packed.starts]
    )
    return counts


def mapped(function: Callable[[bytes], bytes], strings: list[bytes]) -> list[bytes]:
    """`function` of each string, where it maps every byte by itself and leaves zero bytes alone.

    So it may be called once, on many strings end to end.
    """
    found: list[bytes] = []
    for block in blocks_of(strings):
        results = function(b"\0".join(block)).split(b"\0")
        found += results if len(results) == len(block) else map(function, block)
    return found


def blocks_of(strings: list[bytes]) -> Iterator[list[bytes]]:
    """The strings, so many at a time that what is computed with them stays in the processor's cache."""
    few = strings[:_SAMPLE]
    size = BLOCK if sum(map(len, few)) < _LONG * len(few) else BLOCK // 8
    if len(strings) <= size:
        return iter([strings] if strings else [])
    return (strings[i : i + size] for i in range(0, len(strings), size))
