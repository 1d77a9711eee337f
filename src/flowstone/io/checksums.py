"""CRC-32C (Castagnoli), and the masked form in which files hold it.

A CRC of data that holds its own CRC says little; files therefore hold it rotated and with a constant added.

>>> hex(crc32c(b"123456789")), hex(masked(crc32c(b"123456789"))), hex(crc32c(b"56789", crc32c(b"1234")))
('0xe3069283', '0xc78ab0e5', '0xe3069283')
"""

from __future__ import annotations

from typing import Any

import google_crc32c
import numpy as np

_DELTA = 0xA282EAD8
_MASK = 0xFFFFFFFF


def crc32c(data: Any, crc: int = 0) -> int:
    """The CRC-32C of bytes or of a contiguous buffer, after bytes whose CRC-32C is `crc`."""
    if isinstance(data, (memoryview, bytearray)):
        data = np.frombuffer(data, np.uint8)
    return google_crc32c.extend(crc, data)  # type: ignore[no-any-return]


def masked(crc: int) -> int:
    """What files hold in the place of `crc`."""
    return ((crc >> 15 | crc << 17) + _DELTA) & _MASK


def unmasked(value: int) -> int:
    """The CRC that `masked` gave as `value`."""
    rotated = (value - _DELTA) & _MASK
    return (rotated >> 17 | rotated << 15) & _MASK


def masked_crc32c(data: Any) -> int:
    """`masked` of `crc32c`."""
    return masked(crc32c(data))
