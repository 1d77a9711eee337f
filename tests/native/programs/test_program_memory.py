"""What shares memory in a program, and that nothing changes by it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
import torch

from flowstone.native.codegen.loaded_modules import LoadedModules
from flowstone.native.programs import program_code, program_memory
from flowstone.native.programs.programs import Builder, Container, Program
from small_programs import counted, made, run

SIZE = 1000
KIND = ("float32", (SIZE,))


def places(inputs: Sequence[torch.Tensor], write) -> tuple[Program, dict[int, int], int]:  # type: ignore[no-untyped-def]
    program = made(inputs, write)
    return program, *program_memory.arranged(program, set())


def turned(builder: Builder, x: int) -> int:
    """Backwards: a statement that is no operation by element."""
    return builder.add("Copy", [x], KIND, sizes=(SIZE,), from_strides=(-1,), from_place=SIZE - 1,
                       to_strides=(1,), to_place=0)  # fmt: skip


def test_a_chain_takes_turns_in_two_places() -> None:
    def write(builder: Builder, a: int) -> list[int]:
        for _ in range(10):
            a = turned(builder, a)
        return [a]

    _, found, size = places([torch.randn(SIZE)], write)
    assert len(found) == 10 and len(set(found.values())) == 2
    assert size == 2 * program_memory.padded(SIZE) * 4 or size < 2 * program_memory.padded(SIZE) * 4 + 64


def test_what_a_loop_reads_of_outside_is_alive_until_its_end() -> None:
    def write(builder: Builder, a: int) -> list[int]:
        kept = turned(builder, a)

        def body(counter: int, x: int) -> list[int]:
            return [turned(builder, builder.add("Add", [turned(builder, x), kept], KIND))]

        return counted(builder, 3, [a], body)

    program, found, _ = places([torch.randn(SIZE)], write)
    kept = min(found)
    assert sum(place == found[kept] for place in found.values()) == 1
    assert len(program.values) > len(found) > 3


def test_operations_that_only_their_loop_reads_have_no_memory() -> None:
    def write(builder: Builder, a: int) -> list[int]:
        square = builder.add("Mul", [a, a], KIND)
        return [builder.add("Add", [square, a], KIND)]

    _, found, _ = places([torch.randn(SIZE)], write)
    assert len(found) == 1


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("on_a_stack", [0, 1 << 30])
def test_random_programs(seed: int, on_a_stack: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains, loops in loops, and values that are read much later; in shared memory or each in its own."""
    x, y = torch.randn(SIZE), torch.randn(SIZE)

    def write(builder: Builder, a: int, b: int) -> list[int]:
        return _drawn(random.Random(seed), builder, [a, b], 2)[-3:]

    monkeypatch.setattr(program_code, "_MUCH", 1 << 40)
    wanted = run([x, y], write)
    monkeypatch.setattr(program_code, "_MUCH", 0)
    monkeypatch.setattr(program_code, "_MOST_ON_A_STACK", on_a_stack)
    monkeypatch.setattr("flowstone.native.clusters.kernels._modules", LoadedModules())
    for one, other in zip(run([x, y], write), wanted, strict=True):
        assert torch.equal(one, other)


def _drawn(draw: random.Random, builder: Builder, values: list[int], depth: int) -> list[int]:
    values = list(values)
    for _ in range(draw.randint(4, 9)):
        kind = draw.choice(["Add", "Sub", "turn", "Minimum", "loop"])
        a, b = draw.choice(values), draw.choice(values)
        if kind == "turn":
            values.append(turned(builder, a))
        elif kind != "loop":
            values.append(builder.add(kind, [a, b], KIND))
        elif depth:
            known = list(values)

            def body(counter: int, *states: int, known: list[int] = known) -> list[int]:
                return _drawn(draw, builder, [*known, *states], depth - 1)[-2:]

            values += counted(builder, draw.randint(0, 3), [a, b], body)
    return values


def test_inputs_that_are_copied() -> None:
    def write(builder: Builder, x: int, y: int, z: int) -> list[int]:
        total = builder.add("Add", [x, x], ("float32", (2, 16)))
        product = builder.add("MatMul", [total, y], ("float32", (2, 10)), m=2, k=16, n=10)
        return [product, builder.add("Square", [z], ("float32", ()))]

    program = made([torch.zeros(2, 16), torch.zeros(16, 10), torch.zeros(())], write)
    assert program_memory.needs_padding(program) == {1}  # whose rows are no whole vectors


@pytest.mark.parametrize("is_read", [False, True])
def test_a_sum_that_is_given_lies_in_the_output(is_read: bool) -> None:
    a, b = torch.randn(1, 40), torch.randn(1, 30)

    def write(builder: Builder, x: int, y: int) -> list[int]:
        builder.containers += [Container("rows", "float32", width) for width in (40, 30)]
        total = builder.value("float32", (40, 30))
        words = {"rows": 1, "m": 40, "n": 30, "containers": (0, 1)}
        builder.add("BeginSum", [], None, into=total, **words)
        builder.add("AddProduct", [x, y], None, into=total, **words)
        builder.add("EndSum", [], None, into=total, **words)
        more = [builder.add("Neg", [total], ("float32", (40, 30)))] if is_read else []
        return [*more, total]

    program = made([a, b], write)
    assert program_memory.given_directly(program) == ({} if is_read else {2: 0})
    assert (2 in program_memory.arranged(program, set())[0]) == is_read
    for x in run([a, b], write):
        torch.testing.assert_close(x.abs(), (a.t() @ b).abs())
