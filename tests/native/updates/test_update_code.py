"""Machine code of updates beside float64: many parameters, tails, threads, arguments that misfit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from flowstone.framework.declarations.containers import Variable
from flowstone.native.codegen.loaded_modules import LoadedModules
from flowstone.native.updates import update_code
from flowstone.native.updates.updates import Rule, Update

# m = m + (x - m) * (1 - n0); h = h - m * n1 / sqrt(x^2 + 0.5)
STEPS = (
    ("Sub", (1.0, "n0")), ("Sub", ("x0", "h1")), ("Mul", ("t1", "t0")), ("AddV2", ("h1", "t2")),
    ("Mul", ("t3", "n1")), ("Mul", ("x0", "x0")), ("AddV2", ("t5", 0.5)), ("Sqrt", ("t6",)),
    ("RealDiv", ("t4", "t7")), ("Sub", ("h0", "t8")),
)  # fmt: skip
RULE = Rule(2, 1, 2, STEPS, ("t9", "t3"))


def held(value: torch.Tensor) -> Variable:
    result = Variable("v")
    result.tensor = value.clone()
    return result


def refused(*arguments: Any) -> None:
    raise AssertionError("the code is for these arguments")


def wanted(h: Any, m: Any, x: Any, keep: float, rate: float) -> Any:
    h, m, x = (each.double() for each in (h, m, x))
    m = m + (x - m) * (1 - keep)
    return h - m * rate / torch.sqrt(x * x + 0.5), m


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "sizes", [(1,), (1, 1, 1), (3, 16, 17, 1, 100), tuple(range(1, 40)), (5, 70_000, 31)]
)
def test_every_element_of_every_parameter_is_updated(dtype: str, sizes: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(len(sizes))
    h, m, x = (
        [torch.randn(n, dtype=getattr(torch, dtype), generator=generator) for n in sizes] for _ in range(3)
    )
    variables, slots = [held(each) for each in h], [held(each) for each in m]
    kernel = update_code.update_kernel(Update(RULE, dtype, sizes, (True, False)), refused)
    assert kernel.is_compiled
    assert kernel(*variables, *slots, *x, 0.9, torch.tensor(0.1, dtype=getattr(torch, dtype))) is None
    tolerance = 8 * torch.finfo(getattr(torch, dtype)).eps
    for variable, slot, *before in zip(variables, slots, h, m, x):
        for after, expected in zip((variable, slot), wanted(*before, 0.9, float(np.float32(0.1)))):
            torch.testing.assert_close(after.tensor.double(), expected, rtol=tolerance, atol=1e-8 + tolerance)


def test_a_team_does_what_one_thread_does(
    monkeypatch: pytest.MonkeyPatch, set_profile: Callable[..., None]
) -> None:
    sizes = (33, 4097, 1, 1000)
    x = [torch.randn(n) for n in sizes]
    results = []
    for work in (1e12, 1.0):
        set_profile(update_team=work)
        text = update_code.update_code(Update(RULE, "float32", sizes, (True, True)))
        assert ("GOMP_parallel" in text) == (work == 1.0)
        monkeypatch.setattr("flowstone.native.clusters.kernels._modules", LoadedModules())
        variables, slots = ([held(torch.ones(n)) for n in sizes] for _ in range(2))
        kernel = update_code.update_kernel(Update(RULE, "float32", sizes, (True, True)), refused)
        kernel(*variables, *slots, *x, 0.9, 0.1)
        results.append([each.tensor for each in (*variables, *slots)])
    assert all(torch.equal(a, b) for a, b in zip(*results))


def test_not_a_number_and_infinities_stay() -> None:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0])
    variable, slot = held(torch.zeros(4)), held(torch.zeros(4))
    update_code.update_kernel(Update(RULE, "float32", (4,), (True, True)), refused)(
        variable, slot, x, 0.9, 0.1
    )
    expected = wanted(torch.zeros(4), torch.zeros(4), x, 0.9, 0.1)
    for after, each in zip((variable, slot), expected):
        torch.testing.assert_close(after.tensor.double(), each, equal_nan=True, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("what", ["size", "type", "layout", "unset", "number"])
def test_what_does_not_fit_goes_to_the_other_function(what: str) -> None:
    seen: list[Any] = []
    kernel = update_code.update_kernel(
        Update(RULE, "float32", (6,), (True, False)), lambda *arguments: seen.append(arguments)
    )
    variable, slot, x, rate = held(torch.ones(6)), held(torch.ones(6)), torch.ones(6), torch.tensor(0.1)
    if what == "size":
        x = torch.ones(5)
    elif what == "type":
        x = x.double()
    elif what == "layout":
        x = torch.ones(12)[::2]
    elif what == "unset":
        del slot.tensor
    else:
        rate = rate.double()
    kernel(variable, slot, x, 0.9, rate)
    assert len(seen) == 1 and seen[0][0] is variable and seen[0][4] is rate
    assert variable.tensor.tolist() == [1.0] * 6


def test_tensors_may_stand_for_variables() -> None:
    h, m = torch.ones(7), torch.ones(7)
    kernel = update_code.update_kernel(Update(RULE, "float32", (7,), (True, True)), refused)
    kernel(h, m, torch.ones(7), 0.5, 0.1)
    expected = wanted(torch.ones(7), torch.ones(7), torch.ones(7), 0.5, 0.1)[0]
    torch.testing.assert_close(h.double(), expected, rtol=1e-6, atol=1e-7)
