"""Patterns of RE2, matched by Python's `re` where it is sure to be fast, else by `linear_matching`; in many
strings by automata in machine code, where there is the native tier.

Text is matched as characters; bytes that are no UTF-8 are in no set of characters, so nothing matches them.
Limits: ``\\C`` is refused, ``\\B`` holds between characters alone, and cases are those of single characters.

>>> pattern = compiled(b"(b+)c?")
>>> pattern.replace_all(rewriting(b"<\\\\1>"), [b"abbcab"]), pattern.fit([b"bc", b"c"])
([b'a<bb>a<b>'], [True, False])
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import repeat
from operator import is_not
from typing import Any, AnyStr

import numpy as np

from flowstone.framework.machine import string_code
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.strings.linear_matching import LinearMatcher
from flowstone.ops.strings.re2_automata import STRANGE, Automaton, automaton
from flowstone.ops.strings.re2_costs import UNLIMITED, is_nullable, longest_text
from flowstone.ops.strings.re2_rewriters import Rewriter, rewriter
from flowstone.ops.strings.re2_sets import Ranges
from flowstone.ops.strings.re2_syntax import (
    Assertion,
    Characters,
    Choice,
    Group,
    Node,
    PatternError,
    Repeat,
    Sequence,
    parse,
)

_WORD = "[0-9A-Za-z_]"
_ASSERTIONS = {
    "begin": r"\A",
    "end": r"\Z",
    "line begin": r"(?:\A|(?<=\n))",
    "line end": r"(?=\n|\Z)",
    "word": rf"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))",
    "no word": rf"(?:(?<={_WORD})(?={_WORD})|(?<!{_WORD})(?!{_WORD}))",
}
Pieces = tuple["bytes | int", ...]  # of a rewriting: text and groups
_FEW = 100
Rewriting = tuple[Pieces, bool]  # and whether all of it was understood


# ---- translation


def translated(node: Node, highest: int) -> str:
    """The tree in Python's syntax, for text whose characters are `highest` at most."""
    if isinstance(node, Characters):
        return _set(node.ranges, highest)
    if isinstance(node, Assertion):
        return _ASSERTIONS[node.kind]
    if isinstance(node, Group):
        return f"({translated(node.body, highest)})"
    if isinstance(node, Sequence):
        return "".join([_part(each, highest) for each in node.parts])
    if isinstance(node, Choice):
        return "|".join([translated(each, highest) for each in node.branches])
    body = translated(node.body, highest)
    if not isinstance(node.body, (Characters, Group)):
        body = f"(?:{body})"
    return body + _count(node) + ("" if node.greedy else "?")


def _part(node: Node, highest: int) -> str:
    text = translated(node, highest)
    return f"(?:{text})" if isinstance(node, Choice) else text


def _count(node: Repeat) -> str:
    sign = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((node.low, node.high))
    return sign or f"{{{node.low},{'' if node.high is None else node.high}}}"


def _set(ranges: Ranges, highest: int) -> str:
    kept = [(low, min(high, highest)) for low, high in ranges if low <= highest]
    if not kept:
        return "(?!)"
    if len(kept) == 1 and kept[0][0] == kept[0][1]:
        return _character(kept[0][0])
    return "[" + "".join([f"{_character(low)}-{_character(high)}" for low, high in kept]) + "]"


def _character(point: int) -> str:
    if point < 0x80 and chr(point).isalnum():
        return chr(point)
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


# ---- patterns


class Pattern:
    """A pattern of RE2, compiled."""

    def __init__(self, pattern: str) -> None:
        self._tree = parse(pattern)
        self._nullable = is_nullable(self._tree)
        self.groups = _groups(self._tree)
        self._linear: LinearMatcher | None = None
        self._rewriters: dict[tuple[int, ...], Rewriter | None] = {}
        self._limit, self._whole_limit = longest_text(self._tree, False), longest_text(self._tree, True)
        self._text = re.compile(translated(self._tree, 0x10FFFF))
        self._ascii = re.compile(translated(self._tree, 0x7F).encode())
        if not self._limit:
            self._matcher()  # says now if it is too large

    @cached_property
    def _automaton(self) -> Automaton | None:
        """None if it would take long to make."""
        try:
            return automaton(self._matcher())
        except PatternError:
            return None

    def _matcher(self) -> LinearMatcher:
        if self._linear is None:
            self._linear = LinearMatcher(self._tree, self.groups)
        return self._linear

    def fit(self, strings: list[bytes]) -> list[bool]:
        """Whether the pattern fits all of each string."""
        code = string_code.text_automata() if len(strings) >= _FEW else None
        found = self._automaton if code is not None else None
        states = None if code is None or found is None else code(strings, found.table)
        if found is not None and states is not None:
            fits: list[bool] = found.ends[states].astype(bool).tolist()
            for i in np.flatnonzero(states == STRANGE).tolist():
                fits[i] = self._fits(strings[i])
            return fits
        if self._whole_limit == UNLIMITED and b"".join(strings).isascii():
            return list(map(is_not, map(self._ascii.fullmatch, strings), repeat(None)))
        return [self._fits(each) for each in strings]

    def _fits(self, string: bytes) -> bool:
        if len(string) > self._whole_limit:
            return self._matcher().match(_decoded(string), 0, whole=True) is not None
        if string.isascii():
            return self._ascii.fullmatch(string) is not None
        return self._text.fullmatch(_decoded(string)) is not None

    def replace_first(self, rewriting: Rewriting, strings: list[bytes]) -> list[bytes]:
        """Each string with its first match rewritten."""
        return strings if not rewriting[1] else self._replace(rewriting[0], strings, 1)

    def replace_all(self, rewriting: Rewriting, strings: list[bytes]) -> list[bytes]:
        """Each string with all matches, one after the other, rewritten."""
        return self._replace(rewriting[0], strings, 0)

    def _replace(self, pieces: Pieces, strings: list[bytes], count: int) -> list[bytes]:
        if any(isinstance(piece, int) and piece > self.groups for piece in pieces):
            return strings
        code = string_code.text_rewriters() if len(strings) >= _FEW else None
        groups = tuple(sorted({piece for piece in pieces if isinstance(piece, int) and piece}))
        automaton = self._rewriter(groups) if code is not None else None
        if code is not None and automaton is not None:
            numbers = {group: i for i, group in enumerate((0, *groups))}
            renamed = [numbers[piece] if isinstance(piece, int) else piece for piece in pieces]
            found = code(strings, automaton, renamed, bool(count))
            if found is not None:
                rewritten: list[bytes] = found.tolist()
                return rewritten
        template = _template(pieces)
        return [self._replaced(each, pieces, template, count) for each in strings]

    def _rewriter(self, groups: tuple[int, ...]) -> Rewriter | None:
        """The automaton that finds these groups; None if it would take long to make."""
        if groups not in self._rewriters:
            try:
                self._rewriters[groups] = rewriter(self._matcher(), groups)
            except PatternError:
                self._rewriters[groups] = None
        return self._rewriters[groups]

    def _replaced(self, string: bytes, pieces: Pieces, template: Any, count: int) -> bytes:
        if len(string) <= self._limit and (count or not self._nullable):
            if string.isascii():
                return self._ascii.sub(template, string, count)
            return _encoded(self._text.sub(_in_text(template), _decoded(string), count))
        if len(string) <= self._limit and string.isascii():
            return _rewritten(string, _searching(self._ascii), pieces, count)
        texts = tuple(_decoded(piece) if isinstance(piece, bytes) else piece for piece in pieces)
        find = self._matcher().match if len(string) > self._limit else _searching(self._text)
        return _encoded(_rewritten(_decoded(string), find, texts, count))


