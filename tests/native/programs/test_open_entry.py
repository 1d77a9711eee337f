"""Programs of sizes that only the step knows: one code for all, which compares what it takes."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flowstone.native.programs.open_sizes import named
from flowstone.native.programs.program_kernels import ProgramKernel, program_kernel
from flowstone.native.programs.programs import Builder
from flowstone.runtime.steps.step import UNLIMITED

N, M = named(1), named(2)
FAILED = "by nodes"


def _kernel(shapes: list[tuple[Any, ...]], make: Any) -> ProgramKernel:
    builder = Builder()
    inputs = [builder.value("float32", dims) for dims in shapes]
    program = builder.program(len(shapes), make(builder, *inputs))
    kernel = program_kernel(program, lambda step, *inputs: FAILED)
    kernel.compile()
    return kernel


def _mixed(builder: Builder, x: int, w: int) -> list[int]:
    """tanh(x w) of x [n, m, 5] and w [5, 6], sums over each dimension, and everything's mean."""
    flat = builder.view(x, (N * M, 5))
    y = builder.add("MatMul", [flat, w], ("float32", (N * M, 6)), m=N * M, k=5, n=6, turns="")
    y = builder.add("Tanh", [y], ("float32", (N * M, 6)))
    columns = builder.add("Reduce", [y], ("float32", (6,)), kind="Sum", outer=1, size=N * M, inner=6)
    rows = builder.add("Reduce", [y], ("float32", (N * M,)), kind="Max", outer=N * M, size=6, inner=1)
    mean = builder.add("Reduce", [y], ("float32", ()), kind="Mean", outer=1, size=N * M * 6, inner=1)
    gradient = builder.add("MatMul", [flat, y], ("float32", (5, 6)), m=5, k=N * M, n=6, turns="a")
    return [builder.view(y, (N, M, 6)), columns, rows, mean, gradient]


def test_one_code_for_all_sizes() -> None:
    kernel = _kernel([(N, M, 5), (5, 6)], _mixed)
    w = torch.rand(5, 6)
    for n, m in ((2, 2), (2, 3), (3, 7), (17, 5), (31, 64), (64, 33)):
        x = torch.rand(n, m, 5) - 0.5
        y = torch.tanh(x @ w)
        flat = y.reshape(-1, 6)
        wanted = [y, flat.sum(0), flat.amax(1), y.mean(), x.reshape(-1, 5).T @ flat]
        found = kernel(UNLIMITED, x, w)
        assert found is not FAILED
        for a, b in zip(found, wanted, strict=True):
            assert a.shape == b.shape and a.is_contiguous()
            torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-5)


def _added(builder: Builder, x: int, y: int) -> list[int]:
    return [builder.add("Add", [x, y], ("float32", (N, M)))]


@pytest.mark.parametrize(
    ("x", "y"),
    [((4, 5), (4, 6)), ((4, 5), (5, 5)), ((1, 5), (1, 5)), ((4, 1), (4, 1)), ((0, 5), (0, 5))],
)
def test_other_sizes_go_another_way(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    kernel = _kernel([(N, M), (N, M)], _added)
    assert kernel(UNLIMITED, torch.ones(x), torch.ones(y)) is FAILED
    (found,) = kernel(UNLIMITED, torch.ones(4, 5), torch.ones(4, 5))
    assert torch.equal(found, torch.full((4, 5), 2.0))


def test_sizes_that_are_computed_are_compared() -> None:
    kernel = _kernel([(N, 3), (N * 3 - 1,)], lambda builder, x, y: [builder.view(x, (N * 3,)), y])
    found = kernel(UNLIMITED, torch.ones(4, 3), torch.ones(11))
    assert [tuple(each.shape) for each in found] == [(12,), (11,)]
    assert kernel(UNLIMITED, torch.ones(4, 3), torch.ones(12)) is FAILED


def test_arguments_of_another_type_or_layout_go_another_way() -> None:
    kernel = _kernel([(N, M), (N, M)], _added)
    x = torch.rand(4, 5)
    assert kernel(UNLIMITED, x.double(), x) is FAILED
    (found,) = kernel(UNLIMITED, torch.rand(5, 4).T, x)  # is copied
    assert found is not FAILED


def test_what_takes_much_memory_goes_another_way() -> None:
    kernel = _kernel([(N, M)], lambda builder, x: [builder.add("Tanh", [x], ("float32", (N, M)))])
    assert kernel(UNLIMITED, torch.zeros(2000, 2000)) is FAILED
    assert kernel(UNLIMITED, torch.zeros(200, 200)) is not FAILED
