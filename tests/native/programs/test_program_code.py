"""Loops and guards in programs against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from flowstone.native.programs.programs import Builder
from small_programs import counted, run

SIZES = (1, 3, 16, 33, 64, 65, 1000)


@pytest.mark.parametrize("size", SIZES)
def test_states_change_all_at_once(size: int) -> None:
    x, y = torch.randn(size), torch.randn(size)

    def write(builder: Builder, a: int, b: int) -> list[int]:
        def body(counter: int, p: int, q: int) -> list[int]:
            return [q, builder.add("Add", [p, q], ("float32", (size,)))]

        return counted(builder, 7, [a, b], body)

    p, q = x, y
    for _ in range(7):
        p, q = q, p + q
    found = run([x, y], write)
    assert torch.equal(found[0], p) and torch.equal(found[1], q)


def test_states_that_change_places() -> None:
    x, y = torch.tensor(1.0), torch.tensor(2.0)
    for count in (0, 1, 4, 5):

        def write(builder: Builder, a: int, b: int, count: int = count) -> list[int]:
            return counted(builder, count, [a, b], lambda counter, p, q: [q, p])

        found = run([x, y], write)
        assert (found[0].item(), found[1].item()) == ((1.0, 2.0), (2.0, 1.0))[count % 2]


def test_loops_inside_of_loops() -> None:
    def write(builder: Builder, a: int) -> list[int]:
        half = builder.constant("float32", (), [0.5])

        def inner(counter: int, b: int) -> list[int]:
            return [
                builder.add("Add", [builder.add("Mul", [b, half], ("float32", ())), half], ("float32", ()))
            ]

        def outer(counter: int, b: int) -> list[int]:
            (last,) = counted(builder, 3, [b], inner)
            return [builder.add("Sub", [last, half], ("float32", ()))]

        return counted(builder, 4, [a], outer)

    wanted = 3.0
    for _ in range(4):
        for _ in range(3):
            wanted = np.float32(wanted) * np.float32(0.5) + np.float32(0.5)
        wanted -= np.float32(0.5)
    assert run([torch.tensor(3.0)], write)[0].item() == wanted


@pytest.mark.parametrize("size", [1, 40])
def test_guards(size: int) -> None:
    """One branch, neither, and loops that a branch runs."""

    def write(builder: Builder, a: int, p: int, q: int) -> list[int]:
        kind = "float32", (size,)
        result = builder.value(*kind)
        both, first = (((p, True), (q, True)),), (((p, True), (q, False)),)
        neither = (((p, False),),)
        doubled = builder.add("Add", [a, a], kind, both)
        builder.add("Set", [doubled], None, both, into=result)
        builder.add("Set", [builder.add("Square", [a], kind, first)], None, first, into=result)
        builder.add("Set", [a], None, neither, into=result)
        either = builder.add("Neg", [result], kind, (((p, False),), ((q, True),)))
        builder.add("Set", [either], None, (((p, False),), ((q, True),)), into=result)
        return [result]

    x = torch.randn(size)
    for p in (False, True):
        for q in (False, True):
            (found,) = run([x, torch.tensor(p), torch.tensor(q)], write)
            wanted = x + x if p and q else x.square() if p else x
            assert torch.equal(found, -wanted if q or not p else wanted), (p, q)
