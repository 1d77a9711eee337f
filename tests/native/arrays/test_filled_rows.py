"""Rows without elements, filled by machine code: beside Python's lists, and steps with and without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.arrays import filled_rows
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


def sparse(rows: int, rank: int, dtype: torch.dtype, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    chance = np.random.default_rng(seed)
    firsts = np.sort(chance.integers(0, max(rows, 1), chance.integers(0, 2 * rows + 1)))
    indices = chance.integers(0, 9, (len(firsts), rank))
    indices[:, 0] = firsts
    values = chance.integers(-(2**31), 2**31, len(firsts))
    return torch.from_numpy(indices), torch.from_numpy(values).to(dtype)


def by_lists(indices: Any, values: Any, rows: int, default: Any, keep: Any) -> tuple[list[Any], ...]:
    elements = list(zip(indices.tolist(), values.tolist(), range(len(values))))
    kept = [x for x in elements if keep is None or keep[x[2]]]
    present = {index[0] for index, _, _ in kept}
    rank = indices.shape[1]
    added = [([row] + [0] * (rank - 1), default.item(), -1) for row in range(rows) if row not in present]
    whole = sorted([*kept, *added], key=lambda element: element[0][0])
    found, numbers, origin = (list(each) for each in zip(*whole)) if whole else ([], [], [])
    empty = [row not in present for row in range(rows)]
    places = [origin.index(i) for i in range(len(values))] if keep is None else [x[0] for x in found]
    return found, numbers, empty, places


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.int32, torch.float64], ids=str)
@pytest.mark.parametrize("rows", [0, 1, 2, 7, 60])
def test_rows(rows: int, dtype: torch.dtype, masked: bool) -> None:
    code = filled_rows.FilledRows({4: "i32", 8: "i64"}[dtype.itemsize])
    for rank in (1, 2, 3):
        for seed in range(3):
            indices, values = sparse(rows, rank, dtype, seed)
            keep = torch.from_numpy(np.random.default_rng(9).random(len(values)) < 0.6) if masked else None
            default = torch.tensor(7, dtype=dtype)
            found = code(indices, values, rows, default, keep)
            assert found is not None
            assert found[0].shape == (len(found[1]), rank)
            assert [each.tolist() for each in found] == list(by_lists(indices, values, rows, default, keep))
            assert [each.dtype for each in found[:3]] == [torch.int64, dtype, torch.bool]
            assert found[3].dtype == (torch.int32 if masked else torch.int64)


def test_what_it_is_not_for() -> None:
    code, default = filled_rows.FilledRows("i64"), torch.tensor(0)
    for firsts in ([0, 2, 1], [0, 3], [-1, 0]):
        indices, values = torch.tensor(firsts)[:, None], torch.arange(len(firsts))
        assert code(indices, values, 3, default) is None
        keep = torch.tensor([x in (0, 1) for x in firsts])
        assert code(indices, values, 3, default, keep) is not None  # what is dropped may be anywhere
    assert code(indices, values, 1 << 40, default) is None
    assert filled_rows.filled_rows(torch.uint8) is None
    assert filled_rows.filled_rows(None) is None


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_the_text_is_valid_and_has_its_functions(kind: str) -> None:
    assert shown_functions(filled_rows.filled_rows_code(kind)) == set(filled_rows.PLACES)


@pytest.mark.parametrize("kind", ["float32", "int64", "string", "bool"])
@pytest.mark.parametrize("firsts", [[0, 0, 3, 5], [3, 0, 5, 0], [0, 1, 2, 3, 4, 5], []])
def test_steps_agree(monkeypatch: pytest.MonkeyPatch, kind: str, firsts: list[int]) -> None:
    dtype = tf.as_dtype(kind)
    indices = np.array([[first, i] for i, first in enumerate(firsts)], np.int64).reshape(-1, 2)
    values = np.arange(len(firsts)).astype(bool if kind == "bool" else "U" if kind == "string" else kind)
    results = []
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.sparse_placeholder(dtype, [6, 9])
            found, empty = tf.sparse_fill_empty_rows(x, tf.constant(values.dtype.type(1), dtype))
            parts = (found.indices, found.values, found.dense_shape)
            results.append(session.run([*parts, empty], {x: (indices, values, [6, 9])}))
    for old, new in zip(*results):
        np.testing.assert_array_equal(old, new)
        assert old.dtype == new.dtype


@pytest.mark.parametrize("native", [0, 2])
def test_rows_that_there_are_not(monkeypatch: pytest.MonkeyPatch, native: int) -> None:
    monkeypatch.setattr(flags, "NATIVE", native)
    x = tf.sparse_placeholder(tf.int64, [2, 9])
    found, _ = tf.sparse_fill_empty_rows(x, 0)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\(1, 0\)"):
        session.run(found, {x: ([[0, 0], [2, 0]], [1, 2], [2, 9])})
