"""Parts of loops by a team, by one thread, and by the caller alone."""

from __future__ import annotations

import pytest
import torch

from divided_loops import divided, fed, recurrence, results
from flowstone.native.codegen import parts
from flowstone.native.programs.program_kernels import program_source
from small_programs import made


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads(threads: int) -> None:
    inputs, write = fed(48, 8, 5), recurrence(48, 8, 5)
    program, rows = divided(inputs, write, 3)
    assert rows == (16, 16, 16)
    expected = results(made(inputs, write), inputs)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = results(program, inputs)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(found, expected))


def test_alone() -> None:
    inputs, write = fed(32, 8, 5), recurrence(32, 8, 5)
    program, _ = divided(inputs, write)
    expected = results(made(inputs, write), inputs)
    parts.work_alone("test", True)
    try:
        found = results(program, inputs)
    finally:
        parts.work_alone("test", False)
    assert all(torch.equal(a, b) for a, b in zip(found, expected))


def test_equal_parts_are_one_module() -> None:
    for rows, count in ((32, 1), (20, 2)):
        modules: dict[str, str] = {}
        text = program_source(divided(fed(rows, 8, 5), recurrence(rows, 8, 5))[0], modules)
        assert len(modules) == count
        assert all(name in text and name.startswith("rows_") for name in modules)


def test_without_modules_a_loop_stays_whole() -> None:
    assert "rows_" not in program_source(divided(fed(32, 8, 5), recurrence(32, 8, 5))[0])
