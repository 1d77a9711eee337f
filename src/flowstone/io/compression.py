"""Files of records compressed as a whole, by zlib or gzip: TensorFlow's two kinds, and none.

Reading takes and gives pieces: nothing is as large as the file. A gzip file may have several members.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from flowstone.framework import errors

KINDS = ("", "ZLIB", "GZIP")
_PIECE = 1 << 20  # bytes
_GZIP_BITS = 16  # added to the window's: zlib then reads and writes gzip's header


def check_kind(kind: str) -> None:
    """InvalidArgumentError for what is no kind of compression."""
    if kind not in KINDS:
        raise errors.InvalidArgumentError(None, None, f"Unknown compression type: {kind!r}")


class Decompressor:
    """A stream of decompressed bytes, in pieces, from a function that reads compressed ones.

    `read`: gives at most so many bytes, none at the end. DataLossError, which names `path`, for bytes that
    are not of this kind or end early.
    """

    def __init__(self, read: Callable[[int], bytes], kind: str, path: str) -> None:
        self._read, self._path, self._kind = read, path, kind
        self._stream: Any = None
        self._pending = b""
        self._begin()

    def _begin(self) -> None:
        self._stream = zlib.decompressobj(zlib.MAX_WBITS + (_GZIP_BITS if self._kind == "GZIP" else 0))

    def read_piece(self) -> bytes:
        """The next bytes, at most a piece of them; none at the end."""
        while True:
            if self._stream.eof and not self._next_member():
                return b""
            source = self._stream.unconsumed_tail or self._pending or self._read(_PIECE)
            self._pending = b""
            try:
                piece: bytes = self._stream.decompress(source, _PIECE)
            except zlib.error as error:
                message = f"{self._path}; inflate() failed: {error}"
                raise errors.DataLossError(None, None, message) from None
            if piece:
                return piece
            if not source:
                raise errors.DataLossError(None, None, f"{self._path}; the compressed data end early")

    def _next_member(self) -> bool:
        if self._kind != "GZIP":
            return False
        rest = self._stream.unused_data or self._read(_PIECE)
        if not rest.strip(b"\0"):  # padding
            return False
        self._begin()
        self._pending = rest
        return True


def compressor(kind: str, level: int, window_bits: int, memory_level: int, strategy: int) -> Any:
    """zlib's object that compresses; `window_bits` is at most 15, without gzip's mark."""
    bits = window_bits + (_GZIP_BITS if kind == "GZIP" else 0)
    return zlib.compressobj(level, zlib.DEFLATED, bits, memory_level, strategy)
