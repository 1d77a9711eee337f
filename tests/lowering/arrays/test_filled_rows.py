"""Elements that a mask keeps, rows that get one, and their sums: graph text, and results without the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags

SIMPLIFYING = ("fold_constants", "apply_identities", "merge_common_subexpressions")
NAME = "fill_kept_rows"
NAMES = (*SIMPLIFYING, "keep_own_sizes", "pick_rows_directly", NAME)
FED = {
    "some": ([[0, 0], [0, 1], [2, 0], [5, 1]], [1, 2, 1, 3], [6, 2]),
    "dropped": ([[0, 0], [0, 1], [2, 0], [5, 1]], [-1, -7, 1, 3], [6, 2]),
    "all": ([[0, 0], [1, 0], [2, 1], [2, 2]], [1, 2, 1, 3], [3, 3]),
    "not in order": ([[4, 0], [0, 1], [2, 0], [0, 0]], [1, -2, 1, 3], [6, 2]),
    "none": (np.zeros((0, 2)), [], [3, 2]),
    "no rows": (np.zeros((0, 2)), [], [0, 2]),
}


@pytest.mark.parametrize("native", [0, 2])
@pytest.mark.parametrize("fed", FED)
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("width", [1, 5])
def test_lookups(monkeypatch: pytest.MonkeyPatch, width: int, combiner: str, fed: str, native: int) -> None:
    monkeypatch.setattr(flags, "NATIVE", native)
    table = tf.constant(np.random.default_rng(0).normal(size=(9, width)).astype(np.float32))
    ids = tf.sparse_placeholder(tf.int64, [None, None])
    found = tf.nn.safe_embedding_lookup_sparse(table, ids, combiner=combiner)
    names = ops(text([found], [ids.indices, ids.values, ids.dense_shape], *NAMES))
    assert {"_KeptRows", "_FilledSums"} <= set(names)
    assert not {"Where", "Select", "SparseFillEmptyRows", "Cast", "Tile", "ConcatV2"} & set(names)
    agree(monkeypatch, [found], {ids: FED[fed]}, NAME, fires=4, tolerance=0)


@pytest.mark.parametrize("kind", ["int64", "float32", "string", "bool"])
@pytest.mark.parametrize("fed", FED)
def test_masks_of_others(monkeypatch: pytest.MonkeyPatch, kind: str, fed: str) -> None:
    dtype, (indices, numbers, shape) = tf.as_dtype(kind), FED[fed]
    x, keep = tf.sparse_placeholder(dtype, [None, None]), tf.placeholder(tf.bool, [None])
    default = np.array(1).astype({"string": "U", "bool": bool}.get(kind, kind))
    filled, empty = tf.sparse_fill_empty_rows(tf.sparse_retain(x, keep), tf.constant(default, dtype))
    found = [filled.indices, filled.values, empty]
    values = np.array(numbers).astype(default.dtype)
    feed = {x: (indices, values, shape), keep: np.arange(len(numbers)) % 2 == 0}
    with tf.Session() as session:
        assert " = _KeptRows(" in str(session.explain(found, feed))
        kept = session.run([*found, filled.dense_shape], feed)
        rows = [row for i, (row, _) in enumerate(indices) if i % 2 == 0]
        assert kept[2].tolist() == [row not in rows for row in range(shape[0])]
        assert kept[0][:, 0].tolist() == sorted([*rows, *set(range(shape[0])) - set(rows)])
        assert len(kept[1]) == len(kept[0])


def test_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    table, ids = tf.constant(np.arange(18.0).reshape(9, 2)), tf.sparse_placeholder(tf.int64, [None, None])
    weights = tf.SparseTensor(ids.indices, tf.placeholder(tf.float64, [None]), ids.dense_shape)
    found = tf.nn.safe_embedding_lookup_sparse(table, ids, weights)
    feed = {ids: FED["some"], weights.values: [1, 0, 2, 0.5]}
    agree(monkeypatch, [found], feed, NAME, fires=3, tolerance=0)


def test_what_stays() -> None:
    x, keep = tf.sparse_placeholder(tf.int64, [None, 3]), tf.placeholder(tf.bool, [None])
    feeds = [x.indices, x.values, x.dense_shape, keep]
    kept = tf.sparse_retain(x, keep)
    places = tf.raw_ops.SparseFillEmptyRows(
        indices=kept.indices, values=kept.values, dense_shape=kept.dense_shape, default_value=np.int64(0)
    )[3]
    assert "_KeptRows" not in ops(text([places], feeds, NAME))
    filled, empty = tf.sparse_fill_empty_rows(kept, 7)
    table, rows = tf.ones([9, 2]), tf.cast(filled.indices[:, 0], tf.int32)
    sums = tf.sparse_segment_sum(table, filled.values, rows)
    chosen = tf.where(tf.tile(tf.reshape(empty, [-1, 1]), [1, 2]), tf.ones_like(sums), sums)
    assert "Select" in ops(text([chosen], feeds, NAME))
    other = tf.sparse_segment_sum(table, filled.values, tf.cast(filled.indices[:, 1], tf.int32))
    chosen = tf.where(tf.tile(tf.reshape(empty, [-1, 1]), [1, 2]), tf.zeros_like(other), other)
    assert "_FilledSums" not in ops(text([chosen], feeds, NAME))


@pytest.mark.parametrize("native", [0, 2])
def test_errors_are_those_of_the_parts(monkeypatch: pytest.MonkeyPatch, native: int) -> None:
    monkeypatch.setattr(flags, "NATIVE", native)
    ids = tf.sparse_placeholder(tf.int64, [None, None])
    found = tf.nn.safe_embedding_lookup_sparse(tf.ones([9, 2]), ids)
    wrong: list[Any] = [
        ([[0, 0], [2, 0]], [1, 2], [2, 9]), ([[0, 0]], [9], [1, 1]), ([[0, 0]], [1], [-1, 1]),
    ]  # fmt: skip
    with tf.Session() as session:
        for each in wrong:
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(found, {ids: each})
        assert session.run(found, {ids: FED["all"]}).tolist() == [[1, 1]] * 3
