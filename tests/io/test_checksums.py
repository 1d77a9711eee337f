"""CRC-32C of any buffer, in pieces, and its masked form."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flowstone.io.checksums import crc32c, masked, masked_crc32c, unmasked


def bitwise(data: bytes) -> int:
    """CRC-32C from its definition: the reflected polynomial 0x82F63B78."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@given(st.binary(max_size=100), st.integers(0, 100))
def test_the_definition(data: bytes, cut: int) -> None:
    assert crc32c(data) == bitwise(data)
    assert crc32c(data[cut:], crc32c(data[:cut])) == bitwise(data)


def test_buffers() -> None:
    array = np.arange(1000, dtype=np.uint8)
    wanted = crc32c(array.tobytes())
    assert crc32c(array) == crc32c(array.data) == crc32c(bytearray(array)) == wanted
    assert crc32c(b"") == crc32c(array[:0]) == 0


@given(st.integers(0, 2**32 - 1))
def test_masks(crc: int) -> None:
    assert unmasked(masked(crc)) == crc and 0 <= masked(crc) < 2**32


def test_what_files_hold() -> None:
    # The length 3, in a record that TensorFlow wrote.
    assert masked_crc32c((3).to_bytes(8, "little")) == int.from_bytes(bytes.fromhex("b099490e"), "little")
