"""Products of programs against torch, in sizes around vectors, of operands stored by rows and by columns."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from flowstone.native.programs.programs import Builder
from small_programs import run


def random(*dims: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = np.random.RandomState(sum(dims) + 7 * len(dims))
    values = generator.randn(*dims) * (1 if dtype.is_floating_point else 9)
    return torch.tensor(values, dtype=dtype)


SIZES = [*itertools.product((1, 3, 4, 9), (1, 5, 32), (1, 2, 16, 40)), (2, 70, 150), (40, 3, 17), (1, 67, 19)]
FEWER = [*itertools.product((1, 4, 9), (5, 32), (2, 40)), *SIZES[-3:]]  # of operands stored by columns


@pytest.mark.parametrize("turns", ["", "a", "b"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64], ids=str)
def test_products(dtype: torch.dtype, turns: str) -> None:
    if turns == "b" and not dtype.is_floating_point:
        pytest.skip("programs have no such products")
    name = str(dtype).removeprefix("torch.")
    for m, k, n in FEWER if turns else SIZES:
        a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype)
        stored = [x.t().contiguous() if side in turns else x for x, side in ((a, "a"), (b, "b"))]

        def write(builder: Builder, x: int, y: int, sizes: Any = (m, k, n)) -> list[int]:
            m, k, n = sizes
            return [builder.add("MatMul", [x, y], (name, (m, n)), m=m, k=k, n=n, turns=turns)]

        (found,) = run(stored, write)
        if dtype.is_floating_point:
            wanted = a.double() @ b.double()
            scale = (a.double().abs() @ b.double().abs()).clamp(min=1e-30)
            error = ((found.double() - wanted).abs() / scale).max().item()
            assert error <= 2 * torch.finfo(dtype).eps, (m, k, n, error)
        else:
            assert torch.equal(found, a @ b), (m, k, n)


@pytest.mark.parametrize("turns", ["", "a", "b"])
def test_a_product_has_no_part_in_what_lies_beyond_its_operands(turns: str) -> None:
    """Rows are read in whole vectors: what follows them must not reach the result, NaN least of all."""
    whole = torch.full((64, 19), float("nan"))
    whole.view(-1)[:15] = 1.0
    b = whole.view(-1)[:15].view((3, 5) if turns == "b" else (5, 3))
    left = torch.full((64,), float("nan"))
    left[:10] = 1.0
    a = left[:10].view((5, 2) if turns == "a" else (2, 5))
    (found,) = run(
        [a, b],
        lambda e, x, y: [e.add("MatMul", [x, y], ("float32", (2, 3)), m=2, k=5, n=3, turns=turns)],
    )
    assert torch.equal(found, torch.full((2, 3), 5.0))
