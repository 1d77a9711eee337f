"""Seeds of one seed."""

from __future__ import annotations

import hashlib
from typing import Any

__all__ = ["SeedStream"]


class SeedStream:
    """Gives a new seed of 512 bits with each call, TensorFlow's own; None always if the first one is None.

    Args:
        seed: a whole number, None, or another stream, of which one is drawn.
        salt: a word that makes this stream another than those of other words.
    """

    def __init__(self, seed: Any, salt: str) -> None:
        self._seed = seed.original_seed if isinstance(seed, SeedStream) else seed
        self._salt, self._count = salt, 0

    @property
    def original_seed(self) -> Any:
        """The seed of which others are made."""
        return self._seed

    @property
    def salt(self) -> str:
        """The stream's word."""
        return self._salt

    def __call__(self) -> int | None:
        self._count += 1
        if self._seed is None:
            return None
        text = str((self._seed, self._count, self._salt))
        return int.from_bytes(hashlib.sha512(text.encode()).digest(), "big")
