"""Rows by indices that repeat: rounds, and copies of which the last stays, with and without machine code."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.ops.variables.repeated_rows import copy_rows, rounds


@pytest.mark.parametrize("limit", [None, 300, 100_000])  # marks, and sorting where there would be too many
def test_rounds_hold_every_position_once_and_no_index_twice(limit: int | None) -> None:
    assert rounds(torch.randperm(300), limit) is None
    indices = torch.from_numpy(np.random.RandomState(0).randint(0, 300, 500))
    found = rounds(indices, limit)
    assert found is not None
    assert sorted(torch.cat(found).tolist()) == list(range(500))
    assert all(indices[group].unique().numel() == len(group) for group in found)
    assert indices[found[0]].unique().numel() == indices.unique().numel()


@pytest.mark.parametrize("native", [0, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.bool, torch.complex64, torch.bfloat16])
@pytest.mark.parametrize("width", [(), (1,), (3, 5)])
def test_the_last_of_the_rows_for_a_place_stays(
    monkeypatch: pytest.MonkeyPatch, native: int, dtype: torch.dtype, width: tuple[int, ...]
) -> None:
    monkeypatch.setattr(flags, "NATIVE", native)
    random = np.random.RandomState(1)
    indices = torch.from_numpy(random.randint(0, 40, 90))
    updates = torch.from_numpy(random.randint(0, 2 if dtype is torch.bool else 99, (90, *width))).to(dtype)
    table = torch.zeros((40, *width), dtype=dtype)
    expected = table.clone()
    for index, row in zip(indices.tolist(), updates):
        expected[index] = row
    copy_rows(table, indices, updates)
    assert torch.equal(table, expected)
    strided = torch.zeros((40, *width, 2), dtype=dtype)[..., 0]
    copy_rows(strided, indices, updates)
    assert torch.equal(strided, expected)


@pytest.mark.parametrize("native", [0, 2])
@pytest.mark.parametrize("place", [40, -41, 1 << 40])
def test_places_that_are_not_there_are_errors(
    monkeypatch: pytest.MonkeyPatch, native: int, place: int
) -> None:
    monkeypatch.setattr(flags, "NATIVE", native)
    indices = torch.arange(90) % 40
    indices[70] = place
    with pytest.raises(IndexError):
        copy_rows(torch.zeros(40, 2), indices, torch.ones(90, 2))


@pytest.mark.parametrize("indices", [[[0, 0], [3, 1]], [[0, 0], [1, -1]], [[4, 5]]])
def test_tuples_outside_are_named(indices: list[list[int]]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(tf.zeros([3, 2]))
        session.run(variable.initializer)
        fed = tf.placeholder(tf.int32, [None, 2])
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not index into param shape") as raised:
            session.run(tf.scatter_nd_update(variable, fed, tf.zeros([len(indices)])), {fed: indices})
    place = len(indices) - 1
    assert f"indices[{place}] = {indices[place]}" in str(raised.value)
