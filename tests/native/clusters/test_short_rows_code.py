"""Clusters with short rows: the same bits as the loops over each row, and what is not taken."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from flowstone.native.clusters import kernels, short_rows_code
from flowstone.native.clusters.clusters import OPEN, Array, Cluster, Result, Step
from flowstone.native.codegen import host
from flowstone.native.codegen.loaded_modules import LoadedModules

ROWS = 3 * 16 + 5  # whole vectors and some more
SOFTMAX = (
    ("Max", (0,), (("over", "row"),)),
    ("Sub", (0, 1), ()),
    ("Exp", (2,), ()),
    ("Sum", (3,), (("over", "row"),)),
    ("RealDiv", (3, 4), ()),
)


def softmax(rows: tuple[int, ...], columns: int, dtype: str = "float32") -> Cluster:
    steps = tuple(Step(op, operands, dtype, attributes) for op, operands, attributes in SOFTMAX)
    return Cluster((*rows, columns), (Array(dtype, (*rows, columns)),), steps, (5,), len(rows))


def both_ways(cluster: Cluster, *inputs: torch.Tensor) -> tuple[Any, Any]:
    """What the cluster's code computes, and what it does row by row."""
    kernels._modules = LoadedModules()
    found = kernels.kernel_of(cluster, lambda *x: pytest.fail("the inputs are as expected"))(*inputs)
    kernels._modules = LoadedModules()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(short_rows_code, "suits", lambda cluster: False)
        wanted = kernels.kernel_of(cluster, lambda *x: pytest.fail("the same"))(*inputs)
    kernels._modules = LoadedModules()
    return found, wanted


@pytest.mark.parametrize("rows", [(ROWS,), (16,), (5, 7), (OPEN,)], ids=str)
@pytest.mark.parametrize("columns", [2, 5, 7])
def test_rows_are_reduced(rows: tuple[int, ...], columns: int) -> None:
    cluster = softmax(rows, columns)
    assert short_rows_code.suits(cluster)
    x = np.random.RandomState(columns).randn(*[ROWS if n == OPEN else n for n in rows], columns)
    x = 10 * x.astype(np.float32)
    x[3 % len(x), ..., 1] = np.nan
    (found,), (wanted,) = both_ways(cluster, torch.from_numpy(x))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "bool"])
def test_what_is_broadcast(dtype: str) -> None:
    """Along rows, columns or both; choices by truths, places in the row, results of rows."""
    columns = 3
    arrays = [Array("bool", (ROWS, columns)), *[Array(dtype, d) for d in ((ROWS, 1), (columns,), ())]]
    steps = [
        Step("SelectV2", (0, 1, 2), dtype),
        Step("SelectV2", (0, 4, 3), dtype),
        Step("ColumnIndex", (), "int32"),
        Step("Cast", (0,), "int32", (("DstT", np.dtype("int32")),)),
        Step("Maximum", (6, 7), "int32"),
        Step("Any" if dtype == "bool" else "Max", (4,), dtype, (("over", "row"),)),
        Step("SelectV2", (0, 9, 5), dtype),
    ]
    dims = (ROWS, columns)
    results = (Result(dtype, dims), Result("int32", dims), Result(dtype, (ROWS, 1)), Result(dtype, dims))
    cluster = Cluster(dims, tuple(arrays), tuple(steps), (5, 8, 9, 10), 1, results)
    assert short_rows_code.suits(cluster)
    random = np.random.RandomState(1)
    inputs = [torch.from_numpy(np.asarray(random.randint(0, 2, a.dims)).astype(a.dtype)) for a in arrays]
    for found, wanted in zip(*both_ways(cluster, *inputs)):
        np.testing.assert_array_equal(found, wanted)


def test_an_input_is_overwritten() -> None:
    cluster = softmax((ROWS,), 3)
    x = torch.randn(ROWS, 3, generator=torch.Generator().manual_seed(1))
    wanted = torch.softmax(x, -1)
    with torch.inference_mode():
        found = kernels.kernel_of(cluster, lambda *x: pytest.fail("the same"), 0)(x.clone())
    torch.testing.assert_close(found[0], wanted)


def test_which_clusters() -> None:
    """Those whose rows are short, and many; nothing is reduced over more than a row."""
    lanes = host.lanes()
    taken = {
        (rows, columns): short_rows_code.suits(softmax((rows,), columns))
        for rows, columns in itertools.product((lanes - 1, lanes), (1, 2, lanes - 1, lanes))
    }
    assert [dims for dims, suits in taken.items() if suits] == [(lanes, 2), (lanes, lanes - 1)]
    step = Step("Sum", (0,), "float32", (("over", "columns"),))
    dims, results = (lanes, 3), (Result("float32", (3,)),)
    assert not short_rows_code.suits(Cluster(dims, (Array("float32", dims),), (step,), (1,), 1, results))
