"""What the shapes of many steps have in common, and whether a plan for that holds for others."""

from __future__ import annotations

import itertools
import math
from typing import Any

from flowstone.framework.types.shape import Dims

Shapes = tuple[Dims, ...]


class Hull:
    """What all shapes so far have in common: the sizes that were always the same number, and which of the
    others were always equal to each other and at least 2.

    >>> hull = Hull()
    >>> hull.add(((8, 3), (8,)))
    >>> hull.add(((5, 3), (5,)))
    >>> hull.shapes()
    ((-1, 3), (-1,))
    """

    def __init__(self) -> None:
        self._ranks: list[int | None] | None = None  # None for one that has differed
        self._kinds: list[int] = []  # a number for each size of all shapes; equal for those always equal
        self._sizes: list[int | None] = []  # None for one that has differed
        self._is_small: list[bool] = []  # whether it was 0 or 1 unknown to a plan

    def add(self, shapes: Shapes, is_small_known: bool = False) -> None:
        """Takes these shapes into account. `is_small_known`: their plan knows their sizes of 0 and 1, so that
        `shapes` need not heed them."""
        ranks = [None if dims is None else len(dims) for dims in shapes]
        if self._ranks is None:
            self._ranks = ranks
            self._sizes = self._flat(shapes)
            self._kinds, self._is_small = [0] * len(self._sizes), [False] * len(self._sizes)
        elif ranks != self._ranks:
            self._forget_ranks(ranks)
        sizes = self._flat(shapes)
        numbers: dict[Any, int] = {}
        self._kinds = [numbers.setdefault(each, len(numbers)) for each in zip(self._kinds, sizes)]
        if not is_small_known:
            self._is_small = [was or n is None or n < 2 for was, n in zip(self._is_small, sizes)]
        self._sizes = [m if m == n else None for m, n in zip(self._sizes, sizes)]

    def shapes(self, pattern: Shapes | None = None) -> Shapes:
        """The common shapes: a number; -1, -2, … for sizes that are equal; None for others. With a `pattern`
        of sizes of 0 and 1 those alone that fit it: these sizes are known, no other is 0 or 1."""
        names: dict[int, int] = {}
        flat: list[int | None] = []
        small = [None] * len(self._sizes) if pattern is None else self._flat(pattern)
        for n, known, kind, was_small in zip(self._sizes, small, self._kinds, self._is_small):
            if n is None and known is None and not (was_small and pattern is None):
                flat.append(-1 - names.setdefault(kind, len(names)))
            else:
                flat.append(known if n is None else n)
        sizes = iter(flat)
        return tuple([None if r is None else tuple(itertools.islice(sizes, r)) for r in self._ranks or ()])

    def _flat(self, shapes: Shapes) -> list[int | None]:
        ranks = self._ranks or ()
        return [n for dims, rank in zip(shapes, ranks) if rank is not None for n in dims or ()]

    def _forget_ranks(self, ranks: list[int | None]) -> None:
        """Leaves the shapes open whose rank differs from before."""
        before = self._ranks or []
        self._ranks = [m if m == n else None for m, n in zip(before, ranks)]
        kept = [now is not None for was, now in zip(before, self._ranks) for _ in range(was or 0)]
        self._kinds = list(itertools.compress(self._kinds, kept))
        self._sizes = list(itertools.compress(self._sizes, kept))
        self._is_small = list(itertools.compress(self._is_small, kept))


def small_sizes(shapes: Shapes) -> Shapes:
    """The sizes of 0 and 1, in their places; None in all others."""
    return tuple([dims and tuple([n if n is not None and n < 2 else None for n in dims]) for dims in shapes])


def growth(shapes: Shapes, other: Shapes) -> float:
    """At most how many times as much is to be done for these shapes as for the `other` ones, where work is in
    proportion to each size of a value: sizes that are less count as equal.

    >>> growth(((6, 2), (6,)), ((3, 8), (3,)))
    2.0
    """
    found = 1.0
    for dims, others in zip(shapes, other):
        pairs = zip(dims or (), others or ())
        found = max(
            found, math.prod([max(1.0, n / max(m, 1)) for n, m in pairs if n is not None and m is not None])
        )
    return found


def is_within(shapes: Shapes, wide: Shapes) -> bool:
    """Whether a plan for `wide` shapes, as a `Hull` gives them, holds for these."""
    equal: dict[int, int | None] = {}
    for dims, open_dims in zip(shapes, wide):
        if open_dims is None:
            continue
        if dims is None or len(dims) != len(open_dims):
            return False
        for n, m in zip(dims, open_dims):
            if m is None or n == m:
                continue
            if m >= 0 or n is None or n < 2 or equal.setdefault(m, n) != n:
                return False
    return True
