"""Sums of rows with equal indices: indices that fall on the same places of the table, and full tables."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flowstone.framework.declarations.containers import Variable
from flowstone.native.updates.row_update_code import row_update_kernel
from flowstone.native.updates.updates import RowUpdate, Rule

DESCENT = Rule(1, 1, 1, (("Mul", ("x0", "n0")), ("Sub", ("h0", "t0"))), ("t1",))


def refused(*arguments: Any) -> None:
    raise AssertionError("the code is for these arguments")


def descended(rows: int, ids: torch.Tensor) -> None:
    """One step of descent on a variable of so many rows, of three numbers that are sums without rounding."""
    variable, gradient = Variable("v"), torch.randint(-8, 8, (len(ids), 3)).float()
    variable.tensor = torch.zeros(rows, 3)
    update = RowUpdate(DESCENT, "float32", rows, 3, "int64", True, True, (True,), True)
    kernel = row_update_kernel(update, refused)
    kernel.compile()
    kernel(variable, gradient, ids, 0.5)
    wanted = torch.zeros(rows, 3).index_add_(0, ids, gradient, alpha=-0.5)
    assert torch.equal(variable.tensor, wanted)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 63, 64, 65, 1000])
def test_as_many_distinct_indices_as_there_are(count: int) -> None:
    descended(5000, torch.randperm(5000)[:count])


@pytest.mark.parametrize("step", [1, 2, 64, 4096, 1 << 16])
def test_indices_at_equal_distances(step: int) -> None:
    ids = torch.arange(40) * step
    descended(40 * step, torch.cat([ids, ids.flip(0), ids[::3]]))


def test_one_index_alone() -> None:
    descended(7, torch.full((500,), 6))
