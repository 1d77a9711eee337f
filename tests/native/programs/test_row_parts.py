"""Loops in parts of their rows: the same bits as whole, and which loops stay whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch

from divided_loops import F, Write, divided, fed, recurrence, results
from flowstone.native.programs.programs import Builder, Container, Loop
from flowstone.native.programs.row_parts import in_parts, largest_product, part_of
from small_programs import FAILED, counted, made

CASES = [
    (32, 16, 2, (16, 16)), (20, 24, 2, (12, 8)), (30, 7, 2, (16, 14)), (50, 5, 3, (20, 20, 10)),
    (33, 16, 16, (12, 12, 9)), (16, 33, 2, (8, 8)),
]  # fmt: skip


@pytest.mark.parametrize("rows, units, threads, parts", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_parts_give_the_same_bits(
    rows: int, units: int, threads: int, parts: tuple[int, ...], dtype: torch.dtype
) -> None:
    inputs = fed(rows, units, 6, dtype)
    write = recurrence(rows, units, 6, str(dtype).removeprefix("torch."))
    program, found = divided(inputs, write, threads)
    assert found == parts
    for a, b in zip(results(program, inputs), results(made(inputs, write), inputs)):
        assert torch.equal(a, b)


def test_weights_by_columns() -> None:
    inputs = fed(32, 16, 5)
    inputs[2] = inputs[2].T.contiguous()
    write = recurrence(32, 16, 5, turns="b")
    program, found = divided(inputs, write)
    assert found == (16, 16)
    for a, b in zip(results(program, inputs), results(made(inputs, write), inputs)):
        assert torch.equal(a, b)


def simple(body: Callable[..., int], steps: int = 4, rows: int = 16) -> Write:
    def write(e: Builder, h: int, *others: int) -> Sequence[int]:
        return counted(e, steps, [h], lambda t, h: [body(e, t, h, *others)])

    return write


SHAPE = (16, 8)


def doubled(e: Builder, t: int, h: int) -> int:
    return e.add("Add", [h, h], (F, SHAPE))


def across_rows(e: Builder, t: int, h: int) -> int:
    total = e.add("Reduce", [h], (F, (1, 8)), kind="Sum", outer=1, size=16, inner=8)
    words = {"from_strides": (0, 1), "to_strides": (8, 1), "from_place": 0, "to_place": 0}
    return e.add("Copy", [total], (F, SHAPE), sizes=SHAPE, **words)


def turned_round(e: Builder, t: int, h: int) -> int:
    words = {"from_strides": (8, 1), "to_strides": (8, 1), "from_place": 8, "to_place": 0}
    return e.add("Copy", [h], (F, SHAPE), sizes=(15, 8), **words)


def by_itself(e: Builder, t: int, h: int) -> int:
    other = e.add("MatMul", [h, h], (F, (8, 8)), m=8, k=16, n=8, turns="a")
    return e.add("MatMul", [h, other], (F, SHAPE), m=16, k=8, n=8)


def pushed(e: Builder, t: int, h: int) -> int:
    e.containers.append(Container("stack", F, 128))
    e.add("Push", [h], None, container=0)
    return e.add("Add", [h, h], (F, SHAPE))


@pytest.mark.parametrize("body", [across_rows, turned_round, by_itself, pushed])
def test_what_depends_on_other_rows_stays_whole(body: Callable[..., int]) -> None:
    assert divided([torch.ones(SHAPE)], simple(doubled))[1] == (8, 8)
    assert divided([torch.ones(SHAPE)], simple(body))[1] == ()


def test_little_work_and_one_thread_stay_whole() -> None:
    program = made([torch.ones(SHAPE)], simple(doubled))
    assert in_parts(program, 2, 10_000_000) is not program
    for same in (in_parts(program, 2, 10_000_000), in_parts(program, 1, 1)):
        assert same == program


def test_nobody_knows_how_long() -> None:
    """A limit that is no constant: only the caller's thread can ask for signals."""

    def write(e: Builder, h: int, limit: int) -> Sequence[int]:
        zero, one = (e.constant("int32", (), [n]) for n in (0, 1))
        e.begin_loop()
        t, state = e.value("int32", ()), e.value(F, SHAPE)
        more = e.add("Less", [t, limit], ("bool", ()))
        e.begin_body()
        new = e.add("Add", [state, state], (F, SHAPE))
        after = e.add("Add", [t, one], ("int32", ()))
        e.end_loop([(zero, t, after), (h, state, new)], more, ())
        return [state]

    assert divided([torch.ones(SHAPE), torch.tensor(4, dtype=torch.int32)], write)[1] == ()


def test_a_part_gives_up_for_all() -> None:
    """A quotient of integers by zero in the last rows."""

    def body(e: Builder, t: int, h: int, by: int) -> int:
        return e.add("IntegerFloorDiv", [h, by], ("int32", SHAPE))

    top, by = torch.full(SHAPE, 81, dtype=torch.int32), torch.full(SHAPE, 3, dtype=torch.int32)
    program, parts = divided([top, by], simple(body, 2))
    assert parts == (8, 8)
    assert results(program, [top, by])[0].eq(9).all()
    by[-1, -1] = 0
    assert results(program, [top, by]) == FAILED


def test_lengths_share_the_text_of_parts() -> None:
    """How often a loop runs is handed in."""
    texts = []
    for steps in (4, 7):
        program, (rows, _) = divided(fed(16, 8, steps), recurrence(16, 8, steps))
        (loop,) = [each for each in program.body if isinstance(each, Loop)]
        texts.append(part_of(program, loop, rows).program)
        assert largest_product(program, loop) == 8 * 16 * 8
    assert texts[0] == texts[1]
