"""What two runs of a program printed, compared: the same text, numbers nearly the same."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?|-?\d+e[-+]?\d+|-?\d+|\bnan\b|\binf\b")
# What float32 sums in another order, and steps of training since then, come to; exact are whole numbers.
_RELATIVE, _ABSOLUTE = 2e-3, 2e-4


def difference(got: str, expected: str) -> str | None:
    """The first lines that differ, one below the other; None if all agree."""
    ours, theirs = got.splitlines(), expected.splitlines()
    for number, (line, other) in enumerate(zip(ours, theirs), 1):
        if not _agree(line, other):
            return f"line {number}\n    here       {line}\n    TensorFlow {other}"
    if len(ours) != len(theirs):
        return f"{len(ours)} lines, TensorFlow prints {len(theirs)}"
    return None


def _agree(line: str, other: str) -> bool:
    if _NUMBER.sub("#", line) != _NUMBER.sub("#", other):
        return False
    return all(map(_near, _NUMBER.findall(line), _NUMBER.findall(other)))


def _near(text: str, other: str) -> bool:
    if text == other:
        return True
    if "." not in text + other and "e" not in text + other:
        return False
    return abs(float(text) - float(other)) <= _RELATIVE * abs(float(other)) + _ABSOLUTE
