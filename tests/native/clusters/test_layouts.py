"""Arguments that are not contiguous: code for rows that lie apart, copies of others, the other function."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flowstone.native.clusters import kernels
from flowstone.native.clusters.clusters import Array, Cluster, Result, Step
from flowstone.native.clusters.layouts import copied, pitched_for

ROW = (("over", "row"),)


def cluster(*dims: int) -> Cluster:
    """x * y + x"""
    steps = (Step("Mul", (0, 1), "float32"), Step("AddV2", (2, 0), "float32"))
    return Cluster(dims, (Array("float32", dims), Array("float32", dims)), steps, (3,))


def pieces() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    x, deep = torch.randn(6, 80), torch.randn(3, 4, 90)
    return {
        "pieces of a split": (x[:, :40], x[:, 40:]),
        "one of them": (x[:, 20:60], torch.randn(6, 40)),
        "of three dimensions": (deep[:, :, 7:30], deep[:, :, :23]),
        "a time step": (deep[:, 1, :], torch.randn(3, 90)),
        "rows that are left out": (torch.randn(12, 40)[::2], x[:, :40]),
        "few columns": (x[:, :3], x[:, 4:7]),
        "ones between": (deep[:, 1:2, :33], deep[:, 2:3, :33]),
    }


@pytest.mark.parametrize("name", list(pieces()))
def test_rows_that_lie_apart_have_their_own_code(name: str) -> None:
    x, y = pieces()[name]
    given = cluster(*x.shape)
    kernel = kernels.kernel_of(given, lambda *x: pytest.fail("there is code for it"), 0)
    for _ in range(2):
        (found,) = kernel._current(x, y)
        assert found.is_contiguous() and torch.equal(found, torch.add(x * y, x))
    assert kernel.cluster.pitched == [i for i, each in enumerate((x, y)) if not each.is_contiguous()]
    (found,) = kernel._current(x.contiguous(), y.contiguous())
    assert torch.equal(found, torch.add(x * y, x))


def test_an_input_in_pieces_is_not_overwritten() -> None:
    base = torch.randn(6, 80)
    x, y = base[:, :40], base[:, 40:]
    before = base.clone()
    kernel = kernels.kernel_of(cluster(6, 40), lambda *x: pytest.fail("there is code for it"), 0)
    (found,) = kernel._current(x, y)
    assert found is not x and torch.equal(base, before)


@pytest.mark.parametrize("rows", [3, 40])
def test_reductions_of_rows_that_lie_apart(rows: int) -> None:
    x = torch.randn(rows, 90)[:, 5:75]
    steps = (
        Step("Max", (0,), "float32", ROW),
        Step("Sub", (0, 1), "float32"),
        Step("Sum", (2,), "float32", (("over", "columns"),)),
    )
    results = (Result("float32", (rows, 70)), Result("float32", (70,)))
    given = Cluster((rows, 70), (Array("float32", (rows, 70)),), steps, (2, 3), 1, results)
    kernel = kernels.kernel_of(given, lambda *x: pytest.fail("there is code for it"))
    below, total = kernel._current(x)
    assert torch.equal(below, x - x.amax(1, keepdim=True))
    torch.testing.assert_close(total, below.sum(0))


OTHERS = {
    "transposed": torch.randn(40, 6).T,
    "expanded": torch.randn(6, 1).expand(6, 40),
    "every second": torch.randn(6, 80)[:, ::2],
    "one row": torch.randn(40).expand(6, 40),
}


@pytest.mark.parametrize("x", list(OTHERS.values()), ids=list(OTHERS))
def test_other_layouts_are_copied(x: torch.Tensor) -> None:
    y = torch.randn(6, 40)
    assert pitched_for(cluster(6, 40), [x, y]) is None
    kernel = kernels.kernel_of(cluster(6, 40), lambda *x: pytest.fail("copies are as expected"))
    (found,) = kernel._current(x, y)
    assert torch.equal(found, x * y + x)


@pytest.mark.parametrize("bad", [None, torch.zeros(40, 6, dtype=torch.float64).T, torch.zeros(5, 40)])
def test_other_types_and_sizes_are_left_to_the_other_function(bad: Any) -> None:
    y, seen = torch.randn(6, 40), []
    assert copied(cluster(6, 40), [bad, y]) is None
    kernel = kernels.kernel_of(cluster(6, 40), lambda *x: seen.append(x))
    kernel._current(bad, y)
    assert seen[0][0] is bad


def test_a_team_takes_rows_that_lie_apart() -> None:
    base = torch.randn(300, 2000)
    x, y = base[:, :1000], base[:, 1000:]
    kernel = kernels.kernel_of(cluster(300, 1000), lambda *x: pytest.fail("there is code for it"))
    assert torch.equal(kernel._current(x, y)[0], x * y + x)
    assert "GOMP_parallel" in kernels.source_of(kernel.cluster)
