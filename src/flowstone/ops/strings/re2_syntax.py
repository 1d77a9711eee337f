"""Regular expressions in the syntax of RE2, as trees.

RE2's syntax is Perl's without back references and assertions that look around, so that a match takes time in
proportion to the text (R. Cox, RE2, 2010). A tree is made of

=============================  ==============================================================================
`Characters(ranges)`           one character of a set
`Sequence(parts)`              one after the other; none: the empty string
`Choice(branches)`             the first branch with which the whole fits
`Repeat(body, low, high, …)`   `high` None: any number; greedy: as many as possible
`Group(number, body)`          what it fits is remembered under the number, 0 being the whole
`Assertion(kind)`              a place: "begin" or "end" of the text, "line begin", "line end", "word" or not
=============================  ==============================================================================

>>> parse("a+b")
Sequence(parts=(Repeat(body=Characters(ranges=((97, 97),)), low=1, high=None, greedy=True), \
Characters(ranges=((98, 98),))))
"""

from __future__ import annotations

import re
from typing import NamedTuple

from flowstone.ops.strings import re2_sets
from flowstone.ops.strings.re2_sets import Ranges

MOST_REPEATS = 1000


class Characters(NamedTuple):
    """See the module."""

    ranges: Ranges


class Sequence(NamedTuple):
    """See the module."""

    parts: tuple[Node, ...]


class Choice(NamedTuple):
    """See the module."""

    branches: tuple[Node, ...]


class Repeat(NamedTuple):
    """See the module."""

    body: Node
    low: int
    high: int | None
    greedy: bool


class Group(NamedTuple):
    """See the module."""

    number: int
    body: Node


class Assertion(NamedTuple):
    """See the module."""

    kind: str


Node = Characters | Sequence | Choice | Repeat | Group | Assertion


class PatternError(Exception):
    """What is wrong with a pattern."""


_REPEAT = re.compile(r"\{(\d+)(,(\d*))?\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(-[imsU]+)?([:)])")
_NAME = re.compile(r"\(\?P?<(\w+)>")
_SIMPLE = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_PLACES = {"A": "begin", "z": "end", "b": "word", "B": "no word"}


def parse(pattern: str) -> Node:
    """The tree of a pattern. PatternError, with RE2's words, if it has none."""
    parser = _Parser(pattern)
    tree = parser.choice()
    if parser.at < len(pattern):
        raise PatternError(f"unexpected ): {pattern}")
    return tree


