"""Stacks and arrays of programs: what comes back, and when the code gives up."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flowstone.native.programs.programs import Builder, Container
from small_programs import FAILED, counted, run


def container(builder: Builder, kind: str, size: int, **options: bool) -> int:
    builder.containers.append(Container(kind, "float32", size, **options))
    return len(builder.containers) - 1


@pytest.mark.parametrize("dims", [(), (3,), (4, 20)])
@pytest.mark.parametrize("count", [1, 64, 65, 1000])
def test_a_stack_gives_back_the_last_first(dims: tuple[int, ...], count: int) -> None:
    first = torch.rand(dims).mul(9).floor()  # whole numbers, whose sums are exact

    def write(builder: Builder, x: int) -> list[int]:
        stack = container(builder, "stack", first.numel())
        one = builder.constant("float32", (), [1.0])

        def push(counter: int, y: int) -> list[int]:
            builder.add("Push", [y], None, container=stack)
            return [builder.add("Add", [y, one], ("float32", dims))]

        def pop(counter: int, total: int, last: int) -> list[int]:
            y = builder.add("Pop", [], ("float32", dims), container=stack)
            return [builder.add("Add", [total, y], ("float32", dims)), y]

        counted(builder, count, [x], push)
        return counted(builder, count, [builder.add("ZerosLike", [x], ("float32", dims)), x], pop)

    total, last = run([first], write)
    assert torch.equal(last, first)
    assert torch.equal(total, first * count + count * (count - 1) / 2)


def test_an_empty_stack() -> None:
    def write(builder: Builder) -> list[int]:
        stack = container(builder, "stack", 2)
        return [builder.add("Pop", [], ("float32", (2,)), container=stack)]

    assert run([], write) == FAILED


def array_program(size: int, reads: list[int], twice: bool = False, **options: bool) -> Any:
    """Writes 0, 10, 20 … to an array of 3 and reads some."""

    def write(builder: Builder, size: int) -> list[int]:
        array = container(builder, "array", 1, **options)
        builder.add("MakeArray", [size], None, container=array)
        ten = builder.constant("float32", (), [10.0])

        def fill(counter: int, y: int) -> list[int]:
            builder.add("WriteArray", [counter, y], None, container=array)
            if twice:
                builder.add("WriteArray", [counter, ten], None, container=array)
            return [builder.add("Add", [y, ten], ("float32", ()))]

        counted(builder, 3, [builder.constant("float32", (), [0.0])], fill)
        indices = [builder.constant("int32", (), [i]) for i in reads]
        return [builder.add("ReadArray", [i], ("float32", ()), container=array) for i in indices]

    return run([torch.tensor(size, dtype=torch.int32)], write)


def test_arrays() -> None:
    assert [x.item() for x in array_program(3, [2, 0])] == [20.0, 0.0]
    assert [x.item() for x in array_program(9, [1, 1])] == [10.0, 10.0]
    assert [x.item() for x in array_program(3, [1, 2], twice=True, adds=True)] == [20.0, 30.0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 2, "reads": [0]},  # a write beyond the end
        {"size": -1, "reads": [0]},
        {"size": 4, "reads": [3]},  # which nobody wrote
        {"size": 3, "reads": [-1]},
        {"size": 3, "reads": [7]},
        {"size": 3, "reads": [1, 1], "clears": True},
        {"size": 3, "reads": [1], "twice": True},
    ],
    ids=str,
)
def test_arrays_that_are_used_wrongly(wrong: dict[str, Any]) -> None:
    assert array_program(**wrong) == FAILED


@pytest.mark.parametrize("dims", [(), (2,), (3, 17)])
def test_rows_to_an_array_and_back(dims: tuple[int, ...]) -> None:
    rows = torch.rand(4, *dims)

    def write(builder: Builder, x: int, order: int) -> list[int]:
        array = container(builder, "array", rows[0].numel())
        builder.add("MakeArray", [builder.constant("int32", (), [4])], None, container=array)
        builder.add("ScatterArray", [order, x], None, container=array)
        back = builder.constant("int32", (4,), range(4))
        size = builder.add("SizeArray", [], ("int32", ()), container=array)
        return [builder.add("GatherArray", [back], ("float32", (4, *dims)), container=array), size]

    order = torch.tensor([2, 0, 3, 1])
    for dtype in (torch.int32, torch.int64):
        found, size = run([rows, order.to(dtype)], write)
        assert size.item() == 4
        assert torch.equal(found[order], rows)
    assert run([rows, torch.tensor([0, 1, 2, 4], dtype=torch.int32)], write) == FAILED
    assert run([rows, torch.tensor([0, 1, 2, 2], dtype=torch.int32)], write) == FAILED
