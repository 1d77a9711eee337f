"""Machine code of updates of rows beside torch: repeats, narrow rows, columns of a matrix, misfits."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from flowstone.framework.declarations.containers import Variable
from flowstone.native.updates.row_update_code import row_update_kernel
from flowstone.native.updates.updates import RowUpdate, Rule

# a = a * n0 + x; h = h - a * n1
STEPS = (("Mul", ("h1", "n0")), ("AddV2", ("t0", "x0")), ("Mul", ("t1", "n1")), ("Sub", ("h0", "t2")))
RULE = Rule(2, 1, 2, STEPS, ("t3", "t1"))
ROWS = 50


def held(value: torch.Tensor) -> Variable:
    result = Variable("v")
    result.tensor = value.clone()
    return result


def refused(*arguments: Any) -> None:
    raise AssertionError("the code is for these arguments")


def update(
    width: int, summed: bool, repeats: bool, dtype: str = "float32", index: str = "int64"
) -> RowUpdate:
    return RowUpdate(RULE, dtype, ROWS, width, index, summed, repeats, (True, True), True)


def wanted(h: Any, a: Any, rows: Any, ids: Any, summed: bool) -> Any:
    h, a = h.clone(), a.clone()
    if summed:
        distinct = list(dict.fromkeys(ids.tolist()))
        rows = torch.stack([rows[ids == each].sum(0) for each in distinct])
        ids = torch.tensor(distinct)
    for row, each in zip(rows, ids.tolist()):
        a[each] = a[each] * 0.9 + row
        h[each] = h[each] - a[each] * 0.1
    return h, a


@pytest.mark.parametrize("width", [1, 2, 7, 8, 16, 19, 64])
@pytest.mark.parametrize("kind", ["summed", "in order", "distinct"])
@pytest.mark.parametrize("count", [0, 1, 2, 40, 200])
def test_rows(width: int, kind: str, count: int) -> None:
    generator = torch.Generator().manual_seed(width)
    h, a = (torch.randn(ROWS, width, generator=generator) for _ in range(2))
    if kind == "distinct":
        ids = torch.randperm(ROWS, generator=generator)[:count]
    else:
        ids = torch.randint(0, ROWS, (count,), generator=generator)
    rows = torch.randn(len(ids), width, generator=generator)
    kernel = row_update_kernel(update(width, kind == "summed", kind != "distinct"), refused)
    kernel.compile()
    variables = held(h), held(a)
    assert kernel(*variables, rows, ids, 0.9, 0.1) is None
    for found, expected in zip(variables, wanted(h, a, rows, ids, kind == "summed") if count else (h, a)):
        torch.testing.assert_close(found.tensor, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_columns_of_a_wider_matrix(dtype: str, index: str) -> None:
    wide = torch.randn(40, 30, dtype=getattr(torch, dtype))
    rows, ids = wide[:, 5:22], torch.randint(0, ROWS, (40, 3)).to(getattr(torch, index))[:, 1]
    h = torch.zeros(ROWS, 17, dtype=wide.dtype)
    variables = held(h), held(h)
    kernel = row_update_kernel(update(17, True, True, dtype, index), refused)
    kernel.compile()
    kernel(*variables, rows, ids, 0.9, 0.1)
    for found, expected in zip(variables, wanted(h, h, rows, ids, True)):
        torch.testing.assert_close(found.tensor, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "what", ["index", "negative", "count", "type", "index type", "layout", "width", "unset"]
)
def test_what_does_not_fit_goes_to_the_other_function(what: str) -> None:
    seen: list[Any] = []
    kernel = row_update_kernel(update(6, True, True), lambda *arguments: seen.append(arguments))
    kernel.compile()
    variable, slot = held(torch.ones(ROWS, 6)), held(torch.ones(ROWS, 6))
    rows, ids = torch.ones(3, 6), torch.tensor([1, 2, 1])
    if what == "index":
        ids[2] = ROWS
    elif what == "negative":
        ids[0] = -1
    elif what == "count":
        rows = torch.ones(2, 6)
    elif what == "type":
        rows = rows.double()
    elif what == "index type":
        ids = ids.int()
    elif what == "layout":
        rows = torch.ones(6, 3).t()
    elif what == "width":
        rows = torch.ones(6, 3)
    else:
        del slot.tensor
    kernel(variable, slot, rows, ids, 0.9, 0.1)
    assert len(seen) == 1 and seen[0][0] is variable
    assert variable.tensor.eq(1).all()
