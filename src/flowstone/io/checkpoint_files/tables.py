"""Sorted tables: files of keys and values in the order of the keys, as LevelDB has them.

    block ... block     each followed by a byte (compression) and a checksum of both (`checksums`)
    metaindex block     empty here
    index block         for each block its place, under a key that is at least the block's last
    footer              the places of metaindex and index, and a magic number; 48 bytes

A block holds entries (bytes in common with the key before, other bytes of the key, bytes of the value; the
other bytes; the value), then the offsets of those with nothing in common, and their number. Blocks are read
when they are needed, and verified then: DataLossError names file and offset.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Callable, Iterator
from typing import BinaryIO

from flowstone.framework import errors
from flowstone.io.checkpoint_files.encodings import read_varint, varint
from flowstone.io.checkpoint_files.snappy import decompress
from flowstone.io.checksums import masked_crc32c

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = struct.Struct("<BI")
_BLOCK = 1 << 18  # bytes
_RESTART = 16  # entries
_PLAIN, _SNAPPY = 0, 1


class TableWriter:
    """Writes a table to a file; keys come in increasing order, each once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._offset = 0
        self._block = _Block(_RESTART)
        self._index = _Block(1)

    def add(self, key: bytes, value: bytes) -> None:
        if self._block.entries and key <= self._block.last_key:
            raise ValueError(f"the key {key!r} comes after {self._block.last_key!r}")
        self._block.add(key, value)
        if self._block.size >= _BLOCK:
            self._end_block()

    def _end_block(self) -> None:
        last = self._block.last_key
        self._index.add(last, self._write(self._block))
        self._block = _Block(_RESTART)
        self._block.last_key = last

    def _write(self, block: _Block) -> bytes:
        """Writes a block, and returns its place."""
        data = block.finished() + bytes([_PLAIN])
        self._file.write(data + masked_crc32c(data).to_bytes(4, "little"))
        place = varint(self._offset) + varint(len(data) - 1)
        self._offset += len(data) + 4
        return place

    def finish(self) -> None:
        """Writes what is not written yet; the file is not closed."""
        if self._block.entries:
            self._end_block()
        places = self._write(_Block(1)) + self._write(self._index)
        self._file.write(places.ljust(_FOOTER - 8, b"\0") + _MAGIC.to_bytes(8, "little"))


class _Block:
    def __init__(self, restart: int) -> None:
        self._restart = restart
        self._parts: list[bytes] = []
        self._restarts = [0]
        self.size = self.entries = 0
        self.last_key = b""

    def add(self, key: bytes, value: bytes) -> None:
        common = 0
        if self.entries % self._restart:
            common = _common(key, self.last_key)
        elif self.entries:
            self._restarts.append(self.size)
        entry = varint(common) + varint(len(key) - common) + varint(len(value)) + key[common:]
        self._parts += (entry, value)
        self.size += len(entry) + len(value)
        self.entries += 1
        self.last_key = key

    def finished(self) -> bytes:
        numbers = [*self._restarts, len(self._restarts)]
        return b"".join([*self._parts, struct.pack(f"<{len(numbers)}I", *numbers)])


def _common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    pairs = enumerate(zip(one, other))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


class Table:
    """A table in a file of `size` bytes; `read(offset, size)` gives so many, or fewer at the file's end."""

    def __init__(self, read: Callable[[int, int], bytes], size: int, path: str) -> None:
        self._read, self._size, self._path = read, size, path
        footer = read(size - _FOOTER, _FOOTER) if size >= _FOOTER else b""
        if len(footer) < _FOOTER or int.from_bytes(footer[-8:], "little") != _MAGIC:
            raise self._damaged(max(size - _FOOTER, 0), "not an sstable (bad magic number)")
        with self._faults(size - _FOOTER):
            other, at = self._place(footer, 0)
            index, _ = self._place(footer, at)
        list(self._entries(other))  # only for its checksum
        self._index: list[tuple[bytes, tuple[int, int]]] = []
        for key, value in self._entries(index):
            with self._faults(index[0]):
                self._index.append((key, self._place(value, 0)[0]))

    def _damaged(self, offset: int, why: str) -> errors.DataLossError:
        return errors.DataLossError(None, None, f"{self._path}; corrupt at {offset}: {why}")

    def _faults(self, offset: int) -> _Faults:
        return _Faults(self, offset)

    def _place(self, data: bytes, at: int) -> tuple[tuple[int, int], int]:
        offset, at = read_varint(data, at)
        size, at = read_varint(data, at)
        if offset + size + _TRAILER.size > self._size:
            raise ValueError("a block lies beyond the end")
        return (offset, size), at

    def _entries(self, place: tuple[int, int]) -> Iterator[tuple[bytes, bytes]]:
        """The entries of the block at a place."""
        offset, size = place
        data = self._read(offset, size + _TRAILER.size)
        if len(data) < size + _TRAILER.size:
            raise self._damaged(offset, "the file ends early")
        kind, checksum = _TRAILER.unpack_from(data, size)
        if masked_crc32c(data[: size + 1]) != checksum:
            raise self._damaged(offset, "block checksum mismatch")
        with self._faults(offset):
            if kind not in (_PLAIN, _SNAPPY):
                raise ValueError(f"block compression {kind} is unknown")
            yield from _parse(data[:size] if kind == _PLAIN else decompress(data[:size]))

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys and values, in order."""
        for _, place in self._index:
            yield from self._entries(place)

    def get(self, key: bytes) -> bytes | None:
        """The value under a key, or None."""
        number = bisect.bisect_left(self._index, (key,))
        if number == len(self._index):
            return None
        return next((value for found, value in self._entries(self._index[number][1]) if found == key), None)


class _Faults:
    """Inside it, what a parser finds wrong is the damage of the table."""

    def __init__(self, table: Table, offset: int) -> None:
        self._table, self._offset = table, offset

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (ValueError, IndexError)):
            raise self._table._damaged(self._offset, str(error)) from None


def _parse(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    if len(block) < 4:
        raise ValueError("a block without restarts")
    end = len(block) - 4 * (int.from_bytes(block[-4:], "little") + 1)
    if end < 0:
        raise ValueError("a block with too many restarts")
    key, at = b"", 0
    while at < end:
        common, at = read_varint(block, at)
        other, at = read_varint(block, at)
        length, at = read_varint(block, at)
        if common > len(key) or at + other + length > end:
            raise ValueError("an entry beyond its block")
        key = key[:common] + block[at : at + other]
        at += other
        yield key, block[at : at + length]
        at += length
