"""The largest numbers of rows in programs against torch."""

from __future__ import annotations

import pytest
import torch

from flowstone.native.programs.programs import Builder
from small_programs import FAILED, run


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64])
@pytest.mark.parametrize(("rows", "size", "count"), [(1, 1, 1), (3, 9, 4), (2, 300, 64), (4, 17, 17)])
def test_the_largest(rows: int, size: int, count: int, dtype: torch.dtype) -> None:
    x = torch.randint(-50, 50, (rows, size)).to(dtype)
    kind = str(dtype).removeprefix("torch.")

    def write(builder: Builder, a: int) -> list[int]:
        sizes = {"size": size, "count": count}
        places = builder.add("Largest", [a], ("int32", (rows, count)), rows=rows, **sizes)
        return [places, builder.add("Taken", [a, places], (kind, (rows, count)), **sizes)]

    values, places = torch.sort(x, dim=1, descending=True, stable=True)
    found = run([x], write)
    assert torch.equal(found[0], places[:, :count].int()) and torch.equal(found[1], values[:, :count])


def test_not_a_number_comes_first() -> None:
    x = torch.tensor([1.0, torch.nan, torch.inf, -2.0, torch.nan])

    def write(builder: Builder, a: int) -> list[int]:
        return [builder.add("Largest", [a], ("int32", (4,)), rows=1, size=5, count=4)]

    assert run([x], write)[0].tolist() == [1, 4, 2, 0]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_places_outside_of_a_row_fail(dtype: torch.dtype) -> None:
    x, places = torch.randn(3, 5), torch.tensor([4, 0, 2]).to(dtype)

    def write(builder: Builder, a: int, b: int) -> list[int]:
        return [builder.add("Taken", [a, b], ("float32", (3,)), size=5, count=1)]

    assert torch.equal(run([x, places], write)[0], x[torch.arange(3), places.long()])
    for wrong in (-1, 5):
        places[1] = wrong
        assert run([x, places], write) == FAILED
