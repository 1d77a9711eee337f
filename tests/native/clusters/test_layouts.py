"""Arguments that are not contiguous: code for rows that lie apart and for other layouts, copies of others,
the other function."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flowstone.native.clusters import kernels, layouts
from flowstone.native.clusters.clusters import OPEN, Array, Cluster, Result, Step
from flowstone.native.clusters.layouts import copied, laid_out_for

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


WALKED = {
    "transposed": torch.randn(40, 6).T,
    "transposed, of few columns": torch.randn(5, 400).T,
    "transposed, of long rows": torch.randn(300, 7).T,
    "every second": torch.randn(6, 80)[:, ::2],
    "axes in another order": torch.randn(5, 7, 9).permute(1, 2, 0),
    "the first two exchanged": torch.randn(5, 7, 9).transpose(0, 1),
    "truths": torch.randn(40, 6).T > 0,
    "numbers of 64 bits": torch.randn(40, 6).double().T,
    "one of three": torch.randn(6, 3, 40)[:, 1:2],
    "expanded": torch.randn(6, 1).expand(6, 40),
    "one row": torch.randn(40).expand(6, 40),
    "one number": torch.randn(1, 1).expand(6, 40),
    "one row of few": torch.randn(3).expand(60, 3),
    "one column of few": torch.randn(60, 1).expand(60, 3),
    "expanded between": torch.randn(6, 1, 5).expand(6, 7, 5),
    "expanded truths": torch.tensor([True]).expand(6, 40),
}


@pytest.mark.parametrize("x", list(WALKED.values()), ids=list(WALKED))
def test_arguments_are_walked_as_they_lie(x: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "copied", lambda *x: pytest.fail("there is code for it"))
    dtype, dims = str(x.dtype)[6:], tuple(x.shape)
    steps = (Step("Select", (0, 1, 0), dtype),) if dtype == "bool" else cluster(1).steps
    steps = tuple([step._replace(dtype=dtype) for step in steps])
    arrays = (Array(dtype, dims), Array(dtype, dims))
    given = Cluster(dims, arrays, steps, (2 if dtype == "bool" else 3,))
    kernel = kernels.kernel_of(given, lambda *x: pytest.fail("there is code for it"))
    y = x.flip(0).contiguous()
    for a, b in ((x, y), (y, x), (x, x), (y, y)):
        (found,) = kernel(a, b)
        assert found.is_contiguous()
        assert torch.equal(found, torch.where(a, b, a) if dtype == "bool" else a * b + a)
    assert kernel._misfits >= 2


@pytest.mark.parametrize("few", [4, 11, 40])
@pytest.mark.parametrize("over", ["row", "columns", "all"])
def test_reductions_of_transposed_arguments(over: str, few: int) -> None:
    x, y = torch.randn(few, 50).T, torch.randn(50, 1, 3)[:, :, 1].expand(50, 1)
    dims, results = (50, few), {"row": (50, 1), "columns": (few,), "all": ()}[over]
    steps = (Step("Mul", (0, 1), "float32"), Step("Sum", (2,), "float32", (("over", over),)))
    arrays = (Array("float32", dims), Array("float32", (50, 1)))
    given = Cluster(dims, arrays, steps, (3,), 1, (Result("float32", results),))
    kernel = kernels.kernel_of(given, lambda *x: pytest.fail("there is code for it"))
    (found,) = kernel(x, y)
    wanted = (x.double() * y).sum({"row": 1, "columns": 0, "all": (0, 1)}[over], keepdim=over == "row")
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)
    assert [bool(array.strides) for array in kernel.cluster.inputs] == [True, True]


def test_what_reductions_would_not_find_in_rows_is_copied() -> None:
    x = torch.randn(9, 5, 7).permute(1, 2, 0)  # rows of all that follows the first axis take two loops
    steps = (Step("Sum", (0,), "float32", ROW),)
    given = Cluster(
        (5, 7, 9), (Array("float32", (5, 7, 9)),), steps, (1,), 1, (Result("float32", (5, 1, 1)),)
    )
    kernel = kernels.kernel_of(given, lambda *x: pytest.fail("copies are as expected"))
    torch.testing.assert_close(kernel(x)[0], x.sum((1, 2), keepdim=True))
    assert laid_out_for(given, [x]) is None


def test_large_columns_are_copied(set_profile: Any) -> None:
    set_profile(core_cache=6 * 40 * 4 - 1)
    x, y = torch.randn(40, 6).T, torch.randn(6, 40)
    assert laid_out_for(cluster(6, 40), [x, y]) is None
    kernel = kernels.kernel_of(cluster(6, 40), lambda *x: pytest.fail("copies are as expected"))
    assert torch.equal(kernel(x, y)[0], x * y + x)


def test_after_many_layouts_arguments_are_copied_to_the_last() -> None:
    y, kernel = torch.randn(6, 40), kernels.kernel_of(cluster(6, 40), lambda *x: pytest.fail("copies"))
    for gap in [*range(10), 0, 3]:
        x = torch.randn(40, 6 + gap).T[:6]
        assert torch.equal(kernel(x, y)[0], x * y + x)
        assert torch.equal(kernel(x.contiguous(), y)[0], x * y + x)
    assert not any(array.strides for array in kernel.cluster.inputs)


@pytest.mark.parametrize("columns", [3, 40])
def test_expanded_rows_of_any_number(columns: int) -> None:
    kernel = kernels.kernel_of(cluster(OPEN, columns), lambda *x: pytest.fail("there is code for it"))
    for rows in (5, 1, 17, 50, 1, 3):
        x, y = torch.randn(columns).expand(rows, columns), torch.randn(rows, columns)
        assert torch.equal(kernel(x, y)[0], x * y + x)
    assert kernel.cluster.inputs[0].strides == (0, 1)


def test_transposed_arguments_of_an_open_size_are_copied() -> None:
    x, y = torch.randn(40, 6).T, torch.randn(6, 40)
    assert laid_out_for(cluster(OPEN, 40), [x, y]) is None
    kernel = kernels.kernel_of(cluster(OPEN, 40), lambda *x: pytest.fail("copies are as expected"))
    assert torch.equal(kernel(x, y)[0], x * y + x)


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
