"""Operations by element in programs against torch."""

from __future__ import annotations

import pytest
import torch

from flowstone.native.programs.programs import Builder
from small_programs import counted, run


@pytest.mark.parametrize("size", [1, 3, 16, 33, 64, 65, 1000])
def test_operations_by_element(size: int) -> None:
    """In registers, written out, and as loops over vectors; some of the values are only read there."""
    x, y = torch.randn(size), torch.randn(())

    def write(builder: Builder, a: int, b: int) -> list[int]:
        kind = "float32", (size,)
        total = builder.add("Add", [a, b], kind)
        square = builder.add("Mul", [total, total], kind)
        low = builder.add("Less", [total, b], ("bool", (size,)))
        chosen = builder.add("Select", [low, square, a], kind)
        return [chosen, builder.add("LogicalNot", [low], ("bool", (size,)))]

    chosen, high = run([x, y], write)
    total = x + y
    assert torch.equal(chosen, torch.where(total < y, total * total, x))
    assert torch.equal(high, ~(total < y))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int8, torch.uint8, torch.int16, torch.int64], ids=str)
def test_types(dtype: torch.dtype) -> None:
    kind = str(dtype).removeprefix("torch.")
    x = torch.arange(-3, 34).to(dtype)

    def write(builder: Builder, a: int) -> list[int]:
        return counted(builder, 3, [a], lambda counter, b: [builder.add("Maximum", [b, b], (kind, (37,)))])

    assert torch.equal(run([x], write)[0], x)
