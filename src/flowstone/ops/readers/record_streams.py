"""What is in a file, one record after the other: lines, records of a fixed length, TFRecords, LMDB's entries.

Each function is a generator, which opens the file when it is first asked. Errors are those of `io`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from flowstone.framework import errors
from flowstone.io.compression import Decompressor, check_kind
from flowstone.io.file_errors import errors_of
from flowstone.io.file_system import as_path, open_file, read_bytes, stat
from flowstone.io.records import RecordReader

_PIECE = 1 << 18  # bytes read at a time


def _pieces(path: str, compression: str) -> Iterator[bytes]:
    check_kind(compression)
    with open_file(path) as file, errors_of(path):
        read: Callable[[], bytes] = lambda: file.read(_PIECE)  # noqa: E731
        if compression:
            read = Decompressor(file.read, compression, path).read_piece
        while piece := read():
            yield piece


def lines(path: str, compression: str = "") -> Iterator[bytes]:
    """The lines of a text, without their ends (a line feed, or one behind a carriage return)."""
    rest: list[bytes] = []
    for piece in _pieces(path, compression):
        *whole, last = piece.split(b"\n")
        for i, line in enumerate(whole):
            text = b"".join([*rest, line]) if not i else line
            yield text[:-1] if text.endswith(b"\r") else text
        if whole:
            rest = []
        rest.append(last)
    if text := b"".join(rest):
        yield text


def fixed_records(
    path: str, sizes: tuple[int, int, int, int], compression: str = "", exact: bool = False
) -> Iterator[bytes]:
    """Records of the same length. `sizes`: bytes of the header, of a record, of the footer, and from the
    beginning of one to that of the next.

    What is left before the footer is no record or, with `exact`, an InvalidArgumentError.
    """
    header, record, footer, hop = sizes
    if exact and not compression:  # before the first record, as the size is known
        _check_body(path, stat(path).length - header - footer, sizes)
    buffer, at, total = bytearray(), header, 0
    for piece in _pieces(path, compression):
        buffer += piece
        total += len(piece)
        while at + record + footer <= len(buffer):
            yield bytes(buffer[at : at + record])
            at += hop
        dropped = min(at, len(buffer))
        del buffer[:dropped]
        at -= dropped
    if exact:
        _check_body(path, total - header - footer, sizes)


def _check_body(path: str, body: int, sizes: tuple[int, int, int, int]) -> None:
    header, record, footer, _ = sizes
    if body < 0 or body % record:
        raise errors.InvalidArgumentError(
            None,
            None,
            f'Excluding the header ({header} bytes) and footer ({footer} bytes), input file "{path}" has '
            f"body length {body} bytes, which is not an exact multiple of the record length "
            f"({record} bytes).",
        )


# ---- with keys, as readers give them


def keyed_lines(path: bytes, skipped: int) -> Iterator[tuple[bytes, bytes]]:
    """Lines from the one behind `skipped` on; keys are the path and the line's number, from 1."""
    for number, line in enumerate(lines(as_path(path)), 1):
        if number > skipped:
            yield b"%s:%d" % (path, number), line


def keyed_fixed_records(
    path: bytes, sizes: tuple[int, int, int, int], compression: str
) -> Iterator[tuple[bytes, bytes]]:
    """Records of one length; keys are the path and the record's number, from 0."""
    for number, record in enumerate(fixed_records(as_path(path), sizes, compression)):
        yield b"%s:%d" % (path, number), record


def keyed_records(path: bytes, compression: str) -> Iterator[tuple[bytes, bytes]]:
    """TFRecords; keys are the path and where the record begins."""
    with RecordReader(path, compression) as reader:
        while True:
            key = b"%s:%d" % (path, reader.offset)
            record = next(reader, None)
            if record is None:
                return
            yield key, record


def whole_file(path: bytes) -> Iterator[tuple[bytes, bytes]]:
    """One record: the path, and all that is in the file."""
    yield path, read_bytes(path)


def itself(work: bytes) -> Iterator[tuple[bytes, bytes]]:
    """One record: the work, twice."""
    yield work, work


def entries(path: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of an LMDB database, a folder or its file, in their order.

    UnimplementedError without the package lmdb.
    """
    try:
        lmdb: Any = import_module("lmdb")
    except ImportError:
        message = "To read LMDB databases, install the package lmdb: pip install lmdb"
        raise errors.UnimplementedError(None, None, message) from None
    name = os.fsdecode(path)
    try:
        subdir = os.path.isdir(name)
        base = lmdb.open(name, subdir=subdir, readonly=True, lock=False, create=False)
        with base, base.begin() as transaction:
            yield from transaction.cursor()
    except lmdb.Error as error:
        raise errors.InvalidArgumentError(None, None, f"{name}: {error}") from None
