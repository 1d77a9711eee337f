"""Sets of characters, as regular expressions name them: sorted ranges of code points, both ends included.

Surrogates are in no set: among them are what stands for bytes that are no UTF-8.

>>> complement(((0x61, 0x7A),))[0], named("\\\\d")
((0, 96), ((48, 57),))
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from flowstone.ops.strings.unicode_scripts import scripts

Ranges = tuple[tuple[int, int], ...]

HIGHEST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_PERL: dict[str, Ranges] = {
    "d": ((48, 57),),
    "s": ((9, 10), (12, 13), (32, 32)),
    "w": _WORD,
}
_POSIX: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": ((48, 57),),
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
# Letters whose other case is found from there only.
_BACK = {"k": "\u212a", "s": "\u017f", "\u00e5": "\u212b"}
_WIDEST_FOLDED = 3000
ANY: Ranges = ((0, 0xD7FF), (0xE000, HIGHEST))
NO_NEWLINE: Ranges = ((0, 9), (11, 0xD7FF), (0xE000, HIGHEST))


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """All of these, in order, without overlaps."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    found, next_low = [], 0
    for low, high in union((*ranges, _SURROGATES)):
        if low > next_low:
            found.append((next_low, low - 1))
        next_low = high + 1
    if next_low <= HIGHEST:
        found.append((next_low, HIGHEST))
    return tuple(found)


def overlap(a: Ranges, b: Ranges) -> bool:
    """Whether they have a character in common."""
    return any(low <= other_high and other_low <= high for low, high in a for other_low, other_high in b)


def contains(ranges: Ranges, point: int) -> bool:
    """Whether a code point is in the set."""
    return any(low <= point <= high for low, high in ranges)


def named(escape: str) -> Ranges | None:
    """The set of ``\\d``, ``\\W`` and the like; None for other escapes."""
    ranges = _PERL.get(escape[1:].lower())
    if ranges is None:
        return None
    return complement(ranges) if escape[1].isupper() else ranges


def posix(name: str) -> Ranges | None:
    """The set of ``alpha``, ``^digit`` …; None for other names."""
    ranges = _POSIX.get(name.removeprefix("^"))
    if ranges is None:
        return None
    return complement(ranges) if name.startswith("^") else ranges


@cache
def unicode_class(name: str) -> Ranges | None:
    """The characters of a general category (``L``, ``Lu``) or script (``Greek``); None for other names."""
    if name == "Any":
        return ANY
    if len(name) <= 2:
        found = [i for i in range(HIGHEST + 1) if unicodedata.category(chr(i)).startswith(name)]
        return _runs(np.array(found)) if found and name[:1].isupper() else None
    number = _SCRIPTS.get(name)
    return None if number is None else _runs(np.flatnonzero(scripts() == number))


def _runs(points: np.ndarray[Any, Any]) -> Ranges:
    breaks = np.flatnonzero(np.diff(points) > 1)
    lows = [points[0], *points[breaks + 1]]
    highs = [*points[breaks], points[-1]]
    return tuple((int(low), int(high)) for low, high in zip(lows, highs))


# The scripts that patterns name most, with their numbers in `unicode_scripts`.
_SCRIPTS = {
    "Arabic": 2,
    "Armenian": 3,
    "Bengali": 4,
    "Bopomofo": 5,
    "Cherokee": 6,
    "Coptic": 7,
    "Cyrillic": 8,
    "Devanagari": 10,
    "Ethiopic": 11,
    "Georgian": 12,
    "Greek": 14,
    "Gujarati": 15,
    "Gurmukhi": 16,
    "Han": 17,
    "Hangul": 18,
    "Hebrew": 19,
    "Hiragana": 20,
    "Kannada": 21,
    "Katakana": 22,
    "Khmer": 23,
    "Lao": 24,
    "Latin": 25,
    "Malayalam": 26,
    "Mongolian": 27,
    "Myanmar": 28,
    "Oriya": 31,
    "Sinhala": 33,
    "Syriac": 34,
    "Tamil": 35,
    "Telugu": 36,
    "Thaana": 37,
    "Thai": 38,
    "Tibetan": 39,
    "Common": 0,
    "Inherited": 1,
}


def folded(ranges: Ranges) -> Ranges:
    """The set with the other cases of its letters."""
    more = list(ranges)
    for low, high in ranges:
        if high - low > _WIDEST_FOLDED:  # has both cases of most letters
            low, high = max(low, 0), min(high, 0x24F)
        for point in range(low, high + 1):
            more += [(other, other) for other in _other_cases(point)]
    return union(more)


@cache
def _other_cases(point: int) -> tuple[int, ...]:
    found, pending = {point}, [chr(point)]
    while pending:
        each = pending.pop()
        for other in (each.lower(), each.upper(), each.title(), _BACK.get(each, "")):
            if len(other) == 1 and ord(other) not in found:
                found.add(ord(other))
                pending.append(other)
    if found & {0x3C2, 0x3C3, 0x3A3}:  # the two small sigmas
        found |= {0x3C2, 0x3C3, 0x3A3}
    return tuple(found - {point})
