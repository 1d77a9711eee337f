"""How checkpoints write numbers and keys: variable-length integers, and keys whose bytes sort as what they
say.

>>> varint(300).hex(), read_varint(bytes.fromhex("ac02"), 0)
('ac02', (300, 2))
>>> slice_key("v", ((0, -1), (2, 3))).hex()
'007600010102807f8283'
"""

from __future__ import annotations

from collections.abc import Iterable

_MOST_BYTES = 10  # of a variable-length integer of 64 bits


def varint(number: int) -> bytes:
    """`number` in groups of seven bits, the lowest first; all bytes but the last have the eighth bit."""
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at `at`, and where it ends. ValueError where there is none."""
    number = shift = 0
    for place in range(at, min(at + _MOST_BYTES, len(data))):
        byte = data[place]
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place + 1
        shift += 7
    raise ValueError(f"no variable-length integer at {at}")


def slice_key(name: str, extents: Iterable[tuple[int, int]]) -> bytes:
    """The key of a part of the tensor `name`: (start, length) of each dimension, (0, -1) for all of one."""
    extents = list(extents)
    escaped = name.encode("utf-8").replace(b"\xff", b"\xff\x00").replace(b"\x00", b"\x00\xff")
    # A name holds no byte 255 in UTF-8, so that the order of the two replacements is of no matter.
    parts = [_ordered(0), escaped, b"\x00\x01", _ordered(len(extents))]
    for start, length in extents:
        parts += (_signed_ordered(start), _signed_ordered(length))
    return b"".join(parts)


def _ordered(number: int) -> bytes:
    size = (number.bit_length() + 7) // 8
    return bytes([size]) + number.to_bytes(size, "big")


def _signed_ordered(number: int) -> bytes:
    """As many ones as there are bytes, a zero, then the number; all inverted if it is negative."""
    magnitude = ~number if number < 0 else number
    size = magnitude.bit_length() // 7 + 1
    bits = magnitude | ((1 << size) - 1) << 7 * size
    wide = bits & (1 << 8 * size) - 1
    if number < 0:
        wide ^= (1 << 8 * size) - 1
    return wide.to_bytes(size, "big")
