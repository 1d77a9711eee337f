"""Helps tests of `native/` to make programs and to run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from flowstone.native.programs.program_kernels import ProgramKernel, program_kernel
from flowstone.native.programs.programs import Builder, Program
from flowstone.runtime.steps.step import UNLIMITED

FAILED = "the machine code gave up"


def made(inputs: Sequence[torch.Tensor], write: Callable[..., Sequence[int]]) -> Program:
    """The program whose statements `write(builder, *inputs)` adds; what that returns are its outputs."""
    builder = Builder()
    values = [builder.value(str(x.dtype).removeprefix("torch."), tuple(x.shape)) for x in inputs]
    return builder.program(len(inputs), write(builder, *values))


def kernel_of(inputs: Sequence[torch.Tensor], write: Callable[..., Sequence[int]]) -> ProgramKernel:
    """Its kernel, compiled; `FAILED` is what it gives where the code gives up."""
    kernel = program_kernel(made(inputs, write), lambda *_: FAILED)
    kernel.compile()
    return kernel


def run(inputs: Sequence[torch.Tensor], write: Callable[..., Sequence[int]]) -> Any:
    """Its results."""
    return kernel_of(inputs, write)(UNLIMITED, *inputs)


def counted(
    builder: Builder, count: int, states: Sequence[int], body: Callable[..., Sequence[int]]
) -> list[int]:
    """A loop that runs so often: `body(counter, *states)` gives the next states; returns the last ones."""
    zero, one, limit = (builder.constant("int32", (), [n]) for n in (0, 1, count))
    builder.begin_loop()
    counter = builder.value("int32", ())
    own = [builder.value(*builder.values[x][:2]) for x in states]
    more = builder.add("Less", [counter, limit], ("bool", ()))
    builder.begin_body()
    following = body(counter, *own)
    after = builder.add("Add", [counter, one], ("int32", ()))
    builder.end_loop([(zero, counter, after), *zip(states, own, following)], more, ())
    for state in (counter, *own):
        builder.leave(state)
    return own
