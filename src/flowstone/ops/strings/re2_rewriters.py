"""Where a pattern matches first in a text, with its groups, by an automaton whose steps also note places.

A state is the threads of a `LinearMatcher` before a character, in their order, with the registers in which
each has noted places (V. Laurikari, NFAs with Tagged Transitions, Their Conversion to Deterministic Automata
and Application to Regular Expressions, 2000); whether a match may still begin; and the kind of the character
before, where an assertion may ask for it. A step to the next state copies registers.

>>> from flowstone.ops.strings.linear_matching import LinearMatcher
>>> from flowstone.ops.strings.re2_syntax import parse
>>> found = rewriter(LinearMatcher(parse("(a+)b"), 1), [1])
>>> found.match("xaab", 0), found.match("xaa", 0)
([1, 4, 1, 3], None)
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.ops.strings.linear_matching import LinearMatcher, holds
from flowstone.ops.strings.re2_automata import DEAD, kind_of
from flowstone.ops.strings.re2_sets import contains

__all__ = ["END", "FIRST_STATE", "NO_CHARACTER", "PLACE", "UNSET", "Rewriter", "rewriter"]

FIRST_STATE = 1
"""The states from there on are real; in the one before there is no match any more."""
PLACE, UNSET, _RESULTS = 0, 1, 2
"""The registers of the place that is read, of -1, and from there on of the match."""
NO_CHARACTER, END = 0, 1
"""The classes of a byte that is part of no character, and of the end of the text."""
_ASCII, _LAST = 128, 0x10FFFF
_MOST_STEPS = 200_000  # of the program, which takes 100 ms
_HERE, _NOWHERE = -1, -2  # in place of a register: the place that is read, and none
_Places = tuple[int, ...]  # the register of each slot
_Thread = tuple[int, _Places]  # where to go on
_State = tuple[tuple[_Thread, ...], bool, str]
_Copies = list[tuple[int, int]]  # (to, from)


class Rewriter(NamedTuple):
    """All arrays are int32. The class of a character is that of the last of `bounds` that is not above it, in
    `classes`; those of ASCII come first. `steps` [states, classes, 2]: the state after a character, and where
    in `copies` there is a count, followed by so many registers to and from that are copied before. `starts`
    [257]: the state of a search that begins behind a byte, or, the last one, at the beginning. The registers
    from 2 on, each -1 at first, are then begin and end of the match, and of each group that was asked for."""

    bounds: np.ndarray[Any, Any]
    classes: np.ndarray[Any, Any]
    steps: np.ndarray[Any, Any]
    copies: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]
    registers: int
    results: int

    def match(self, text: str, begin: int) -> list[int] | None:
        """The registers of the first match from a place on; None if there is none."""
        registers = [-1] * self.registers
        state = int(self.starts[min(ord(text[begin - 1]), 255) if begin else 256])
        for place in range(begin, len(text) + 1):
            kind = self._class(text[place]) if place < len(text) else END
            after, copies = self.steps[state, kind].tolist()
            registers[PLACE] = place
            for i in range(copies + 1, copies + 1 + 2 * int(self.copies[copies]), 2):
                registers[self.copies[i]] = registers[self.copies[i + 1]]
            state = after
            if state == DEAD:
                break
        found = registers[_RESULTS : _RESULTS + self.results]
        return found if found[0] >= 0 else None

    def _class(self, sign: str) -> int:
        if 0xD800 <= ord(sign) < 0xE000:  # stands for a byte of no character
            return NO_CHARACTER
        return int(self.classes[bisect.bisect_right(self.bounds.tolist(), ord(sign)) - 1])


def rewriter(matcher: LinearMatcher, groups: Sequence[int]) -> Rewriter | None:
    """The automaton that finds these groups; None if it would take long to make."""
    builder = _Builder(matcher, groups)
    bounds, classes, signs = _classes(builder)
    starts = {
        before: builder.number(((), True, before)) for before in dict.fromkeys(map(builder.kind, _BEFORE))
    }
    rows: list[list[tuple[int, int]]] = [[(DEAD, 0)] * len(signs)]
    for state in builder.waiting:  # which grows meanwhile
        rows.append([builder.step(state, sign) for sign in signs])
        if builder.steps > _MOST_STEPS:
            return None
    arrays = bounds, classes, rows, builder.copies, [starts[builder.kind(each)] for each in _BEFORE]
    first, second, steps, copies, begun = (np.array(each, np.int32) for each in arrays)
    return Rewriter(first, second, steps, copies, begun, builder.registers, 2 * len({0, *groups}))


_BEFORE = [*[chr(i) if i < _ASCII else "\x80" for i in range(256)], ""]
_LOST = "\udc80"  # how Python decodes a byte that is part of no character


def _classes(builder: _Builder) -> tuple[list[int], list[int], list[str]]:
    """The bounds, the class from each on, and one character of each class."""
    ends = {end for ranges in builder.sets for low, high in ranges for end in (low, high + 1)}
    bounds = [*range(_ASCII), *sorted(end for end in {_ASCII, *ends} if _ASCII <= end <= _LAST)]
    numbers: dict[Any, int] = {}
    signs, classes = [_LOST, ""], []
    for bound in bounds:
        key = builder.kind(chr(bound)), *(contains(each, bound) for each in builder.sets)
        if key not in numbers:
            numbers[key] = len(signs)
            signs.append(chr(bound))
        classes.append(numbers[key])
    return bounds, classes, signs


class _Builder:
    """How states follow on each other. `waiting`: the states in the order of their numbers, and `steps`: how
    many of the program it went."""

    def __init__(self, matcher: LinearMatcher, groups: Sequence[int]) -> None:
        self._program, self._start, self.steps = matcher.program, matcher.start, 0
        operands: list[tuple[str, Any]] = [(what, operand) for what, operand, _ in self._program]
        self.sets = list(dict.fromkeys(operand for what, operand in operands if what == "read"))
        self._has_assertions = any(what == "assert" for what, _ in operands)
        slots = [slot for group in (0, *groups) for slot in (2 * group, 2 * group + 1)]
        self._slots = {slot: i for i, slot in enumerate(dict.fromkeys(slots))}
        self._spare = _RESULTS + len(self._slots)  # a register for a moment
        self.registers = self._spare + 1
        self.waiting: list[_State] = []
        self._latest: tuple[_State | None, list[_Thread]] = None, []
        self._numbers: dict[_State, int] = {}
        self.copies = [0]
        self._known: dict[tuple[tuple[int, int], ...], int] = {(): 0}

    def kind(self, sign: str) -> str:
        """A character that assertions take for the same."""
        return kind_of(sign) if self._has_assertions and sign else ""

    def number(self, state: _State) -> int:
        """The number of a state."""
        if state not in self._numbers:
            self._numbers[state] = len(self.waiting) + FIRST_STATE
            self.waiting.append(state)
        return self._numbers[state]

    def step(self, state: _State, sign: str) -> tuple[int, int]:
        """The number of the state after a character, or at the end after none; the place of the copies."""
        _, seeks, _ = state
        copies: _Copies = []
        after: list[_Thread] = []
        reached = self._reached(state, sign)
        self.steps += len(reached)
        for place, places in reached:
            what, operand, next_at = self._program[place]
            if what == "match":
                copies = [(_RESULTS + i, self._register(each)) for i, each in enumerate(places)]
                seeks = False
                break
            if sign and sign != _LOST and contains(operand, ord(sign)):  # type: ignore[arg-type]
                after.append((next_at, places))
        names: dict[int, int] = {}
        for _, places in after:
            for each in places:
                if each != _NOWHERE:
                    names.setdefault(each, len(names))
        copies += self._in_order({new: old for old, new in names.items()})
        renamed = tuple([(at, tuple([names.get(each, _NOWHERE) for each in places])) for at, places in after])
        goes_on = bool(sign) and (seeks or bool(renamed))
        return self.number((renamed, seeks, self.kind(sign))) if goes_on else DEAD, self._copied(copies)

    def _reached(self, state: _State, sign: str) -> list[_Thread]:
        """The instructions that are reached without reading, in the order in which a matcher would try them,
        where this character is the next one: without assertions, whatever it is."""
        if self._has_assertions or self._latest[0] is not state:
            self._latest = state, self._followed(state, sign)
        return self._latest[1]

    def _followed(self, state: _State, sign: str) -> list[_Thread]:
        threads, seeks, before = state
        found: list[_Thread] = []
        seen = set[int]()
        begun = [(self._start, (_NOWHERE,) * len(self._slots))] if seeks else []
        for thread in (*threads, *begun):
            waiting = [thread]
            while waiting:
                place, places = waiting.pop()
                if place in seen:
                    continue
                seen.add(place)
                self.steps += 1
                what, operand, next_at = self._program[place]
                if what in ("read", "match"):
                    found.append((place, places))
                    continue
                if what == "split":
                    waiting.append((operand, places))  # type: ignore[arg-type]
                elif what == "save":
                    slot = self._slots.get(operand)  # type: ignore[call-overload]
                    if slot is not None:
                        places = (*places[:slot], _HERE, *places[slot + 1 :])
                elif not holds(str(operand), before + sign, len(before)):
                    continue
                waiting.append((next_at, places))
        return found

    def _register(self, name: int) -> int:
        return {_HERE: PLACE, _NOWHERE: UNSET}.get(name, self._spare + 1 + name)

    def _in_order(self, sources: dict[int, int]) -> _Copies:
        """Copies that together give registers of threads new values at once."""
        left = {self._register(new): self._register(old) for new, old in sources.items() if new != old}
        self.registers = max(self.registers, self._spare + 2 + max(sources, default=-1))
        done: _Copies = []
        while left:
            free = next((to for to in left if to not in left.values()), None)
            if free is None:  # they are a ring
                first = next(iter(left))
                done.append((self._spare, first))
                left = {to: self._spare if each == first else each for to, each in left.items()}
            else:
                done.append((free, left.pop(free)))
        return done

    def _copied(self, copies: _Copies) -> int:
        key = tuple(copies)
        if key not in self._known:
            self._known[key] = len(self.copies)
            self.copies += [len(copies), *[each for pair in copies for each in pair]]
        return self._known[key]