def _groups(node: Node) -> int:
    if isinstance(node, Group):
        return max(node.number, _groups(node.body))
    if isinstance(node, Repeat):
        return _groups(node.body)
    if isinstance(node, (Sequence, Choice)):
        return max((_groups(each) for each in node[0]), default=0)
    return 0


def _decoded(string: bytes) -> str:
    return string.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _searching(pattern: re.Pattern[AnyStr]) -> Callable[[AnyStr, int], list[int] | None]:
    """A search from a place on, with the places of the groups."""

    def find(text: AnyStr, begin: int) -> list[int] | None:
        match = pattern.search(text, begin)
        if match is None:
            return None
        return [place for group in range(pattern.groups + 1) for place in match.span(group)]

    return find


def _rewritten(
    text: AnyStr,
    find: Callable[[AnyStr, int], list[int] | None],
    pieces: tuple[AnyStr | int, ...],
    count: int,
) -> AnyStr:
    """The text with its matches rewritten; none that is empty follows at once on another."""
    done: list[AnyStr] = []
    at, last_end = 0, -1
    while at <= len(text):
        places = find(text, at)
        if places is None:
            break
        begin, end = places[:2]
        done.append(text[at:begin])
        if begin == end == last_end:
            done.append(text[begin : begin + 1])
            at = begin + 1
            continue
        for piece in pieces:
            done.append(text[slice(*places[2 * piece : 2 * piece + 2])] if isinstance(piece, int) else piece)
        at = last_end = end
        if count:
            break
    done.append(text[at:])
    return text[:0].join(done)


# ---- rewriting


def rewriting(text: bytes) -> Rewriting:
    """What matches become: ``\\\\1`` is a group, ``\\\\0`` the match, two backslashes are one."""
    pieces: list[bytes | int] = []
    while text:
        literal, backslash, rest = text.partition(b"\\")
        pieces.append(literal)
        if not backslash:
            break
        sign, text = rest[:1], rest[1:]
        if sign.isdigit():
            pieces.append(int(sign))
        elif sign == b"\\":
            pieces.append(sign)
        else:
            return tuple(pieces), False
    return tuple(pieces), True


def _template(pieces: Pieces) -> Any:
    """What Python's `sub` is given for them: a function if there are groups, which is faster than its own."""
    groups = [piece for piece in pieces if isinstance(piece, int)]
    literals = b"".join([b"%s" if isinstance(piece, int) else piece.replace(b"%", b"%%") for piece in pieces])
    if not groups:
        return (literals % ()).replace(b"\\", b"\\\\")
    if len(groups) == 1:
        return lambda match: literals % (match[groups[0]] or b"")
    return lambda match: literals % tuple([match[group] or b"" for group in groups])


def _in_text(template: Any) -> Any:
    """The same for `str`."""
    if isinstance(template, bytes):
        return _decoded(template)
    return lambda match: _decoded(template(_EncodedMatch(match)))


class _EncodedMatch:
    """The groups of a match in a text, as bytes."""

    __slots__ = ("_match",)

    def __init__(self, match: re.Match[str]) -> None:
        self._match = match

    def __getitem__(self, group: int) -> bytes:
        return _encoded(self._match[group] or "")


@lru_cache(maxsize=128)
def compiled(pattern: bytes) -> Pattern:
    """The pattern; InvalidArgumentError if it is none."""
    shown: Any = pattern.decode("utf-8", "backslashreplace")
    try:
        return Pattern(pattern.decode())
    except UnicodeDecodeError:
        reason = "invalid UTF-8"
    except RecursionError:
        reason = "expression nests too deeply"
    except (PatternError, OverflowError) as error:
        reason = str(error)
    raise invalid(f"Invalid pattern: {shown}, error: {reason}")
