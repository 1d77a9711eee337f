"""Strings in some encoding to code points and back, with what is done about malformed bytes.

An encoding has one of the names that ICU gives it, of which Python knows most. UTF-16 and UTF-32 without a
byte order are big-endian; a byte order mark is a character like others.

>>> decoder = Decoder("UTF-8", "replace", 0xFFFD, False)
>>> decoder.text("a€".encode() + b"\\xff")
'a€\\ufffd'
"""

from __future__ import annotations

import codecs
import re
from typing import Any

import numpy as np

from flowstone.framework.tensors.node import Node
from flowstone.ops.arrays.arrays import invalid

MALFORMED = "\udfff"  # stands for malformed bytes: no encoding gives it
HIGHEST = 0x10FFFF
_CONTROL = re.compile("[\0-\x1f]")
_BYTE_ORDERS = {"utf-16": "utf-16-be", "utf-32": "utf-32-be"}
_HANDLER = "flowstone-malformed"
# Python's own codecs that are no encodings of text.
_NO_ENCODINGS = {"idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "unicode-escape", "utf-8-sig"}


def _mark(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return MALFORMED, error.end


codecs.register_error(_HANDLER, _mark)


def codec_of(encoding: str) -> str:
    """Python's name of an encoding. InvalidArgumentError if there is none of this name."""
    try:
        found = codecs.lookup(encoding)
        known = found.name not in _NO_ENCODINGS and found._is_text_encoding
    except (LookupError, ValueError):
        known = False
    if not known or not encoding:
        raise invalid(f"Could not create converter for input encoding: {encoding}")
    return _BYTE_ORDERS.get(found.name, found.name)


class Decoder:
    """From bytes in `encoding` to text.

    `errors`: 'strict' raises InvalidArgumentError for malformed bytes, 'replace' puts the code point
    `replacement` in their place, 'ignore' leaves them out. `replaces_controls`: treats U+0000 to U+001F as
    malformed bytes are treated, but raises nothing.
    """

    def __init__(self, encoding: str, errors: str, replacement: int, replaces_controls: bool) -> None:
        self.codec, self.errors, self.replaces_controls = codec_of(encoding), errors, replaces_controls
        self.replacement = "" if errors == "ignore" else character(replacement)

    @classmethod
    def of(cls, node: Node) -> Decoder:
        """As the attributes of a node say."""
        names = ("input_encoding", "errors", "replacement_char", "replace_control_characters")
        return cls(*(node.attributes[name] for name in names))

    def raw(self, string: bytes) -> str:
        """The text with `MALFORMED` for malformed bytes; InvalidArgumentError for them if that is asked."""
        text = string.decode(self.codec, _HANDLER)
        if MALFORMED in text and self.errors == "strict":
            raise invalid("Invalid formatting on input string")
        return text

    def text(self, string: bytes) -> str:
        """The text."""
        text = self.raw(string).replace(MALFORMED, self.replacement)
        return _CONTROL.sub(lambda match: self.replacement, text) if self.replaces_controls else text

    def points(self, string: bytes) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The code points (int32), and the byte at which each begins (int64)."""
        raw = self.raw(string)
        points = code_points(raw)
        offsets = self._offsets(string, raw, points)
        wrong = points == ord(MALFORMED)
        if self.replaces_controls:
            wrong |= points < 0x20
        if self.replacement:
            return np.where(wrong, np.int32(ord(self.replacement)), points), offsets
        return points[~wrong], offsets[~wrong]

    def _offsets(self, string: bytes, text: str, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if len(text) == len(string):
            return np.arange(len(text))
        if MALFORMED in text:
            return np.array(self._offsets_with_errors(string), np.int64)
        if self.codec == "utf-8":
            widths = 1 + (points > 0x7F) + (points > 0x7FF) + (points > 0xFFFF)
        else:
            widths = np.array([len(each.encode(self.codec)) for each in text], np.int64)
        offsets: np.ndarray[Any, Any] = np.cumsum(widths) - widths
        return offsets

    def _offsets_with_errors(self, string: bytes) -> list[int]:
        """Byte by byte: a character begins where the one before it was complete."""
        offsets, begin = [], 0
        while begin < len(string):
            offsets.append(begin)
            begin += self._width(string[begin : begin + 8])
        return offsets

    def _width(self, ahead: bytes) -> int:
        """How many of the bytes ahead make the first character, or are malformed together."""
        first = ahead.decode(self.codec, _HANDLER)[0]
        if first == MALFORMED:
            try:
                ahead.decode(self.codec)
            except UnicodeDecodeError as error:
                return error.end
        return len(first.encode(self.codec))


def character(point: int) -> str:
    """The character of a code point; InvalidArgumentError if there is none."""
    if not 0 <= point <= HIGHEST:
        raise invalid("replacement_char out of unicode codepoint range")
    return "\ufffd" if 0xD800 <= point < 0xE000 else chr(point)


def code_points(text: str) -> np.ndarray[Any, Any]:
    """The code points of a text: int32."""
    return np.frombuffer(bytearray(text.encode("utf-32-le", "surrogatepass")), "<i4")
