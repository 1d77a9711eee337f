"""Where a sequence of nodes repeats itself, and where to cut it so that its pieces are equal.

Equal programs are compiled once. A deep network, or an unrolled one, is hundreds of equal layers, of which
every one has the same code if regions begin at the same place of a layer.

>>> sections("xyabcabcabcabcq", 2)
[(2, 14, 3)]
>>> ends("xyabcabcabcabcq", [1] * 15, 7, 2)
[2, 8, 14, 15]
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

__all__ = ["ends", "sections"]

_ALIKE = 12  # keys in a row that make a repetition


def sections(keys: Sequence[Hashable], alike: int = _ALIKE) -> list[tuple[int, int, int]]:
    """The parts of the sequence that repeat themselves twice or more, in order: (begin, end, period)."""
    numbers: dict[Hashable, int] = {}  # of different keys, each of which is hashed once
    sequence = [numbers.setdefault(key, len(numbers)) for key in keys]
    last: dict[tuple[int, ...], int] = {}
    found: list[tuple[int, int, int]] = []
    begin = period = 0  # of the repetition that lasts
    count = len(keys) - alike + 1
    for i in range(count + 1):
        distance = 0
        if i < count:
            here = tuple(sequence[i : i + alike])
            distance = i - last.get(here, i)
            last[here] = i
        if distance == period:
            continue
        if period and i - begin >= period:
            start, end = begin - period, i - 1 + alike
            start = max(start, found[-1][1] if found else 0)
            if end - start >= 2 * period:
                found.append((start, end, period))
        begin, period = i, distance
    return found


def ends(keys: Sequence[Hashable], weights: Sequence[int], most: int, alike: int = _ALIKE) -> list[int]:
    """Where pieces end that weigh at most so much, equal ones in what repeats itself."""
    repeated = sections(keys, alike)
    each = [sum(weights[start : start + period]) for start, _, period in repeated]
    times = max(1, most // max([1, *each]))  # the same in all: they pass values to each other
    found: list[int] = []
    done = 0
    for start, end, period in repeated:
        found += _cut(weights, done, start, most)
        unit = times * period
        for first in range(start, end, unit):
            found += _cut(weights, first, min(first + unit, end), most)
        done = end
    return found + _cut(weights, done, len(keys), most)


def _cut(weights: Sequence[int], start: int, end: int, most: int) -> list[int]:
    """The ends of pieces from `start` to `end`."""
    found = []
    total = 0
    for i in range(start, end):
        if total and total + weights[i] > most:
            found.append(i)
            total = 0
        total += weights[i]
    return [*found, end] if end > start else found
