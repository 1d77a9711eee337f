"""Rows by way of distinct indices: graph text, and the same values without the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text

NAME = "pick_rows_directly"


def picked(table: Any, ids: Any) -> tuple[Any, Any]:
    distinct, places = tf.unique(ids)
    return tf.gather(table, distinct), places


@pytest.mark.parametrize("indices", ["int32", "int64"])
@pytest.mark.parametrize("kind", ["sum", "mean", "sqrt_n"])
def test_sums_of_segments(monkeypatch: pytest.MonkeyPatch, kind: str, indices: str) -> None:
    table, ids = tf.placeholder(tf.float32, [7, 3]), tf.placeholder(indices, [6])
    rows, places = picked(table, ids)
    total = getattr(tf, f"sparse_segment_{kind}")(rows, places, [0, 0, 1, 3, 3, 3])
    assert "Unique" not in ops(text([total], [table, ids], NAME))
    feed = {table: np.random.rand(7, 3), ids: [5, 1, 5, 0, 0, 6]}
    agree(monkeypatch, [total], feed, NAME, fires=1, tolerance=0)


def test_rows_that_are_gathered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table, ids = tf.placeholder(tf.float32, [7, 3]), tf.placeholder(tf.int64, [6])
    rows = tf.gather(*picked(table, ids))
    assert ops(text([rows], [table, ids], NAME)).count("GatherV2") == 1
    agree(
        monkeypatch,
        [rows],
        {table: np.random.rand(7, 3), ids: [5, 1, 5, 0, 0, 6]},
        NAME,
        fires=1,
        tolerance=0,
    )


@pytest.mark.parametrize("use_resource", [False, True])
def test_sparse_lookups_and_their_updates_list_nothing(use_resource: bool) -> None:
    table = tf.get_variable("table", [7, 3], use_resource=use_resource)
    ids = tf.sparse_placeholder(tf.int64, [4, 7])
    found = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
    train = tf.train.FtrlOptimizer(0.1).minimize(tf.reduce_sum(tf.sin(found)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feed = {ids: ([[0, 0], [0, 1], [2, 0], [3, 0]], [5, 1, 5, 0], [4, 7])}
        plan = str(session.explain([train, found], feed))
    assert ("Unique(" in plan) == use_resource


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_gradients_of_tables_that_are_computed(combiner: str) -> None:
    given, ids = tf.placeholder(tf.float32, [7, 3]), tf.placeholder(tf.int64, [4])
    table = tf.exp(given)
    where = tf.SparseTensor(tf.constant([[0, 0], [0, 1], [2, 0], [3, 0]], tf.int64), ids, [4, 7])
    found = tf.nn.embedding_lookup_sparse(table, where, None, combiner=combiner)
    gradients = tf.gradients(tf.reduce_sum(tf.sin(found)), [table, given])
    assert isinstance(gradients[0], tf.IndexedSlices)
    feed = {given: np.random.rand(7, 3), ids: [5, 1, 5, 0]}
    with tf.Session() as session:
        plan = str(session.explain([found, gradients[1]], feed))
        values, flows = session.run([found, gradients[1]], feed)
    assert "Unique(" not in plan
    rows = np.exp(feed[given])
    scale = {"sum": 1, "mean": 1 / 2, "sqrtn": 1 / np.sqrt(2)}[combiner]
    total = scale * (rows[5] + rows[1])
    np.testing.assert_allclose(values, [total, np.zeros(3), rows[5], rows[0]], rtol=1e-5)
    expected = np.zeros([7, 3])
    expected[5] = np.cos(total) * scale + np.cos(rows[5])
    expected[1], expected[0] = np.cos(total) * scale, np.cos(rows[0])
    np.testing.assert_allclose(flows, expected * rows, rtol=1e-4)


def test_rows_of_which_only_the_number_is_wanted_are_not_picked() -> None:
    table, ids = tf.placeholder(tf.float32, [7, 3]), tf.placeholder(tf.int64, [4])
    rows, _ = picked(table, ids)
    count = tf.gather(tf.shape(rows), 0)
    assert "GatherV2" not in ops(text([count], [table, ids], NAME))
    with tf.Session() as session:
        assert session.run(count, {table: np.zeros([7, 3]), ids: [5, 1, 5, 0]}) == 3


def test_other_places_stay() -> None:
    table, ids = tf.placeholder(tf.float32, [7, 3]), tf.placeholder(tf.int64, [6])
    rows, _ = picked(table, ids)
    _, others = tf.unique(ids + 1)
    kept = [tf.gather(rows, others), tf.sparse_segment_sum(rows, others, [0, 0, 1, 1, 1, 1])]
    assert "Unique" in ops(text(kept, [table, ids], NAME))
