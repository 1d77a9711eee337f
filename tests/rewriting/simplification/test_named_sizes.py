"""Sizes with names: what is known of them however large they are, and what is not."""

from __future__ import annotations

import pytest

from flowstone.framework.types.shape import broadcast
from flowstone.rewriting.simplification.named_sizes import Size, Undecided

N, M = -1, -2


def test_sizes_are_compared_where_all_that_is_known_of_them_says_so():
    n, m = Size((N,)), Size((M,))
    assert n == Size((N,)) and n * m == m * n and n * 6 // 3 == n * 2 and n * m // n == m and n * 5 // n == 5
    assert n != 1 and n != 0 and n != -1 and n is not None and n != None  # noqa: E711
    assert n > 1 and n >= 1 and not n < 1 and n * m > 3 and n * 4 > 7 and n * 6 % 3 == 0
    for undecided in (
        lambda: n == m, lambda: n == 2, lambda: n > 2, lambda: n < 3, lambda: n // m,
        lambda: n * 3 % 2, lambda: n * 0, lambda: n * m == 4,
    ):  # fmt: skip
        with pytest.raises(Undecided):
            undecided()
    for unknown in (
        lambda: 1 - n,
        lambda: int(n),
        lambda: range(n),
        lambda: {n},
        lambda: -n,
        lambda: n == "a",
    ):
        with pytest.raises(TypeError):
            unknown()
    assert n + 1 - 1 == n and n + 1 - n == 1 and (n - 1) * m // m == n - 1 and (n + 1) * 2 // 2 == n + 1
    assert n + 1 > n and n - 1 < n and n != n + 1 and n - 1 != 0 and n - 1 > 0 and n - 2 >= 0 and n >= 2
    assert bool(n) and bool(n - 1)
    for undecided in (
        lambda: n - 3, lambda: n - m, lambda: n - 1 == 1, lambda: n - 2 == 0, lambda: bool(n - 2),
        lambda: n + m, lambda: n * (n - 2) // (n - 2), lambda: (n * 2 - 1) % 2,
    ):  # fmt: skip
        with pytest.raises((Undecided, TypeError)):
            undecided()
    half = (n + 1) // 2
    assert half == (n + 1) // 2 and half * 4 // 4 == half and (half + 1) // 2 > 0 and n // 3 >= 0
    for undecided in (
        lambda: half == n // 2, lambda: half == 1, lambda: half == n, lambda: n // 3 == 0, lambda: half % 2,
        lambda: n // 3 * 2 // (n // 3), lambda: n // 0,
    ):  # fmt: skip
        with pytest.raises(Undecided):
            undecided()
    assert repr(n * m * 3) == "3*n1*n2" and repr(n - 1) == "(n1-1)"


def test_they_are_broadcast_as_sizes_are():
    n = Size((N,))
    assert broadcast((n, 3), (3,)) == (n, 3) == broadcast((n, 1), (1, 3)) == broadcast((n, 3), (n, 3))
    with pytest.raises(Undecided):
        broadcast((n, 3), (5, 3))
