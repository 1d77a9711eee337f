"""Sizes that only a run knows: arithmetic, what is decided, and the registers of LLVM that hold them."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from flowstone.native.programs.open_sizes import (
    Undecided,
    definitions,
    is_at_most,
    is_open,
    named,
    names_of,
    register,
    typical,
)

N, M = named(1), named(2)


def test_arithmetic() -> None:
    assert N + 1 - 1 == N
    assert (N * 6) // 3 == N * 2
    assert N * M == M * N and hash(N * M) == hash(M * N)
    assert N - N == 0 and not is_open(N - N)
    assert (N * M + N) // N == M + 1
    assert math.prod((N, 3, M)) == N * M * 3
    assert 5 - N + N == 5
    assert -(-N // 16) * 16 - N != 0
    assert (N * 32) % 16 == 0


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (lambda: N > 1, True),
        (lambda: N <= 1, False),
        (lambda: N * M >= 4, True),
        (lambda: N * M - N > 0, True),
        (lambda: N - 2 >= 0, True),
        (lambda: N + M > N, True),
        (lambda: bool(N - 1), True),
        (lambda: N == 7, False),
        (lambda: is_at_most(N, 100), False),
        (lambda: is_at_most(3, 3), True),
    ],
)
def test_what_is_decided(condition: Any, expected: bool) -> None:
    assert condition() is expected


@pytest.mark.parametrize(
    "ask",
    [lambda: N > 2, lambda: N - 1 > 1, lambda: N > M, lambda: range(N), lambda: int(N), lambda: [0][N],
     lambda: bool(N - 2), lambda: N // M, lambda: (N + 1) // (M + 1)],
)  # fmt: skip
def test_what_depends_on_the_size(ask: Any) -> None:
    with pytest.raises(Undecided):
        ask()


def test_estimates_and_names() -> None:
    assert typical(7) == 7
    assert typical(N * M) == typical(N) ** 2
    assert sorted(names_of([N * 2 + M // 4, 3])) == [1, 2]
    assert N.is_named and not (N * 2).is_named and not (N + 1).is_named and not (N * M).is_named


def _evaluated(lines: list[str], values: dict[str, int]) -> dict[str, int]:
    """What the registers hold."""
    found = dict(values)
    for line in lines:
        name, text = line.strip().split(" = ", 1)
        op, words = text.split(" i64 ", 1)
        pair = [found[x] if x in found else int(x) for x in words.split(", ")]
        found[name] = {
            "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "ashr": lambda a, b: a >> b
        }[op](*pair)  # fmt: skip
    return found


def test_registers_hold_what_python_computes() -> None:
    rng = random.Random(0)

    def expression(n: Any, m: Any, steps: list[tuple[int, int]]) -> Any:
        x = n
        for which, k in steps:
            x = [x + k, x - k, x * (k + 1), x * m, x // 16, -x, x + n][which]
        return x

    for _ in range(200):
        steps = [(rng.randrange(7), rng.randrange(5)) for _ in range(rng.randrange(1, 6))]
        size = expression(N, M, steps)
        if not is_open(size):
            continue
        n, m = rng.randrange(2, 70), rng.randrange(2, 70)
        lines = definitions(f"use {size}", {register(1), register(2)})
        found = _evaluated(lines, {register(1): n, register(2): m})
        assert found[str(size)] == expression(n, m, steps), size


def test_a_name_that_nothing_tells() -> None:
    with pytest.raises(Undecided, match="no argument tells"):
        definitions(f"use {N * M}", {register(1)})
