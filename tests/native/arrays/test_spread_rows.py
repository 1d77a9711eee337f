"""Rows of segments that their elements get, by machine code: beside ATen's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from code_texts import shown_functions
from flowstone.native.arrays import spread_rows
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
HOW = ("sum", "mean", "sqrtn")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_text_is_valid_and_has_its_functions(how: str, dtype: str) -> None:
    assert shown_functions(spread_rows.spread_rows_code(how, dtype, "i32", 4)) == set(spread_rows.PLACES)


def expected(how: str, data: torch.Tensor, ids: torch.Tensor, empty: Any) -> torch.Tensor:
    sizes = torch.bincount(ids, minlength=len(data)).to(data.dtype)
    roots = torch.from_numpy(np.sqrt(sizes.numpy()))  # ATen's, by MKL, are not always the nearest ones
    scale = {"sum": torch.ones_like(sizes), "mean": 1 / sizes, "sqrtn": 1 / roots}[how]
    rows = data.index_select(0, ids) * scale.index_select(0, ids).reshape([-1] + [1] * (data.ndim - 1))
    if empty is not None:
        rows[empty[ids.long()]] = 0
    return rows


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_rows(dtype: torch.dtype, how: str, filled: bool) -> None:
    torch.manual_seed(0)
    for ids_type, name in ((torch.int32, "i32"), (torch.int64, "i64")):
        code = spread_rows.SpreadRows(how, str(dtype).removeprefix("torch."), name)
        for sizes in ((), (1,), (3,), (16,), (37,), (2, 5), (0,)):
            for count in (0, 1, 40):
                data = torch.randn(9, *sizes, dtype=dtype)
                data[0] = float("nan")
                ids = torch.randint(0, 9, (count,)).sort()[0].to(ids_type)
                empty = torch.rand(9) < 0.5 if filled else None
                found = code(data, ids, empty)
                assert found is not None
                torch.testing.assert_close(
                    found, expected(how, data, ids, empty), rtol=0, atol=0, equal_nan=True
                )


@pytest.mark.parametrize("columns", [1, 8, 37])
def test_rows_that_are_parts_of_a_matrix(columns: int) -> None:
    code, ids = spread_rows.SpreadRows("mean", "float32", "i64"), torch.tensor([0, 0, 2, 5, 5, 5])
    whole = torch.randn(6, 50)
    for data in (whole[:, 7 : 7 + columns], whole[::2, :columns]):
        some = ids.clamp(max=len(data) - 1)
        found = code(data, some)
        assert found is not None and torch.equal(found, expected("mean", data, some, None))
    by_columns = torch.randn(columns, 6).t()
    found = code(by_columns, ids)
    assert found is not None and torch.equal(found, expected("mean", by_columns, ids, None))


def test_what_it_is_not_for() -> None:
    code, data = spread_rows.SpreadRows("mean", "float32", "i64"), torch.ones(3, 2)
    for ids in ([0, 3], [-1, 0], [0, 2, 1]):
        assert code(data, torch.tensor(ids)) is None
    assert spread_rows.spread_rows("sum", torch.int32, torch.int32) is None
    assert spread_rows.spread_rows("sum", torch.float32, None) is None
