"""How long a matcher that tries one way after the other may take for a pattern.

Python's matcher goes back and tries again where a way fails, so its time may grow with a power of the text's
length, or with each character by a factor. `longest_text` bounds the length up to which that cannot matter.
The measure: a loop in whose body the next character says which way to go on (as in a deterministic automaton)
is passed in one way; of other loops nothing is promised. Each loop that may give back characters to what
follows it raises the power by one, and so does looking for a match at every place.

>>> from flowstone.ops.strings.re2_syntax import parse
>>> longest_text(parse("[a-z]+"), False) == UNLIMITED, longest_text(parse("(a+)+b"), False)
(True, 0)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from flowstone.ops.strings.re2_sets import Ranges, overlap, union
from flowstone.ops.strings.re2_syntax import Assertion, Characters, Choice, Group, Node, Repeat, Sequence

UNLIMITED = 2**62
_MOST_STEPS = 5e7
_MOST_POSITIONS = 400


def is_nullable(node: Node) -> bool:
    """Whether it fits the empty string somewhere."""
    if isinstance(node, Characters):
        return False
    if isinstance(node, Sequence):
        return all(map(is_nullable, node.parts))
    if isinstance(node, Choice):
        return any(map(is_nullable, node.branches))
    if isinstance(node, Repeat):
        return node.low == 0 or is_nullable(node.body)
    return isinstance(node, Assertion) or is_nullable(node.body)


def longest_text(tree: Node, anchored: bool) -> int:
    """The length of text up to which trying one way after the other takes about as many steps as are allowed.

    `anchored`: a match begins where the text begins. 0: no length is short enough.
    """
    try:
        cost = _Cost()
        cost.add(tree, (), final=True)
    except _Unbounded:
        return 0
    power = cost.loops_that_give_back or int(cost.loops > 0)
    if power and not anchored and not _begins_at_once(tree):
        power += 1
    allowed = _MOST_STEPS / 2.0 ** min(cost.ways, 60)
    return UNLIMITED if power == 0 and cost.ways < 16 else int(allowed ** (1 / max(power, 1)))


def _begins_at_once(tree: Node) -> bool:
    first = tree.parts[0] if isinstance(tree, Sequence) and tree.parts else tree
    return first == Assertion("begin")


class _Unbounded(Exception):
    """A loop that may be passed in many ways."""


@dataclass
class _Cost:
    """Of a pattern: its loops that something follows, those that may give back to it, and other choices."""

    loops: int = 0
    loops_that_give_back: int = 0
    ways: float = 0.0

    def add(self, node: Node, after: Ranges, final: bool) -> None:
        """Adds what `node` costs; `after`: the characters that may follow; `final`: nothing follows."""
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                self.add(part, after, final)
                first, nullable = _first(part), is_nullable(part)
                after = union((*first, *after)) if nullable else first
                final = False
        elif isinstance(node, Choice):
            self.ways += len(node.branches) / 4  # most branches fail at once
            for branch in node.branches:
                self.add(branch, after, final)
        elif isinstance(node, Group):
            self.add(node.body, after, final)
        elif isinstance(node, Repeat):
            self._add_repeat(node, after, final)

    def _add_repeat(self, node: Repeat, after: Ranges, final: bool) -> None:
        if node.high is not None and node.high <= 1:
            self.ways += 1
            self.add(node.body, after, final)
            return
        _Automaton().check(node.body)
        if not final and node.low != node.high:
            self.loops += 1
            self.loops_that_give_back += overlap(_all(node.body), after)


def _first(node: Node) -> Ranges:
    """The characters that a match may begin with."""
    if isinstance(node, Characters):
        return node.ranges
    if isinstance(node, (Repeat, Group)):
        return _first(node.body)
    found: list[tuple[int, int]] = []
    if isinstance(node, Choice):
        for branch in node.branches:
            found += _first(branch)
    elif isinstance(node, Sequence):
        for part in node.parts:
            found += _first(part)
            if not is_nullable(part):
                break
    return union(found)


def _all(node: Node) -> Ranges:
    """The characters that may be in a match."""
    if isinstance(node, Characters):
        return node.ranges
    if isinstance(node, (Repeat, Group)):
        return _all(node.body)
    if isinstance(node, Assertion):
        return ()
    return union([each for part in node[0] for each in _all(part)])


@dataclass
class _Automaton:
    """The places of a loop's body, and which may follow which (V. Glushkov, 1961)."""

    ranges: list[Ranges] = field(default_factory=list)
    follow: list[set[int]] = field(default_factory=list)

    def check(self, body: Node) -> None:
        """Raises `_Unbounded` if the next character does not say where the loop goes on."""
        if is_nullable(body):
            raise _Unbounded
        first, last = self._add(body)
        self._connect(last, first)
        for each in (first, *self.follow):
            self._check_disjoint(sorted(each))

    def _check_disjoint(self, places: list[int]) -> None:
        for i, place in enumerate(places):
            if any(overlap(self.ranges[place], self.ranges[other]) for other in places[:i]):
                raise _Unbounded

    def _add(self, node: Node) -> tuple[set[int], set[int]]:
        """The first and the last places of a part."""
        if isinstance(node, Characters):
            if len(self.ranges) >= _MOST_POSITIONS:
                raise _Unbounded
            self.ranges.append(node.ranges)
            self.follow.append(set())
            return {len(self.ranges) - 1}, {len(self.ranges) - 1}
        if isinstance(node, Assertion):
            return set(), set()
        if isinstance(node, Group):
            return self._add(node.body)
        if isinstance(node, Choice):
            both = [self._add(branch) for branch in node.branches]
            return set().union(*(f for f, _ in both)), set().union(*(last for _, last in both))
        if isinstance(node, Repeat):
            first, last = self._add(node.body)
            if node.high is None or (node.high > 1 and node.low != node.high):
                self._connect(last, first)
            return first, last
        return self._add_sequence(node)

    def _add_sequence(self, node: Sequence) -> tuple[set[int], set[int]]:
        first: set[int] = set()
        last: set[int] = set()
        begins = True
        for part in node.parts:
            part_first, part_last = self._add(part)
            self._connect(last, part_first)
            if begins:
                first |= part_first
            nullable = is_nullable(part)
            begins = begins and nullable
            last = last | part_last if nullable else part_last
        return first, last

    def _connect(self, last: set[int], first: set[int]) -> None:
        for place in last:
            if self.follow[place] & first:  # so another way leads there already, as in (a+)+
                raise _Unbounded
            self.follow[place] |= first
