"""Loops as modules of their own: one text for all lengths, and the same results as in the program's text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from flowstone.framework import flags
from flowstone.native.codegen import compiler
from flowstone.native.codegen.loaded_modules import LoadedModules
from flowstone.native.programs.loop_functions import FEWEST_STATEMENTS, loops_apart, needed
from flowstone.native.programs.program_kernels import program_source
from flowstone.native.programs.programs import Builder
from small_programs import FAILED, counted, made, run

ROWS, WIDTH = 3, 40
F = "float32"


def recurrence(count: int, factor: float = 0.5, reads: int = 0) -> Callable[..., Sequence[int]]:
    """Steps that read x [count, ROWS, WIDTH] by array and push to a stack; then steps that pop and sum."""

    def write(e: Builder, x: int, indices: int, w: int, first: int) -> Sequence[int]:
        from flowstone.native.programs.programs import Container

        e.containers += [Container("array", F, ROWS * WIDTH), Container("stack", F, ROWS * WIDTH)]
        number, half = e.constant("int32", (), [count]), e.constant(F, (), [factor])
        e.add("MakeArray", [number], None, container=0)
        e.add("ScatterArray", [indices, x], None, container=0)
        shape, product = (ROWS, WIDTH), {"m": ROWS, "k": WIDTH, "n": WIDTH}

        def forward(t: int, h: int, total: int) -> Sequence[int]:
            place = e.add("Add", [t, e.constant("int32", (), [reads])], ("int32", ()))
            row = e.add("ReadArray", [place], (F, shape), container=0)
            e.add("Push", [h], None, container=1)
            both = e.add("MatMul", [h, w], (F, shape), **product)
            again = e.add("MatMul", [both, w], (F, shape), **product)
            new = e.add("Tanh", [e.add("Add", [row, again], (F, shape))], (F, shape))
            for _ in range(FEWEST_STATEMENTS):
                new = e.add("Mul", [e.add("Add", [new, row], (F, shape)), half], (F, shape))
            return [new, e.add("Add", [total, half], (F, ()))]

        h, total = counted(e, count, [first, half], forward)

        def backward(_: int, d: int) -> Sequence[int]:
            then = e.add("Pop", [], (F, shape), container=1)
            for _ in range(FEWEST_STATEMENTS):
                d = e.add("Mul", [e.add("Sub", [d, then], (F, shape)), half], (F, shape))
            return [e.add("MatMul", [d, w], (F, shape), **product)]

        (d,) = counted(e, count, [h], backward)
        return [h, total, d]

    return write


def inputs(count: int) -> list[torch.Tensor]:
    torch.manual_seed(count)
    w = torch.randn(WIDTH, WIDTH) / 8
    return [torch.randn(count, ROWS, WIDTH), torch.arange(count), w, torch.randn(ROWS, WIDTH)]


def modules_of(count: int, **more: Any) -> tuple[dict[str, str], str]:
    modules: dict[str, str] = {}
    text = program_source(made(inputs(count), recurrence(count, **more)), modules)
    return modules, text


def test_lengths_share_their_loops() -> None:
    few, text = modules_of(5)
    many, other = modules_of(9)
    assert few == many and text != other
    loops = [name for name in few if name.startswith("loop_")]
    assert len(loops) == 2
    for name in loops:
        assert f"define i32 @{name}(" in few[name] and text.count(f"call i32 @{name}(") == 1
        assert "fmul" not in text and "fmul" in few[name]


def test_loops_of_lengths_are_alike_before_there_is_text() -> None:
    def apart(count: int) -> list[Any]:
        return loops_apart(made(inputs(count), recurrence(count)))

    (forward, backward), again = apart(3), apart(7)
    assert again == [forward, backward] and forward[0] != backward[0]
    assert min(forward[1], backward[1]) > FEWEST_STATEMENTS


def test_other_constants_are_other_loops() -> None:
    assert not modules_of(5)[0].keys() & {x for x in modules_of(5, factor=0.25)[0] if x.startswith("loop_")}


@pytest.mark.parametrize("count", [1, 2, 70])
def test_has_the_bits_of_one_text(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seventy steps make the stack grow inside of the loop."""
    from flowstone.native.programs import program_kernels

    given, write = inputs(count), recurrence(count)
    apart = run(given, write)
    whole = program_source
    monkeypatch.setattr(program_kernels, "program_source", lambda program, modules: whole(program))
    for x, y in zip(apart, run(given, write), strict=True):
        assert torch.equal(x, y)
    assert torch.isfinite(apart[0]).all() and float(apart[1]) == 0.5 + 0.5 * count


def test_a_loop_that_gives_up_has_the_program_give_up() -> None:
    assert run(inputs(70), recurrence(70, reads=1)) == FAILED


def test_the_caller_keeps_the_loop_loaded() -> None:
    text = "declare i32 @inner()\ndefine i32 @outer() {\n %a = call i32 @inner()\n ret i32 %a\n}"
    inner = compiler.compiled("define i32 @inner() {\n ret i32 7\n}", ["inner"])
    outer = compiler.compiled(text, ["outer"], parts={"inner": inner})
    assert outer.parts == (inner,)
    import ctypes

    assert ctypes.CFUNCTYPE(ctypes.c_int)(outer.address("outer"))() == 7


def test_what_a_text_needs_comes_in_the_order_in_which_it_is_mentioned() -> None:
    a, b, c = "declare void @a()", "define void @b() {\n call void @c()\n}", "declare void @c()"
    assert needed("call void @b() call void @a()", [a, b, c]) == [b, a, c]


def test_kept_code_is_loaded_with_its_loops_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flowstone.native.clusters import kernels
    from flowstone.native.programs.program_kernels import ProgramKernel

    monkeypatch.setattr(flags, "CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    code = ProgramKernel(made(inputs(6), recurrence(6)), lambda *given: None)._code()
    best = kernels._module_of(code, quickly=False)
    assert kernels._kept(code, code.text()) is best
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    again = kernels._kept(code, code.text())
    assert again is not None and again is not best and len(again.parts) == len(best.parts) > 0
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    files = sorted(tmp_path.rglob("*.o"), key=lambda file: file.stat().st_mtime_ns)
    files[0].unlink()  # a loop is made before what calls it
    assert kernels._kept(code, code.text()) is None
    assert all(file.exists() for file in files[1:])
