"""Reading Snappy's compression, which V1 checkpoints have in their blocks.

A compressed block is the length of its contents, then elements: bytes as they are, or a copy of bytes that
were decompressed before. https://github.com/google/snappy/blob/main/format_description.txt

>>> decompress(bytes.fromhex("0a") + bytes.fromhex("08616263") + bytes.fromhex("0d03"))
b'abcabcabca'
"""

from __future__ import annotations

from flowstone.io.checkpoint_files.encodings import read_varint

_LITERAL, _COPY_1, _COPY_2 = 0, 1, 2
_MOST_GROWTH = 32  # times; a copy of three bytes gives at most 64


def decompress(data: bytes) -> bytes:
    """The contents of a compressed block. ValueError if it is none."""
    size, at = read_varint(data, 0)
    if size > _MOST_GROWTH * len(data):
        raise ValueError("the length is wrong")
    result = bytearray()
    end = len(data)
    while at < end and len(result) <= size:
        tag = data[at]
        at += 1
        if tag & 3 == _LITERAL:
            length, at = _literal_length(tag, data, at)
            if at + length > end:
                raise ValueError("bytes are missing")
            result += data[at : at + length]
            at += length
        else:
            length, back, at = _copy(tag, data, at)
            if not 0 < back <= len(result):
                raise ValueError("a copy of what is not there")
            begin = len(result) - back
            piece = bytes(result[begin : begin + length])
            result += (piece * (length // back + 1))[:length] if back < length else piece
    if len(result) != size or at != end:
        raise ValueError("the length is wrong")
    return bytes(result)


def _literal_length(tag: int, data: bytes, at: int) -> tuple[int, int]:
    length = tag >> 2
    if length < 60:
        return length + 1, at
    size = length - 59
    return int.from_bytes(data[at : at + size], "little") + 1, at + size


def _copy(tag: int, data: bytes, at: int) -> tuple[int, int, int]:
    if tag & 3 == _COPY_1:
        if at >= len(data):
            raise ValueError("bytes are missing")
        return (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at], at + 1
    size = 2 if tag & 3 == _COPY_2 else 4
    return (tag >> 2) + 1, int.from_bytes(data[at : at + size], "little"), at + size
