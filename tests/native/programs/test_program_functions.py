"""Statements that share a function: one text for equal ones, equal results with and without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from flowstone.native.clusters import kernels
from flowstone.native.codegen.loaded_modules import LoadedModules
from flowstone.native.programs import program_code
from flowstone.native.programs.program_kernels import program_source
from flowstone.native.programs.programs import Builder
from small_programs import made, run

X = torch.tensor(np.random.RandomState(1).randn(12, 20), dtype=torch.float32)


def layers(count: int) -> Any:
    """Layers of a product, a bias that is broadcast, an activation and a sum."""

    def write(e: Builder, x: int, w: int) -> Sequence[int]:
        results = []
        for _ in range(count):
            h = e.add("MatMul", [x, w], ("float32", (12, 20)), m=12, k=20, n=20)
            bias = e.add("Reduce", [h], ("float32", (20,)), kind="Mean", outer=1, size=12, inner=20)
            walk = {"sizes": (12, 20), "from_strides": (0, 1), "to_strides": (20, 1)}
            wide = e.add("Copy", [bias], ("float32", (12, 20)), from_place=0, to_place=0, **walk)
            less = e.add("Sub", [h, wide], ("float32", (12, 20)))
            x = e.add("Tanh", [less], ("float32", (12, 20)))
            results.append(less)
        return [x, results[0]]

    return write


def test_equal_statements_are_one_function() -> None:
    w = torch.eye(20)
    few, many = (program_source(made([X, w], layers(count))) for count in (2, 8))
    assert few.count("define internal void @shared") == many.count("define internal void @shared")
    assert many.count("call void @shared") == 4 * few.count("call void @shared")
    assert "noinline" in many


def test_what_is_read_elsewhere_is_another_function() -> None:
    """The first layer's difference is a result, those of other layers stay in registers."""
    text = program_source(made([X, torch.eye(20)], layers(3)))
    functions = text.split("define internal void @shared")[1:]
    both = [each for each in functions if "fsub" in each]
    assert len(both) == 2
    assert len({each.count("store <") for each in both}) == 2


@pytest.mark.parametrize("count", [1, 4])
def test_has_the_values_of_statements_in_a_row(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    w = torch.tensor(np.random.RandomState(2).randn(20, 20) / 4, dtype=torch.float32)
    shared = run([X, w], layers(count))
    monkeypatch.setattr(program_code, "write_shared", lambda *_: False)
    monkeypatch.setattr(kernels, "_modules", LoadedModules())
    for x, y in zip(shared, run([X, w], layers(count)), strict=True):
        assert torch.equal(x, y)


def test_statements_that_may_fail_or_are_small_stay() -> None:
    index = torch.tensor(2)
    walk = {"sizes": (20,), "from_strides": (1,), "to_strides": (1,), "from_place": 0, "to_place": 0}

    def write(e: Builder, x: int, i: int) -> list[int]:
        row = e.add("Copy", [x, i], ("float32", (20,)), **walk, scale=20, limit=12, wraps=False)
        return [e.add("Neg", [row], ("float32", (20,)))]

    assert "@shared" not in program_source(made([X, index], write))
    (found,) = run([X, index], write)
    assert torch.equal(found, -X[2])
