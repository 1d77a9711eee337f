"""Rows side by side by machine code, beside NumPy; what it is not for goes to the function of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from flowstone.framework.types import dtypes
from flowstone.native.codegen import host
from flowstone.native.products.joined_rows import (
    TYPES,
    JoinedRows,
    Part,
    Picked,
    joined_rows,
    joined_rows_code,
)

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


def compiled(what: JoinedRows, otherwise: Any = None) -> Any:
    function = joined_rows(what, otherwise or (lambda *arguments: None))
    function.compile()
    return function


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", sorted(TYPES))
def test_columns_of_every_type(dtype: str, index: str) -> None:
    random = np.random.default_rng(len(dtype))
    kind = dtypes.as_dtype(dtype).as_numpy_dtype
    for rows in (1, 3, 40):
        table, other, part = (
            (9 * random.random(dims)).astype(kind) for dims in ((20, 5), (3, 1), (rows, 70))
        )
        ids, few = random.integers(0, 20, (rows, 4)).astype(index), random.integers(0, 3, rows).astype(index)
        sizes = ((dtype, 20, 5), (dtype, 3, 1), (index, rows, 4), (index, rows, 1), (dtype, rows, 70))
        columns = (Picked(0, 2, 1, 3), Part(4), Picked(1, 3, 0, 1), Picked(0, 2, 0, 1))
        function = compiled(JoinedRows(sizes, columns, rows, dtype))
        (found,) = function(*map(torch.from_numpy, (table, other, ids, few, part)))
        wide = torch.from_numpy(np.concatenate([part, part], 1))[:, 70:]
        (apart,) = function(*map(torch.from_numpy, (table, other, ids, few)), wide)
        assert torch.equal(apart, found)
        expected = [table[ids[:, 1:]].reshape(rows, -1), part, other[few], table[ids[:, 0]]]
        assert np.array_equal(found.numpy(), np.concatenate(expected, 1))


def test_other_indices_types_and_layouts_go_elsewhere() -> None:
    seen: list[Any] = []
    what = JoinedRows((("float32", 4, 2), ("int64", 3, 2)), (Picked(0, 1, 1, 1),) * 2, 3, "float32")
    function = compiled(what, lambda *arguments: seen.append(arguments))
    table, ids = torch.rand(4, 2), torch.tensor([[9, 0], [9, 3], [9, 1]])
    (found,) = function(table, ids)
    assert torch.equal(found, table[[0, 3, 1]].repeat(1, 2)) and not seen
    high, low = ids.clone(), ids.clone()
    high[2, 1], low[0, 1] = 4, -1
    others = [(table, high), (table, low), (table.double(), ids), (table, ids.int()), (table.t(), ids)]
    others += [(table[:3], ids), (table, ids.flip(1).t().contiguous().t())]
    for arguments in others:
        assert function(*arguments) is None
    assert len(seen) == len(others)


def test_the_text_has_a_copy_for_each_part() -> None:
    what = JoinedRows((("int8", 4, 3), ("int32", 2, 1)), (Picked(0, 1, 0, 1), Picked(0, 1, 0, 1)), 2, "int8")
    text = joined_rows_code(what)
    assert what.width == 6
    assert text.count("call void @llvm.memcpy") == 2 and text.count("icmp ult i64") == 2
