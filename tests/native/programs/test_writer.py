"""Repetitions in the text of programs."""

from __future__ import annotations

import torch

from flowstone.native.programs.program_kernels import program_source
from flowstone.native.programs.programs import Builder
from small_programs import counted, made, run


def test_long_loops_of_code_that_runs_once_stay_loops() -> None:
    def summed(e: Builder, x: int) -> list[int]:
        return [e.add("Reduce", [x], ("float32", (40,)), kind="Sum", outer=1, size=30, inner=40)]

    def again(e: Builder, x: int) -> list[int]:
        return counted(e, 3, [x], lambda _, y: [e.add("Tanh", [y], ("float32", (30, 40)))])

    x = torch.ones(30, 40)
    assert "llvm.loop.unroll.disable" in program_source(made([x], summed))
    assert "llvm.loop.unroll.disable" not in program_source(made([x], again))
    assert torch.equal(run([x], summed)[0], torch.full((40,), 30.0))
