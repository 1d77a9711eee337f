"""Sums of products that a loop of a program adds to, against torch: as many rows as come, and what begins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flowstone.native.programs.programs import Builder, Container
from small_programs import counted, run


def random(*dims: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.tensor(np.random.RandomState(sum(dims)).randn(*dims), dtype=dtype)


def summed(
    a: torch.Tensor, b: torch.Tensor, first: torch.Tensor | None, count: int, again: int = 1
) -> torch.Tensor:
    """What a loop gives that adds a'b, 2 a'b, 3 a'b …; `again`: the whole is done so often."""
    name = str(a.dtype).removeprefix("torch.")
    (rows, m), n = a.shape, b.shape[1]

    def write(builder: Builder, x: int, y: int, *start: int) -> list[int]:
        builder.containers += [Container("rows", name, width) for width in (m, n)]
        total = builder.value(name, (m, n))
        words: dict[str, Any] = {"rows": rows, "m": m, "n": n, "containers": (0, 1)}

        def whole(*_: int) -> list[int]:
            builder.add("BeginSum", start, None, into=total, **words)

            def add(counter: int, times: int) -> list[int]:
                builder.add("AddProduct", [times, y], None, into=total, **words)
                return [builder.add("Add", [times, x], (name, (rows, m)))]

            counted(builder, count, [x], add)
            builder.add("EndSum", [], None, into=total, **words)
            return []

        if again == 1:
            whole()
        else:
            counted(builder, again, [], whole)
        return [total]

    (found,) = run([a, b] if first is None else [a, b, first], write)
    return found


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 100])
@pytest.mark.parametrize("begins", [True, False], ids=["from something", "from zero"])
def test_any_number_of_iterations(count: int, begins: bool) -> None:
    a, b = random(1, 37), random(1, 53)
    first = random(37, 53) if begins else None
    found = summed(a, b, first, count)
    wanted = a.double().t() @ b.double() * (count * (count + 1) / 2)
    torch.testing.assert_close(found.double(), wanted + (0 if first is None else first), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("rows, m, n", [(2, 16, 64), (3, 5, 200), (16, 30, 17), (17, 24, 96), (40, 7, 33)])
def test_several_rows_an_iteration(rows: int, m: int, n: int, dtype: Any) -> None:
    a, b = random(rows, m, dtype=dtype), random(rows, n, dtype=dtype)
    wanted = a.double().t() @ b.double() * 28
    torch.testing.assert_close(summed(a, b, None, 7).double(), wanted, rtol=2e-5, atol=1e-4)


def test_a_sum_that_begins_again() -> None:
    a, b, first = random(2, 24), random(2, 40), random(24, 40)
    for start in (None, first):
        once, often = (summed(a, b, start, 21, again=n) for n in (1, 3))
        assert torch.equal(once, often)


def test_rows_that_are_not_finite() -> None:
    a, b = random(1, 24), random(1, 40)
    a[0, 3], b[0, 7] = float("inf"), float("nan")
    found = summed(a, b, None, 1)
    torch.testing.assert_close(found, a.t() @ b, equal_nan=True)
