"""Matching all ways at once, in time that grows with the text and the pattern, whatever they are.

A pattern becomes a program, and a match is looked for by threads that read the text together, in the order in
which a matcher would try them one by one (R. Pike's machine; R. Cox, Regular Expression Matching: the Virtual
Machine Approach, 2009). Slow, but never slower.

>>> from flowstone.ops.strings.re2_syntax import parse
>>> LinearMatcher(parse("(a+)+b"), 1).match("xaaab", 0)
[1, 5, 1, 4]
"""

from __future__ import annotations

from flowstone.ops.strings.re2_costs import is_nullable
from flowstone.ops.strings.re2_sets import contains
from flowstone.ops.strings.re2_syntax import (
    Assertion,
    Characters,
    Choice,
    Group,
    Node,
    PatternError,
    Repeat,
    Sequence,
)

LARGEST = 20000
WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
# What it does, its operand, and where to go on: ("read", ranges, next), ("split", other, next) of which next
# comes first, ("save", slot, next), ("assert", kind, next), ("match", None, 0).
Instruction = tuple[str, object, int]
_Slots = tuple[int, ...]


class LinearMatcher:
    """The matcher of a tree with so many groups, by a `program` that begins at `start`. PatternError if the
    program would be too large."""

    def __init__(self, tree: Node, groups: int) -> None:
        self.program: list[Instruction] = [("match", None, 0)]
        self.start = self._save(0, self._compile(tree, self._save(1, 0)))
        self._no_slots = (-1,) * (2 * groups + 2)
        self._reads: dict[tuple[int, str], bool] = {}

    # ---- the program, from its end

    def _emit(self, what: str, operand: object, next_at: int) -> int:
        if len(self.program) >= LARGEST:
            raise PatternError("pattern too large - compile failed")
        self.program.append((what, operand, next_at))
        return len(self.program) - 1

    def _save(self, slot: int, next_at: int) -> int:
        return self._emit("save", slot, next_at)

    def _compile(self, node: Node, after: int) -> int:
        """Where the program of `node` begins, which goes on at `after`."""
        if isinstance(node, Characters):
            return self._emit("read", node.ranges, after)
        if isinstance(node, Assertion):
            return self._emit("assert", node.kind, after)
        if isinstance(node, Group):
            return self._save(
                2 * node.number, self._compile(node.body, self._save(2 * node.number + 1, after))
            )
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                after = self._compile(part, after)
            return after
        if isinstance(node, Choice):
            start = self._compile(node.branches[-1], after)
            for branch in reversed(node.branches[:-1]):
                start = self._emit("split", start, self._compile(branch, after))
            return start
        return self._compile_repeat(node, after)

    def _compile_repeat(self, node: Repeat, after: int) -> int:
        start, low = after, node.low
        if node.high is None and is_nullable(node.body):  # at least once, then the body may be empty
            loop = self._split(node, 0, after)
            start = self._compile(node.body, loop)
            self.program[loop] = self._split_parts(node, start, after)
            if not low:
                return self._split(node, start, after)
            low -= 1
        elif node.high is None:
            start = self._split(node, 0, after)  # its body is not there yet
            self.program[start] = self._split_parts(node, self._compile(node.body, start), after)
        else:
            for _ in range(node.high - node.low):
                start = self._split(node, self._compile(node.body, start), after)
        for _ in range(low):
            start = self._compile(node.body, start)
        return start

    def _split(self, node: Repeat, body: int, after: int) -> int:
        return self._emit(*self._split_parts(node, body, after))

    def _split_parts(self, node: Repeat, body: int, after: int) -> Instruction:
        return ("split", after, body) if node.greedy else ("split", body, after)

    # ---- the threads

    def match(self, text: str, begin: int, whole: bool = False) -> list[int] | None:
        """Where the first match from `begin` on, and its groups, begin and end (-1: a group is not in it).

        `whole`: the match is all of the text.
        """
        threads: list[tuple[int, _Slots]] = []
        found: _Slots | None = None
        for at in range(begin, len(text) + 1):
            seen: set[int] = set()
            active: list[tuple[int, _Slots]] = []
            for place, slots in threads:
                self._follow(active, seen, place, slots, text, at)
            if found is None and (not whole or at == begin):
                self._follow(active, seen, self.start, self._no_slots, text, at)
            threads = []
            for place, slots in active:
                what, operand, next_at = self.program[place]
                if what == "match":
                    if not whole or at == len(text):
                        found = slots
                        break
                elif at < len(text) and self._accepts(place, operand, text[at]):
                    threads.append((next_at, slots))
            if not threads and (found is not None or whole):
                break
        return None if found is None else list(found)

    def _accepts(self, place: int, ranges: object, sign: str) -> bool:
        key = place, sign
        known = self._reads.get(key)
        if known is None:
            assert isinstance(ranges, tuple)
            known = contains(ranges, ord(sign))
            if len(self._reads) < LARGEST:
                self._reads[key] = known
        return known

    def _follow(
        self,
        active: list[tuple[int, _Slots]],
        seen: set[int],
        place: int,
        slots: _Slots,
        text: str,
        at: int,
    ) -> None:
        """Adds the threads that `place` leads to without reading, the first way first."""
        waiting = [(place, slots)]
        while waiting:
            place, slots = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            what, operand, next_at = self.program[place]
            if what in ("read", "match"):
                active.append((place, slots))
                continue
            if what == "split":
                assert isinstance(operand, int)
                waiting.append((operand, slots))
            elif what == "save":
                assert isinstance(operand, int)
                slots = (*slots[:operand], at, *slots[operand + 1 :])
            elif not holds(str(operand), text, at):
                continue
            waiting.append((next_at, slots))


def holds(kind: str, text: str, at: int) -> bool:
    """Whether a place of the text is of this kind."""
    if kind == "begin":
        return at == 0
    if kind == "end":
        return at == len(text)
    if kind == "line begin":
        return at == 0 or text[at - 1] == "\n"
    if kind == "line end":
        return at == len(text) or text[at] == "\n"
    is_boundary = (at > 0 and text[at - 1] in WORD) != (at < len(text) and text[at] in WORD)
    return is_boundary == (kind == "word")
