"""Kernels of programs: other arguments, failures, threads, and compiling once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from flowstone.framework import flags
from flowstone.native.clusters import kernels
from flowstone.native.codegen import compiler, llvm, making
from flowstone.native.codegen.loaded_modules import LoadedModules
from flowstone.native.programs import program_kernels
from flowstone.native.programs.open_sizes import named
from flowstone.native.programs.program_kernels import ProgramKernel, program_kernel, program_texts
from flowstone.native.programs.programs import Builder
from flowstone.runtime.steps.step import UNLIMITED
from small_programs import FAILED, counted, kernel_of, made, run


def doubling(builder: Builder, x: int) -> list[int]:
    value = builder.values[x]
    return counted(builder, 5, [x], lambda counter, y: [builder.add("Add", [y, y], value[:2])])


def test_arguments_of_another_layout() -> None:
    x = torch.rand(20, 3)
    kernel = kernel_of([x], doubling)
    wanted = x * 32
    assert torch.equal(kernel(UNLIMITED, x)[0], wanted)
    assert torch.equal(kernel(UNLIMITED, x.T.contiguous().T)[0], wanted)
    assert kernel(UNLIMITED, x.double()) == FAILED


def test_the_input_stays_as_it_is() -> None:
    x = torch.rand(4)
    before = x.clone()
    (found,) = run([x], doubling)
    assert torch.equal(x, before)
    assert found.data_ptr() != x.data_ptr()


def test_other_threads_run_meanwhile_and_may_run_the_same_kernel() -> None:
    kernel = kernel_of([torch.zeros(50)], doubling)
    results: list[bool] = []

    def work(number: int) -> None:
        x = torch.full((50,), float(number))
        results.append(all(torch.equal(kernel(UNLIMITED, x)[0], x * 32) for _ in range(200)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def test_equal_programs_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    compiled = compiler.compiled

    def note(text: str, *arguments: Any) -> compiler.Module:
        texts.append(text)
        return compiled(text, *arguments)

    monkeypatch.setattr(compiler, "compiled", note)
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    for _ in range(3):
        program_kernel(made([torch.zeros(7)], doubling), lambda *_: FAILED)
    assert len(texts) == 1


def test_threads_that_compile_the_same_program_share_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, begun = compiler.compiled, threading.Event()
    made_by: list[str] = []

    def slowly(*arguments: Any, **options: Any) -> Any:
        made_by.append(threading.current_thread().name)
        begun.wait(10)  # the others come meanwhile
        return compiled(*arguments, **options)

    monkeypatch.setattr(compiler, "compiled", slowly)
    program = made([torch.zeros(7)], lambda e, x: [e.add("Sin", [x], ("float32", (7,)))])
    modules: list[compiler.Module] = []

    def compile() -> None:
        modules.append(kernels._module_of(ProgramKernel(program, print)._code(), quickly=False))

    threads = [threading.Thread(target=compile) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.set()
    for thread in threads:
        thread.join()
    assert len(modules) == 4 and len(set(modules)) == len(made_by) == 1


def test_code_that_one_thread_was_given_stays_when_another_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quick code is asked for, and the best is on disk by then: it must not take the place of what runs."""
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    program = made([torch.zeros(7)], lambda e, x: [e.add("Cos", [x], ("float32", (7,)))])
    code = ProgramKernel(program, print)._code()
    compiled, given = compiler.compiled, list[compiler.Module]()

    def late(text: str, names: Any, is_rough: bool, quickly: bool, *_: Any) -> compiler.Module:
        if quickly:  # meanwhile
            given.append(kernels._module_of(code, quickly=False))
        return compiled(text, names, is_rough)

    monkeypatch.setattr(compiler, "compiled", late)
    assert kernels._module_of(code, quickly=True) is given[0] is kernels._modules.found(code.key, False)


@pytest.mark.parametrize("loops", [False, True])
def test_quick_code_of_what_runs_once_leaves_its_variables_in_memory(
    loops: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The results are those of the best code, to the bit."""
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    monkeypatch.setattr(making, "later", lambda make, work=0.0: None)
    passes: list[Any] = []
    make = llvm.object_code
    monkeypatch.setattr(llvm, "object_code", lambda *how: passes.append(how[3]) or make(*how))
    x = torch.randn(7, 5)

    def chain(builder: Builder, x: int) -> list[int]:
        for name in ("Tanh", "Sin", "Exp", "Sigmoid"):
            x = builder.add(name, [x], builder.values[x][:2])
        return doubling(builder, x) if loops else [builder.add("Add", [x, x], builder.values[x][:2])]

    kernel = ProgramKernel(made([x], chain), print)
    kernel.compile(quickly=True)
    (found,) = kernel(UNLIMITED, x)
    kernel.compile()
    assert torch.equal(kernel(UNLIMITED, x)[0], found)
    assert passes == [("SROA",) if loops else (), llvm.EVERY]


def test_texts_are_written_once_and_grow_with_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    source = program_kernels.program_source
    monkeypatch.setattr(program_kernels, "program_source", lambda *each: written.append(1) or source(*each))

    def text_of(count: int) -> str:
        builder = Builder()
        inputs = [builder.value("float32", (named(1), n + 3)) for n in range(count)]
        results = [
            builder.add("Reduce", [x], ("float32", (n + 3,)), kind="Sum", outer=1, size=named(1), inner=n + 3)
            for n, x in enumerate(inputs)
        ]
        program = builder.program(count, results)
        text, _ = program_texts(program)
        assert program_texts(program)[0] is text
        return text

    few, many = text_of(10), text_of(40)
    assert len(written) == 2 and len(many) < 5 * len(few)
