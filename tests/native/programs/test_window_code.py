"""Sums of products over windows against torch in float64, in sizes around vectors and registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flowstone.native.programs.window_code import joined_walk
from small_programs import run


def windows(x: torch.Tensor, y: torch.Tensor, rows: Any, terms: Any) -> Any:
    """What machine code computes, and what the statement says, in float64, with the sum of magnitudes."""
    n = y.shape[-1]
    count = int(np.prod([size for size, _ in rows]))
    name = str(x.dtype).removeprefix("torch.")
    (found,) = run(
        [x, y],
        lambda e, a, b: [
            e.add(
                "Windows", [a, b], (name, (count, n)), rows=joined_walk(rows), terms=joined_walk(terms), n=n
            )
        ],
    )
    places = [0]
    for size, step in (*rows, *terms):
        places = [place + i * step for place in places for i in range(size)]
    left = x.double().reshape(-1)[torch.tensor(places)].reshape(count, -1)
    return found, left @ y.double(), left.abs() @ y.double().abs()


CASES = [  # rows, terms, columns
    (((4, 9), (6, 3)), ((3, 9), (2, 3), (3, 1)), 8),
    (((1, 0), (13, 2)), ((5, 4),), 1),
    (((2, 40), (3, 8), (5, 2)), ((2, 8), (1, 7), (2, 2)), 17),
    (((7, 1),), ((3, 21), (4, 1)), 40),
    (((25, 3),), ((1, 0),), 33),
    (((1, 5), (1, 0)), ((9, 2),), 70),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_windows(case: Any, dtype: torch.dtype) -> None:
    rows, terms, n = case
    size = 1 + sum((size - 1) * step for size, step in (*rows, *terms))
    generator = torch.Generator().manual_seed(n)
    x = torch.randn(size, generator=generator, dtype=dtype)
    y = torch.randn(int(np.prod([size for size, _ in terms])), n, generator=generator, dtype=dtype)
    found, wanted, scale = windows(x, y, rows, terms)
    error = ((found.double() - wanted).abs() / scale.clamp(min=1e-30)).max().item()
    assert error <= 2 * torch.finfo(dtype).eps


def test_nan_and_infinity_stay_where_they_belong() -> None:
    x = torch.arange(8.0)
    x[3], x[6] = float("nan"), float("inf")
    found, wanted, _ = windows(x, torch.ones(2, 3), ((7, 1),), ((2, 1),))
    assert torch.equal(found.isnan(), wanted.isnan())
    assert torch.equal(found.isinf(), wanted.isinf())
    assert int(found.isnan().sum()) == int(found.isinf().sum()) == 6


def test_walks_are_as_short_as_they_can_be() -> None:
    assert joined_walk([(1, 100), (3, 20), (4, 5), (5, 1)]) == ((60, 1),)
    assert joined_walk([(2, 50), (3, 8), (4, 2)]) == ((2, 50), (12, 2))
    assert joined_walk([(2, 50), (3, 9)]) == ((2, 50), (3, 9))
    assert joined_walk([(1, 3)]) == ((1, 0),)
