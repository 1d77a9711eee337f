"""Kernels of programs: as those of clusters (`kernels.py`), but for loops and conditionals.

The function of Python that computes a program otherwise also does so where the machine code finds that it has
to fail, and then raises the error that names the node. Either takes the step first: its loops end with it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from flowstone.framework import flags
from flowstone.native.clusters.entry_points import entry_code
from flowstone.native.clusters.kernels import Code, NativeKernel
from flowstone.native.programs.open_entry import OpenEntry
from flowstone.native.programs.program_code import program_code
from flowstone.native.programs.programs import Program

__all__ = ["ProgramKernel", "program_kernel", "program_source", "program_texts"]

_NAME = "new"


class ProgramKernel(NativeKernel):
    """A function of the step and the program's inputs, and what it becomes; `beyond` does what the machine
    code does not."""

    def __init__(
        self, program: Program, otherwise: Callable[..., Any], beyond: Callable[..., Any] | None = None
    ) -> None:
        super().__init__(program, self._otherwise, None)  # type: ignore[arg-type]
        self.program, self._by_nodes, self._beyond = program, otherwise, beyond or otherwise

    def _otherwise(self, step: Any, *inputs: Any) -> Any:
        """What the machine code does not do: arguments of other layouts, much work, failures."""
        if not self.is_compiled:
            return self._by_nodes(step, *inputs)
        if not all(x.is_contiguous() for x in inputs):
            return self._current(step, *[x.contiguous() for x in inputs])
        return self._beyond(step, *inputs)

    @property
    def work(self) -> float:
        return math.inf  # by ATen, node by node, it takes long

    def _code(self) -> Code:
        program = self.program
        made = functools.cache(lambda: program_texts(program))

        def parts() -> list[Code]:
            return [_loop_code(name, text) for name, text in made()[1].items()]

        key, runs_once = ("program", program), not program.has_loops
        return Code(key, lambda: made()[0], [_NAME], _NAME, True, parts, runs_once)


def program_kernel(
    program: Program, otherwise: Callable[..., Any], beyond: Callable[..., Any] | None = None
) -> ProgramKernel:
    """A function of Python that computes the program, of the step and the inputs; so is `otherwise`, and what
    is called `beyond` what machine code is for."""
    kernel = ProgramKernel(program, otherwise, beyond)
    if flags.NATIVE > 1:
        kernel.compile()
    return kernel


def _loop_code(name: str, text: str) -> Code:
    return Code(name, lambda: text, [name], name, is_rough=True)


@functools.lru_cache(maxsize=4)
def program_texts(program: Program) -> tuple[str, dict[str, str]]:
    """The text of the program's function, and those of its loops by name. Planning writes that of a program
    of open sizes, which the kernel wants soon afterwards."""
    modules: dict[str, str] = {}
    return program_source(program, modules), modules


def program_source(program: Program, modules: dict[str, str] | None = None) -> str:
    """LLVM's text of the program's function; loops that are others', too, are put into `modules`."""
    declarations: dict[str, str] = {}
    code = program_code(program, declarations, modules)
    inputs = [program.array(i) for i in range(program.inputs)]
    outputs = [program.array(i) for i in program.outputs]
    kind = OpenEntry if program.is_open else None
    entry = entry_code(
        _NAME, inputs, outputs, (), program.has_loops, declarations, may_fail=True, has_step=True, kind=kind
    )
    return "\n".join([*declarations.values(), code, entry])
