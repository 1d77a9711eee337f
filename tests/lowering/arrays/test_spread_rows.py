"""Gradients of sums over rows of sparse tensors: graph text, and steps without the passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags

SIMPLIFYING = ("fold_constants", "apply_identities", "merge_common_subexpressions")
NAME = "spread_kept_rows"
NAMES = (*SIMPLIFYING, "keep_own_sizes", "pick_rows_directly", "fill_kept_rows", NAME, "sum_repeated_rows")
FED = {
    "some": ([[0, 0], [0, 1], [2, 0], [5, 1]], [1, 2, 1, 3], [6, 2]),
    "not in order": ([[4, 0], [0, 1], [2, 0], [0, 0]], [1, -2, 1, 3], [6, 2]),
    "none": (np.zeros((0, 2)), [], [3, 2]),
}


def trained(combiner: str, dtype: str, safely: bool) -> tuple[Any, Any, Any]:
    start = np.random.default_rng(0).normal(size=(9, 3)).astype(dtype)
    table, ids = tf.Variable(start), tf.sparse_placeholder(tf.int64, [None, None])
    look_up = tf.nn.safe_embedding_lookup_sparse if safely else tf.nn.embedding_lookup_sparse
    rows = look_up(table, ids, None, combiner=combiner)
    loss = tf.reduce_sum(tf.sin(rows) * np.array([1, 2, 3], dtype))
    train = tf.train.AdagradOptimizer(0.5).minimize(loss)
    with tf.control_dependencies([train]):
        return tf.identity(table.read_value() if hasattr(table, "read_value") else table), ids, train


@pytest.mark.parametrize("native", [0, 2])
@pytest.mark.parametrize("fed", FED)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_steps(monkeypatch: pytest.MonkeyPatch, combiner: str, dtype: str, fed: str, native: int) -> None:
    monkeypatch.setattr(flags, "NATIVE", native)
    found, ids, train = trained(combiner, dtype, True)
    feeds = [ids.indices, ids.values, ids.dense_shape]
    names = ops(text([], feeds, *NAMES, targets=[train]))
    assert "_SpreadRows" in names
    assert not {"Unique", "Select", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"} & set(names)
    agree(
        monkeypatch, [found], {ids: FED[fed]}, *NAMES[-2:], fires=(int(combiner == "sum"), 2),
        setup=tf.global_variables_initializer(), tolerance=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize("combiner", ["mean", "sqrtn"])
def test_steps_of_rows_that_are_all_there(monkeypatch: pytest.MonkeyPatch, combiner: str) -> None:
    found, ids, train = trained(combiner, "float32", False)
    feed = {ids: ([[0, 0], [0, 1], [1, 0], [3, 1]], [1, 2, 1, 3], [4, 2])}
    names = ops(text([], [ids.indices, ids.values, ids.dense_shape], *NAMES, targets=[train]))
    assert "_SpreadRows" in names
    assert "Unique" not in names
    agree(
        monkeypatch, [found], feed, "sum_repeated_rows", fires=2, setup=tf.global_variables_initializer(),
        tolerance=1e-6,
    )  # fmt: skip


def test_other_choices_stay() -> None:
    ids, dy = tf.sparse_placeholder(tf.int64, [None, 3]), tf.placeholder(tf.float32, [None, 2])
    feeds = [ids.indices, ids.values, ids.dense_shape, dy]
    filled, empty = tf.sparse_fill_empty_rows(tf.sparse_retain(ids, ids.values > 0), 7)
    rows, mask = tf.cast(filled.indices[:, 0], tf.int32), tf.tile(tf.reshape(empty, [-1, 1]), [1, 2])
    zeros = tf.zeros_like(dy)
    assert "_SpreadRows" in ops(text([tf.gather(tf.where(mask, zeros, dy), rows)], feeds, *NAMES))
    for choice in (tf.where(mask, dy, zeros), tf.where(mask, zeros + 1, dy)):
        assert "_SpreadRows" not in ops(text([tf.gather(choice, rows)], feeds, *NAMES))
