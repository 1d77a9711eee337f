"""Messages as storage and networks may spoil them."""

from __future__ import annotations

import random

__all__ = ["damaged"]


def damaged(message: bytes, draw: random.Random) -> bytes:
    """A message of which one or two times a byte or a bit was changed, the rest cut off, or a byte put in."""
    data = bytearray(message)
    for _ in range(draw.randrange(1, 3)):
        place = draw.randrange(len(data))
        kind = draw.randrange(4)
        if kind == 0:
            data[place] = draw.randrange(256)
        elif kind == 1:
            data[place] ^= 1 << draw.randrange(8)
        elif kind == 2:
            del data[place:]
        else:
            data.insert(place, draw.randrange(256))
        if not data:
            break
    return bytes(data)
