"""Rows added by machine code, beside ATen's kernel: the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.arrays import row_additions
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_the_text_is_valid(monkeypatch, dtype, index, team) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = row_additions.row_additions_code(dtype, index, 8)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"add", "subtract", "multiply"} | (
        {"divide"} if dtype != "int8" else set()
    )


def numbers(shape, dtype) -> torch.Tensor:
    random = np.random.default_rng(4)
    if dtype.is_floating_point:
        return torch.from_numpy(random.normal(size=shape)).to(dtype)
    return torch.from_numpy(random.integers(-200, 200, shape)).to(dtype)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
)
@pytest.mark.parametrize("shape", [(1,), (5,), (16,), (3, 7), (2, 40)])
def test_sums_are_atens(monkeypatch, dtype, index, shape) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    table, rows = numbers((9, *shape), dtype), numbers((200, *shape), dtype)
    places = torch.from_numpy(np.random.default_rng(5).integers(0, 9, 200)).to(index)
    for subtracts in (False, True):
        expected = table.clone().index_add_(0, places, rows, alpha=-1 if subtracts else 1)
        found = table.clone()
        assert row_additions.row_additions(dtype, index)(
            found, places, rows, "subtract" if subtracts else "add"
        )
        assert torch.equal(found, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8, torch.int64])
@pytest.mark.parametrize("how", ["multiply", "divide"])
def test_products_and_quotients_come_one_after_the_other(monkeypatch, dtype, how) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    if how == "divide" and not dtype.is_floating_point:
        return
    table, rows = numbers((9, 3, 7), dtype), numbers((40, 3, 7), dtype)
    places = torch.from_numpy(np.random.default_rng(5).integers(0, 9, 40))
    found, expected = table.clone(), table.clone()
    assert row_additions.row_additions(dtype, torch.int64)(found, places, rows, how)
    for place, row in zip(places.tolist(), rows):
        expected[place] = expected[place] * row if how == "multiply" else expected[place] / row
    assert torch.equal(found, expected)


@pytest.mark.parametrize("bad", [-1, 9, 2**40])
def test_nothing_is_changed_where_an_index_is_outside(monkeypatch, bad) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    table = torch.ones(9, 2)
    places = torch.tensor([0, 3, bad])
    add = row_additions.row_additions(torch.float32, torch.int64)
    assert not add(table, places, torch.ones(3, 2), "add")
    assert bool((table == 1).all())


def test_there_is_none_for_other_types() -> None:
    assert row_additions.row_additions(torch.bfloat16, torch.int64) is None
    assert row_additions.row_additions(torch.complex64, torch.int64) is None
    assert row_additions.row_additions(torch.float32, torch.int16) is None


def test_a_large_sum_is_that_of_one_thread(monkeypatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)
    rows, places = numbers((9000, 64), torch.float32), torch.arange(9000) % 7
    found = torch.zeros(7, 64)
    assert row_additions.row_additions(torch.float32, torch.int64)(found, places, rows, "add")
    assert torch.equal(found, torch.zeros(7, 64).index_add_(0, places, rows))


@pytest.mark.parametrize("scatter", [tf.scatter_add, tf.scatter_sub])
def test_operations_use_it(monkeypatch, scatter) -> None:
    """On variables by reference; those by handle are updated with `lowering/updates`."""
    called, call = [], row_additions.RowAdditions.__call__
    monkeypatch.setattr(
        row_additions.RowAdditions, "__call__", lambda *given: called.append(1) or call(*given)
    )
    monkeypatch.setattr(flags, "NATIVE", 2)
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.get_variable("t", initializer=np.ones([5, 3], "f"), use_resource=False)
        places = tf.placeholder(tf.int32, [None])
        changed = scatter(table, places, tf.ones([40, 3]))
        session.run(table.initializer)
        session.run(changed, {places: np.arange(40) % 4})
        expected = 11.0 if scatter is tf.scatter_add else -9.0
        np.testing.assert_array_equal(session.run(table), [[expected] * 3] * 4 + [[1.0] * 3])
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[39\] = 39 is not in \[0, 5\)"):
            session.run(changed, {places: np.where(np.arange(40) == 39, 39, 0)})
    assert called
