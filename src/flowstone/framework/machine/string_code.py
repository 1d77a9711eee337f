"""What the native tier offers to kernels of strings, in slots as those of `machine_code.py`.

`byte_strings()` reads and makes many strings of bytes at once, `distinct_texts()` finds distinct ones,
`string_hashes()` puts them into buckets, `string_codecs()` counts characters, and writes and reads base64,
`text_numbers()` reads numbers, `text_pieces()` cuts and splits, `text_automata()` matches patterns, and
`text_rewriters()` replaces what they match. They are None where there is no machine code, or none yet;
kernels then do the same by Python and NumPy, with the same results.

>>> offered = byte_strings()
>>> offered is None or isinstance(offered, ByteStrings)
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from flowstone.framework.machine.machine_code import Slot

__all__ = [
    "ByteStrings",
    "DistinctTexts",
    "RewritingAutomaton",
    "StringCodecs",
    "StringHashes",
    "TextAutomata",
    "TextIndex",
    "TextNumbers",
    "TextPieces",
    "TextRewriters",
    "Texts",
    "byte_strings",
    "distinct_texts",
    "string_codecs",
    "string_hashes",
    "text_automata",
    "text_numbers",
    "text_pieces",
    "text_rewriters",
]

Texts = Any
"""Bytes: a list, or an object array of one dimension whose items are neighbours."""


@runtime_checkable
class ByteStrings(Protocol):
    """Strings of bytes, and buffers (uint8) of many, with their places and lengths (int64)."""

    def lengths(self, strings: Texts) -> Any:
        """The number of bytes of each string; None if one is no bytes."""

    def packed(self, strings: Texts, room: int) -> tuple[Any, Any, Any] | None:
        """A buffer, the places and the lengths of the strings in it, which a zero byte follows each, and
        behind the last `room` of them; None if one is no bytes."""

    def pieces(self, buffer: Any, starts: Any, lengths: Any) -> Any:
        """The parts of the buffer as an object array of bytes."""


class TextIndex(Protocol):
    """Strings and their numbers: the distinct ones have 0, 1, … as they came first."""

    numbers: Any
    """Of the strings that it was made of: int64."""
    distinct: int
    """How many are distinct."""

    def find(self, texts: list[bytes]) -> Any:
        """The number of each string, -1 for others: int64; None where something is no bytes."""


class DistinctTexts(Protocol):
    """Distinct strings."""

    def index(self, texts: list[bytes]) -> TextIndex | None:
        """The index of these strings; None where something is no bytes. The list must not change."""


class StringHashes(Protocol):
    """Hashes of strings, modulo a number of buckets: "fingerprint" (FarmHash's Fingerprint64), "sip_hash"
    (SipHash-2-4, by a key of two int64) and "murmur_hash" (MurmurHash64A with TensorFlow's seed)."""

    def __call__(self, name: str, strings: Any, buckets: int, key: tuple[int, int] = (0, 0)) -> Any:
        """Of a contiguous object array, the buckets in its shape, int64; None where something is no bytes."""


class StringCodecs(Protocol):
    """Strings of bytes; None where something is none."""

    def character_counts(self, strings: Texts) -> Any:
        """The number of bytes of each that do not continue a character of UTF-8: int64."""

    def encoded(self, strings: list[bytes], pads: bool) -> Any:
        """Each as base64 for addresses of the web, filled up to fours or not: an object array of bytes."""

    def decoded(self, strings: list[bytes]) -> Any:
        """What each is the base64 of: an object array of bytes; None where something is no base64."""


class TextAutomata(Protocol):
    """Automata that read bytes."""

    def __call__(self, strings: list[bytes], table: Any) -> Any:
        """The state after all bytes of each string, int32; None where something is no bytes. `table`: int32
        [states, 256], the state after a byte; the first state is 2, and 0 and 1 are not left."""


class TextNumbers(Protocol):
    """Decimal numbers in texts; None where a text is none, or one that hardly any program writes."""

    def floats(self, strings: Texts) -> Any:
        """What `float` makes of each: float64."""

    def integers(self, strings: Texts) -> Any:
        """What `int` makes of each: int64."""


class TextPieces(Protocol):
    """Object arrays of bytes made of strings; None where something is no bytes."""

    def parts(self, strings: Texts, starts: Any, sizes: Any, in_bytes: bool = True) -> Any:
        """Of each string so many bytes, or characters of UTF-8, from its start on, as far as it has them; a
        negative start counts from the end. Of a negative size are all bytes, and no characters. None where a
        start is not within its string, or both are negative and of characters. Both int64."""

    def mapped(self, strings: Texts, table: bytes) -> Any:
        """Each string with the bytes that the table of 256 has instead."""

    def split(self, strings: Texts, delimiters: bytes, skip_empty: bool) -> Any:
        """The parts between the bytes that are delimiters, of all strings, and the number of each string's
        parts, int64: none of an empty string."""


class RewritingAutomaton(Protocol):
    """What finds matches and groups (`ops/strings/re2_rewriters.py`); all arrays are int32."""

    @property
    def bounds(self) -> Any: ...
    @property
    def classes(self) -> Any: ...
    @property
    def steps(self) -> Any: ...
    @property
    def copies(self) -> Any: ...
    @property
    def starts(self) -> Any: ...
    @property
    def registers(self) -> int: ...


class TextRewriters(Protocol):
    """Automata that rewrite strings."""

    def __call__(
        self, strings: list[bytes], automaton: RewritingAutomaton, pieces: Sequence[bytes | int], once: bool
    ) -> Any:
        """Each string with its matches, or if `once` the first one, replaced by the pieces: bytes and numbers
        of groups, as the automaton counts those that it was asked for. An object array of bytes; None where
        something is none."""


byte_strings: Slot[[], ByteStrings] = Slot()
distinct_texts: Slot[[], DistinctTexts] = Slot()
string_codecs: Slot[[], StringCodecs] = Slot()
string_hashes: Slot[[], StringHashes] = Slot()
text_automata: Slot[[], TextAutomata] = Slot()
text_numbers: Slot[[], TextNumbers] = Slot()
text_pieces: Slot[[], TextPieces] = Slot()
text_rewriters: Slot[[], TextRewriters] = Slot()
