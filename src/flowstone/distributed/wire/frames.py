"""Frames: what direct connections carry. A frame is

    kind (1 byte), step (8), length of the text (4), length of the payload (8), text, payload

With the bit `SHARED` in its kind, the payload lies in a block that both ends share, whose number (8 bytes)
stands in its place (`shared_blocks`). A frame of the kind `BLOCK` brings the file of a new one, whose
number is its step. Integers are little-endian. No frame holds code or pickled objects.

>>> header(PUSH, 7, 3, 5).hex()
'050700000000000000030000000500000000000000'
"""

from __future__ import annotations

import array
import os
import socket
import struct
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "ABORT",
    "BLOCK",
    "CAN_SHARE",
    "CLEAN",
    "COLLECT",
    "DONE",
    "FAILED",
    "FORGET",
    "HELLO",
    "INVITE",
    "NUMBER",
    "PUSH",
    "RUN",
    "SHARED",
    "Frame",
    "FrameReader",
    "header",
]  # fmt: skip

# kinds of frames
HELLO, RUN, DONE, FAILED, PUSH, CLEAN, ABORT, COLLECT, INVITE, CAN_SHARE, BLOCK, FORGET = range(1, 13)
SHARED = 0x80
NUMBER = struct.Struct("<Q")  # of a block
_HEADER = struct.Struct("<BQIQ")
_MOST_TEXT = 1 << 24
_MOST_PAYLOAD = 1 << 40
_MOST_FIRST_TEXT = 1 << 12  # of a first frame, before it is known who sends it
_BUFFER = 1 << 16  # bytes that are read at once
_FILE_BYTES = array.array("i").itemsize  # one file comes with a frame
_MOST_FILES = 64  # that were read before their frames


class Frame(NamedTuple):
    """A frame as it was read. `payload`: memory that nobody else has, or the number of a block."""

    kind: int
    step: int
    text: str
    size: int
    payload: Any


def header(kind: int, step: int, text: int, payload: int) -> bytes:
    """The beginning of a frame with a text and a payload of so many bytes."""
    return _HEADER.pack(kind, step, text, payload)


class FrameReader:
    """Frames from a stream; small ones are read several at once. `takes_files`: of those that come with them
    over a Unix socket, `take_file` gives them in the order of the frames."""

    def __init__(self, stream: Any, takes_files: bool = False) -> None:
        self._stream = stream
        self._bytes = bytearray(_BUFFER)
        self._view = memoryview(self._bytes)
        self._start = self._end = 0
        self._files: list[int] = []
        self._read = self._read_with_files if takes_files else stream.recv_into

    def first(self) -> Frame | None:
        """The frame that a connection begins with, which has no payload and little text."""
        return self.frame(_MOST_FIRST_TEXT, 0)

    def frame(self, most_text: int = _MOST_TEXT, most_payload: int = _MOST_PAYLOAD) -> Frame | None:
        """The next frame; None at the end. ValueError for one that cannot be, EOFError for half of one."""
        if not self._have(_HEADER.size):
            return None
        kind, step, words, size = _HEADER.unpack_from(self._view, self._start)
        if not HELLO <= kind & ~SHARED <= FORGET or words > most_text or size > most_payload:
            raise ValueError(f"a frame of kind {kind} with {words} and {size} bytes is malformed")
        self._start += _HEADER.size
        text = str(self._take(words), "utf-8", "replace") if words else ""
        if kind & SHARED:
            (number,) = NUMBER.unpack(self._take(NUMBER.size))
            return Frame(kind, step, text, size, number)
        return Frame(kind, step, text, size, self._take(size))

    def take_file(self) -> int:
        """The file that came with a frame; the caller closes it. ValueError if there is none."""
        if not self._files:
            raise ValueError("a block came without its file")
        return self._files.pop(0)

    def close(self) -> None:
        """Closes files that nobody took."""
        while self._files:
            os.close(self._files.pop())

    def _have(self, count: int) -> bool:
        """Reads until `count` bytes, not more than the buffer has, are there; False at the end of the
        stream."""
        while self._end - self._start < count:
            if self._start:
                rest = self._end - self._start
                self._view[:rest] = bytes(self._view[self._start : self._end])
                self._start, self._end = 0, rest
            got = self._read(self._view[self._end :])
            if not got:
                return False
            self._end += got
        return True

    def _take(self, count: int) -> memoryview:
        """`count` bytes in memory of their own. EOFError if the stream ends before."""
        if not count:
            return memoryview(b"")
        taken = np.empty(count, np.uint8)
        view: memoryview = taken.data.cast("B")
        there = min(count, self._end - self._start)
        view[:there] = self._view[self._start : self._start + there]
        self._start += there
        while there < count:
            got = self._stream.recv_into(view[there:])
            if not got:
                raise EOFError("the stream ended within a frame")
            there += got
        return view

    def _read_with_files(self, view: memoryview) -> int:
        flags = socket.MSG_CMSG_CLOEXEC
        got, extra, _, _ = self._stream.recvmsg_into([view], socket.CMSG_SPACE(_FILE_BYTES), flags)
        for level, kind, content in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self._files += array.array("i", content[: len(content) // _FILE_BYTES * _FILE_BYTES])
        if len(self._files) > _MOST_FILES:
            raise ValueError(f"{len(self._files)} files came that no frame is about")
        return int(got)
