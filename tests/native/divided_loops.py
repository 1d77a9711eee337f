"""Helps tests of loops in parts: a recurrence over rows, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.native.programs.program_kernels import program_kernel
from flowstone.native.programs.programs import Builder, Container, Loop, Program
from flowstone.native.programs.row_parts import in_parts
from flowstone.runtime.steps.step import UNLIMITED
from small_programs import FAILED, counted, made

F = "float32"
Write = Callable[..., Sequence[int]]


def results(program: Program, inputs: Sequence[torch.Tensor]) -> Any:
    """What its machine code gives."""
    kernel = program_kernel(program, lambda *_: FAILED)
    kernel.compile()
    return kernel(UNLIMITED, *inputs)


def divided(
    inputs: Sequence[torch.Tensor], write: Write, threads: int = 2
) -> tuple[Program, tuple[int, ...]]:
    """The program in parts, and the rows of its loop's."""
    program = in_parts(made(inputs, write), threads, 1)
    (loop,) = [each for each in program.body if isinstance(each, Loop)]
    return program, loop.parts


def recurrence(rows: int, units: int, steps: int, dtype: str = F, turns: str = "") -> Write:
    """A normalised cell with lengths that reads an array, writes another, and gives all outputs."""

    def write(e: Builder, x: int, indices: int, w: int, bias: int, lengths: int, h: int) -> Sequence[int]:
        shape, width = (rows, units), rows * units
        e.containers += [Container("array", dtype, width, clears=True), Container("array", dtype, width)]
        number, one = e.constant("int32", (), [steps]), e.constant(dtype, (), [1.0])
        for i in (0, 1):
            e.add("MakeArray", [number], None, container=i)
        e.add("ScatterArray", [indices, x], None, container=0)

        def spread(value: int, strides: tuple[int, int], kind: str = dtype) -> int:
            words = {"from_strides": strides, "to_strides": (units, 1), "from_place": 0, "to_place": 0}
            return e.add("Copy", [value], (kind, shape), sizes=shape, **words)

        everywhere = spread(bias, (0, 1))

        def body(t: int, h: int) -> Sequence[int]:
            row = e.add("ReadArray", [t], (dtype, shape), container=0)
            ended = e.add("GreaterEqual", [t, lengths], ("bool", (rows,)))
            both, words = e.value(dtype, (rows, 2 * units)), {"sizes": shape, "from_place": 0}
            for place, part in ((0, row), (units, h)):
                e.add("Copy", [part], None, into=both, from_strides=(units, 1), to_place=place,
                      to_strides=(2 * units, 1), **words)  # fmt: skip
            product = e.add("MatMul", [both, w], (dtype, shape), m=rows, k=2 * units, n=units, turns=turns)
            new = e.add("Tanh", [e.add("Add", [product, everywhere], (dtype, shape))], (dtype, shape))
            mean = e.add("Reduce", [new], (dtype, (rows, 1)), kind="Mean", outer=rows, size=units, inner=1)
            new = e.add(
                "Add", [new, e.add("Sub", [one, spread(mean, (1, 0))], (dtype, shape))], (dtype, shape)
            )
            mask = spread(e.view(ended, (rows, 1)), (1, 0), "bool")
            new = e.add("Select", [mask, h, new], (dtype, shape))
            e.add("WriteArray", [t, new], None, container=1)
            return [new]

        (last,) = counted(e, steps, [h], body)
        outputs = e.add("GatherArray", [indices], (dtype, (steps, rows, units)), container=1)
        return [last, outputs]

    return write


def fed(rows: int, units: int, steps: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Its inputs."""
    torch.manual_seed(rows * units)
    return [
        torch.randn(steps, rows, units, dtype=dtype), torch.arange(steps, dtype=torch.int32),
        torch.randn(2 * units, units, dtype=dtype) / 4, torch.randn(units, dtype=dtype),
        torch.randint(1, steps + 1, (rows,), dtype=torch.int32), torch.randn(rows, units, dtype=dtype),
    ]  # fmt: skip
