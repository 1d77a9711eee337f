"""Whether a pattern fits all of a text, by an automaton of which each byte of ASCII has one next state.

The states are sets of places of a `LinearMatcher`'s program (M. Rabin, D. Scott, Finite Automata and Their
Decision Problems, 1959), with the kind of the character before where an assertion may ask for it.

>>> from flowstone.ops.strings.linear_matching import LinearMatcher
>>> from flowstone.ops.strings.re2_syntax import parse
>>> found = automaton(LinearMatcher(parse("a+b?"), 0))
>>> [int(found.ends[found.state_after(text)]) for text in (b"aab", b"ba", b"")]
[1, 0, 0]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from flowstone.ops.strings.linear_matching import WORD, LinearMatcher, holds
from flowstone.ops.strings.re2_sets import contains

__all__ = ["DEAD", "STRANGE", "Automaton", "automaton", "kind_of"]

DEAD, STRANGE = 0, 1
"""The states that are never left: the pattern fits no more, and a byte was not ASCII."""
_FIRST = 2
_MOST_STEPS = 100_000  # of the program, which takes 40 ms
_ASCII = [chr(i) for i in range(128)]
_State = tuple[frozenset[int], str]  # places to go on from, and the character before, or one of its kind


class Automaton(NamedTuple):
    """`table`: int32 [states, 256], the state after a byte. `ends`: uint8 [states], whether a text may end
    there. A text begins in the state 2."""

    table: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]

    def state_after(self, text: bytes) -> int:
        """The state after all of a text."""
        state = _FIRST
        for byte in text:
            state = int(self.table[state, byte])
        return state


def automaton(matcher: LinearMatcher) -> Automaton | None:
    """The automaton; None if it would take long to make."""
    builder = _Builder(matcher)
    first: _State = (frozenset([matcher.start]), "")
    numbers: dict[_State, int] = {first: _FIRST}
    waiting, rows, ends = [first], [[DEAD] * 256, [STRANGE] * 256], [0, 0]
    for state in waiting:  # which grows meanwhile
        row = [STRANGE] * 256
        for signs in builder.classes:
            after = builder.after(state, signs[0])
            if builder.steps > _MOST_STEPS:
                return None
            if after[0] and after not in numbers:
                numbers[after] = len(numbers) + _FIRST
                waiting.append(after)
            for sign in signs:
                row[ord(sign)] = numbers[after] if after[0] else DEAD
        rows.append(row)
        ends.append(int(builder.may_end(state)))
    return Automaton(np.array(rows, np.int32), np.array(ends, np.uint8))


class _Builder:
    """How states follow on each other. `classes`: the characters of ASCII, those together that all sets of
    the program, and its assertions, take for the same. `steps`: how many of the program it went."""

    def __init__(self, matcher: LinearMatcher) -> None:
        self._program, self.steps = matcher.program, 0
        operands: list[tuple[str, Any]] = [(what, operand) for what, operand, _ in self._program]
        sets = list(dict.fromkeys(operand for what, operand in operands if what == "read"))
        self._has_assertions = any(what == "assert" for what, _ in operands)

        def kind(sign: str) -> tuple[Any, ...]:
            before = kind_of(sign) if self._has_assertions else ""
            return before, *(contains(each, ord(sign)) for each in sets)

        self.classes = [list(signs) for _, signs in groupby(sorted(_ASCII, key=kind), kind)]

    def after(self, state: _State, sign: str) -> _State:
        """The state after one more character."""
        places = frozenset(
            next_at
            for what, operand, next_at in self._reached(state, sign)
            if what == "read" and contains(operand, ord(sign))  # type: ignore[arg-type]
        )
        return places, kind_of(sign) if self._has_assertions else ""

    def may_end(self, state: _State) -> bool:
        """Whether the pattern fits what was read, if the text ends here."""
        return any(what == "match" for what, _, _ in self._reached(state, ""))

    def _reached(self, state: _State, sign: str) -> Iterator[tuple[str, object, int]]:
        """The instructions that are reached without reading, where this character is the next one."""
        places, before = state
        waiting: list[int] = list(places)
        seen = set[int]()
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            self.steps += 1
            what, operand, next_at = self._program[place]
            if what == "split":
                waiting += [operand, next_at]  # type: ignore[list-item]
            elif what == "save" or (what == "assert" and holds(str(operand), before + sign, len(before))):
                waiting.append(next_at)
            elif what != "assert":
                yield what, operand, next_at


def kind_of(sign: str) -> str:
    """A character that assertions take for the same."""
    return "\n" if sign == "\n" else "a" if sign in WORD else " "