class _Parser:
    """A pattern, how far it is read, and the flags that hold there."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at, self.groups, self.flags = pattern, 0, 0, frozenset[str]()

    def _ahead(self, size: int = 1) -> str:
        return self.pattern[self.at : self.at + size]

    def choice(self) -> Node:
        """Branches, up to a closing parenthesis or the end."""
        branches = [self._sequence()]
        while self._ahead() == "|":
            self.at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self.at < len(self.pattern) and self._ahead() not in "|)":
            if self._ahead(2) == "\\Q":
                parts += self._quoted()
                continue
            flags = _FLAGS.match(self.pattern, self.at)
            if flags and flags[3] == ")":
                self.at = flags.end()
                self._set_flags(flags)
                continue
            begin = self.at
            part = self._atom()
            parts.append(self._repeated(part, begin))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quoted(self) -> list[Node]:
        """The characters between backslash Q and backslash E; an operator may follow the last of them."""
        end = self.pattern.find("\\E", self.at)
        stop, after = (len(self.pattern),) * 2 if end < 0 else (end, end + 2)
        parts: list[Node] = [self._literal(each) for each in self.pattern[self.at + 2 : stop]]
        self.at = after
        if parts:
            parts[-1] = self._repeated(parts[-1], self.at)
        return parts

    def _set_flags(self, match: re.Match[str]) -> None:
        self.flags = (self.flags | set(match[1])) - set(match[2] or "")

    # ---- repetition

    def _operator(self) -> tuple[int, int | None] | None:
        sign = self._ahead()
        if sign and sign in "*+?":
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        match = _REPEAT.match(self.pattern, self.at)
        if not match:
            return None
        low = int(match[1])
        high = low if match[2] is None else int(match[3]) if match[3] else None
        if low > MOST_REPEATS or (high is not None and (high > MOST_REPEATS or high < low)):
            raise PatternError(f"invalid repetition size: {match[0]}")
        self.at = match.end()
        return low, high

    def _repeated(self, part: Node, begin: int) -> Node:
        first = self.at
        counts = self._operator()
        if counts is None:
            return part
        greedy = "U" not in self.flags
        if self._ahead() == "?":
            self.at += 1
            greedy = not greedy
        second = self.at
        if self._operator() is not None:
            raise PatternError(f"bad repetition operator: {self.pattern[first : self.at]}")
        self.at = second
        if max(counts[0], counts[1] or 0) * _most_repeats(part) > MOST_REPEATS:
            raise PatternError(f"invalid repetition size: {self.pattern[first:second]}")
        return Repeat(part, *counts, greedy)

    # ---- atoms

    def _atom(self) -> Node:
        sign = self._ahead()
        if sign == "(":
            return self._group()
        if sign == "[":
            return self._class()
        if sign == "\\":
            return self._escape()
        if sign in "*+?":
            raise PatternError(f"no argument for repetition operator: {sign}")
        match = _REPEAT.match(self.pattern, self.at)
        if match:
            raise PatternError(f"no argument for repetition operator: {match[0]}")
        self.at += 1
        if sign == ".":
            return Characters(re2_sets.ANY if "s" in self.flags else re2_sets.NO_NEWLINE)
        if sign == "^":
            return Assertion("line begin" if "m" in self.flags else "begin")
        if sign == "$":
            return Assertion("line end" if "m" in self.flags else "end")
        return self._literal(sign)

    def _literal(self, sign: str) -> Characters:
        ranges: Ranges = ((ord(sign), ord(sign)),)
        if 0xD800 <= ord(sign) < 0xE000:
            raise PatternError("invalid UTF-8")
        return Characters(re2_sets.folded(ranges) if "i" in self.flags else ranges)

    def _group(self) -> Node:
        outer = self.flags
        number = None
        if self._ahead(2) == "(?":
            flags, name = _FLAGS.match(self.pattern, self.at), _NAME.match(self.pattern, self.at)
            if name and self._ahead(3) == "(?P":
                self.groups += 1
                number, self.at = self.groups, name.end()
            elif flags:
                self.at = flags.end()
                self._set_flags(flags)
            else:
                raise PatternError(f"invalid perl operator: {self._ahead(3)}")
        else:
            self.groups += 1
            number, self.at = self.groups, self.at + 1
        body = self.choice()
        if self._ahead() != ")":
            raise PatternError(f"missing ): {self.pattern}")
        self.at += 1
        self.flags = outer
        return body if number is None else Group(number, body)

    def _escape(self) -> Node:
        sign = self._ahead(2)[1:]
        if sign in _PLACES:
            self.at += 2
            return Assertion(_PLACES[sign])
        if sign == "C":
            raise PatternError("\\C, which matches part of a character, has no counterpart here")
        ranges = self._escaped_set()
        if ranges is not None:
            return Characters(ranges)
        return self._literal(chr(self._escaped_character()))

    def _escaped_set(self) -> Ranges | None:
        """The set of ``\\d``, ``\\pL`` and the like, if there is one ahead."""
        escape = self._ahead(2)
        ranges = re2_sets.named(escape) if len(escape) == 2 else None
        if ranges is not None:
            self.at += 2
            return ranges
        if escape not in ("\\p", "\\P"):
            return None
        end = self.pattern.find("}", self.at) if self._ahead(3)[2:] == "{" else self.at + 2
        text = self.pattern[self.at : end + 1]
        name = text[2:].strip("{}")
        ranges = re2_sets.unicode_class(name.removeprefix("^"))
        if ranges is None or end < 0:
            raise PatternError(f"invalid character class range: {text}")
        self.at = end + 1
        return re2_sets.complement(ranges) if (escape == "\\P") != name.startswith("^") else ranges

    def _escaped_character(self) -> int:
        if len(self._ahead(2)) < 2:
            raise PatternError("trailing \\")
        for expression, base in (
            (r"\\x([0-9a-fA-F]{2})", 16),
            (r"\\x\{([0-9a-fA-F]{1,6})\}", 16),
            (r"\\([1-7][0-7]{1,2}|0[0-7]{0,2})", 8),
        ):
            match = re.compile(expression).match(self.pattern, self.at)
            if match and int(match[1], base) <= re2_sets.HIGHEST:
                self.at = match.end()
                return int(match[1], base)
        sign = self._ahead(2)[1]
        if sign in _SIMPLE or (sign.isascii() and not sign.isalnum()):
            self.at += 2
            return _SIMPLE.get(sign, ord(sign))
        raise PatternError(f"invalid escape sequence: {self._ahead(2)}")

    # ---- classes

    def _class(self) -> Characters:
        begin = self.at
        self.at += 1
        negated = self._ahead() == "^"
        self.at += negated
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self._ahead() != "]":
            if self.at >= len(self.pattern):
                raise PatternError(f"missing ]: {self.pattern[begin:]}")
            first = False
            ranges += self._class_item()
        self.at += 1
        found = re2_sets.union(ranges)
        if "i" in self.flags:
            found = re2_sets.folded(found)
        return Characters(re2_sets.complement(found) if negated else found)

    def _class_item(self) -> Ranges:
        match = re.compile(r"\[:(\^?\w+):\]").match(self.pattern, self.at)
        if match:
            ranges = re2_sets.posix(match[1])
            if ranges is None:
                raise PatternError(f"invalid character class range: {match[0]}")
            self.at = match.end()
            return ranges
        ranges = self._escaped_set() if self._ahead() == "\\" else None
        if ranges is not None:
            return ranges
        begin = self.at
        low = high = self._class_character()
        if self._ahead() == "-" and self._ahead(2)[1:] not in ("", "]"):
            self.at += 1
            high = self._class_character()
            if high < low:
                raise PatternError(f"invalid character class range: {self.pattern[begin : self.at]}")
        return ((low, high),)

    def _class_character(self) -> int:
        if self._ahead() == "\\":
            return self._escaped_character()
        self.at += 1
        return ord(self.pattern[self.at - 1])


def _most_repeats(node: Node) -> int:
    """How often the innermost part of a tree may be repeated, as far as that is limited."""
    if isinstance(node, Repeat):
        return max(node.low, node.high or 0, 1) * _most_repeats(node.body)
    if isinstance(node, Group):
        return _most_repeats(node.body)
    if isinstance(node, (Sequence, Choice)):
        return max((_most_repeats(each) for each in node[0]), default=1)
    return 1
