"""What the native tier offers to kernels of the rooms below it: two slots, which `native` fills.

`byte_strings()` is what reads and makes many strings of bytes at once, `random_words()` what computes many
blocks of random words. They are None where there is no machine code, or not yet. Without them kernels do the
same by Python, NumPy and ATen, with the same results.

>>> offered = byte_strings()
>>> offered is None or isinstance(offered, ByteStrings)
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

__all__ = ["ByteStrings", "byte_strings", "offer_byte_strings", "offer_random_words", "random_words"]


@runtime_checkable
class ByteStrings(Protocol):
    """Lists of bytes, and buffers (uint8) of many strings, with their places and lengths (int64)."""

    def lengths(self, strings: list[bytes]) -> Any:
        """The number of bytes of each string; None if one is no bytes."""

    def packed(self, strings: list[bytes], room: int) -> tuple[Any, Any, Any] | None:
        """A buffer, the places and the lengths of the strings in it, which a zero byte follows each, and
        behind the last `room` of them; None if one is no bytes."""

    def pieces(self, buffer: Any, starts: Any, lengths: Any) -> Any:
        """The parts of the buffer as an object array of bytes."""


_offered: list[Callable[[], ByteStrings | None]] = []
_words_offered: list[Callable[[], Callable[..., None] | None]] = []


def byte_strings() -> ByteStrings | None:
    """The machine code for strings, if there is such by now."""
    return _offered[-1]() if _offered else None


def offer_byte_strings(found: Callable[[], ByteStrings | None]) -> None:
    """Has `byte_strings` ask this function."""
    _offered[:] = [found]


def random_words() -> Callable[..., None] | None:
    """The machine code for random words, if there is such by now; see `native/random_words.py`."""
    return _words_offered[-1]() if _words_offered else None


def offer_random_words(found: Callable[[], Callable[..., None] | None]) -> None:
    """Has `random_words` ask this function."""
    _words_offered[:] = [found]
