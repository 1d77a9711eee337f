r"""The strings of a TensorProto's ``tensor_content``: the lengths of all as varints, then the bytes of all.

TensorFlow's clients send constants of strings so, unless they are small.

>>> strings_of(b"\x01\x00\x03abcd", 3)
[b'a', b'', b'bcd']
"""

from __future__ import annotations

__all__ = ["strings_of"]

_MOST_BITS = 63


def strings_of(content: bytes, count: int) -> list[bytes]:
    """The `count` strings in `content`. ValueError unless their lengths agree with it."""
    if not 0 <= count <= len(content):  # each has a length, of one byte at least
        raise ValueError(f"A TensorProto has {len(content)} bytes of content, too few for {count} strings.")
    at, lengths = 0, []
    for _ in range(count):
        length, at = _read_varint(content, at)
        lengths.append(length)
    if at + sum(lengths) != len(content):
        raise ValueError("The lengths of a TensorProto's strings do not agree with its content.")
    strings = []
    for length in lengths:
        strings.append(content[at : at + length])
        at += length
    return strings


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    """The number at this place, and the place behind it."""
    number = shift = 0
    while at < len(content) and shift < _MOST_BITS:
        byte = content[at]
        number, shift, at = number | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return number, at
    raise ValueError("The content of a TensorProto of strings ends within a length, or has one too large.")
