"""Updates of rows: graph text, and the same values without the passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework.declarations.operation import F
from flowstone.lowering.passes import EVERY

RNG = np.random.default_rng(11)
EVERYTHING = [each.name for each in EVERY]
NAME = "add_negated_rows"


def variable(use_resource: bool, *dims: int) -> Any:
    start = RNG.standard_normal(dims).astype("f")
    return tf.get_variable("v", initializer=start, use_resource=use_resource)


@pytest.mark.by_aten
@pytest.mark.parametrize(("rate", "negated"), [(1.0, True), (0.3, False)])
def test_descent_of_gathered_rows(monkeypatch, rate, negated) -> None:
    v = variable(False, 6, 4)
    ids = tf.placeholder(tf.int32, [5])
    loss = tf.reduce_sum(tf.sigmoid(tf.gather(v, ids)))
    train = tf.train.GradientDescentOptimizer(rate).minimize(loss)
    names = ops(text([loss], [ids], *EVERYTHING, targets=[train]))
    assert "ScatterAdd" in names and "ScatterSub" not in names
    assert ("Neg" in names) == negated
    with tf.control_dependencies([train]):
        after = tf.identity(v)
    setup = tf.global_variables_initializer()
    log = agree(monkeypatch, [after], {ids: [1, 3, 1, 0, 1]}, NAME, fires=1, setup=setup, tolerance=0)
    assert f"{NAME}:" in log


def test_who_waits_for_the_update_waits_for_the_new_one(monkeypatch) -> None:
    v = variable(True, 6, 4)
    ids = tf.placeholder(tf.int32, [2])
    update = v.scatter_sub(tf.IndexedSlices(tf.gather(v, ids) * 2.0, ids))
    with tf.control_dependencies([update]):
        after = v.read_value() + 0.0
    setup = tf.global_variables_initializer()
    assert f"{NAME}:" in agree(monkeypatch, [after], {ids: [1, 3]}, NAME, fires=1, setup=setup, tolerance=0)


def test_rows_that_others_take_are_subtracted_as_they_are() -> None:
    v = variable(False, 6, 4)
    ids, fed = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.float32, [2, 4])
    rows = tf.square(fed)
    for updates in (fed, rows, tf.ones([2, 4])):
        scattered = tf.scatter_sub(v, ids, updates)
        assert "ScatterSub" in ops(text([scattered, rows], [ids, fed], *EVERYTHING))
    vector = tf.get_variable("vector", [6])
    scattered = tf.scatter_sub(vector, ids, tf.square(fed[:, 0]))
    assert "ScatterSub" in ops(text([scattered], [ids, fed], *EVERYTHING))


def _descend(optimizer: str, use_resource: bool, rows: int) -> tuple[Any, ...]:
    table = variable(use_resource, rows, 4)
    ids = tf.placeholder(tf.int32, [6])
    loss = tf.reduce_sum(
        tf.sigmoid(tf.gather(table, ids)) * tf.constant(RNG.standard_normal((6, 4)), tf.float32)
    )
    arguments = {"MomentumOptimizer": (0.1, 0.9)}.get(optimizer, (0.1,))
    return table, ids, loss, getattr(tf.train, optimizer)(*arguments).minimize(loss)


OPTIMIZERS = ["Adadelta", "Adagrad", "Ftrl", "Momentum", "ProximalAdagrad", "RMSProp"]


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("rows", [7, 40_000])  # a step on all of a small variable, on rows of a large one
def test_repeated_rows_are_summed_by_the_update(monkeypatch, optimizer, use_resource, rows) -> None:
    table, ids, loss, train = _descend(optimizer + "Optimizer", use_resource, rows)
    lines = text([loss], [ids], "sum_repeated_rows", targets=[train])
    assert not {"Unique", "UnsortedSegmentSum"}.intersection(ops(lines))
    assert any("sum_repeated=True" in line and "SparseApply" in line for line in lines)
    with tf.control_dependencies([train]):
        after = tf.identity(table.read_value() if use_resource else table)
    setup = tf.global_variables_initializer()
    feed = {ids: [1, 3, 1, 0, 1, 3]}
    assert "sum_repeated_rows:" in agree(
        monkeypatch, [after], feed, "sum_repeated_rows", fires=1, setup=setup, tolerance=1e-6
    )


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_sparse_lookups_are_summed_by_the_update(monkeypatch, weighted, combiner) -> None:
    table, ids = variable(False, 7, 4), tf.sparse_placeholder(tf.int64, [None, None])
    weights = tf.SparseTensor(ids.indices, tf.placeholder(tf.float32, [None]), ids.dense_shape)
    rows = tf.nn.embedding_lookup_sparse(table, ids, weights if weighted else None, combiner=combiner)
    train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.sigmoid(rows)))
    feeds = [ids.indices, ids.values, ids.dense_shape, weights.values]
    assert "Unique" not in ops(text([], feeds, *EVERYTHING, targets=[train]))
    with tf.control_dependencies([train]):
        after = tf.identity(table)
    feed = {ids: ([[0, 0], [0, 1], [1, 0], [3, 1]], [1, 3, 1, 0], [4, 2]), weights.values: [1, 2, 0.5, 3]}
    agree(
        monkeypatch, [after], feed, "sum_repeated_rows", fires=2, setup=tf.global_variables_initializer(),
        tolerance=1e-6,
    )  # fmt: skip


def test_an_index_outside_is_an_error_of_the_update() -> None:
    table = variable(False, 7, 4)
    ids, rows = tf.placeholder(tf.int32, [2]), tf.placeholder(tf.float32, [2, 4])
    optimizer = tf.train.AdagradOptimizer(0.1)
    train = optimizer.apply_gradients([(tf.IndexedSlices(rows, ids, [7, 4]), table)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(table)
        for wrong in (7, -1):
            with pytest.raises(tf.errors.InvalidArgumentError, match=rf"= {wrong} is not in \[0, 7\)"):
                session.run(train, {ids: [0, wrong], rows: np.ones((2, 4))})
        np.testing.assert_array_equal(session.run(table), before)


def test_sums_that_others_take_stay() -> None:
    table = variable(False, 7, 4)
    ids, rows = tf.placeholder(tf.int32, [6]), tf.placeholder(tf.float32, [6, 4])
    distinct, places = tf.unique(ids)
    summed = tf.unsorted_segment_sum(rows, places, tf.shape(distinct)[0])
    accum = tf.Variable(tf.ones([7, 4]))
    update = F.SparseApplyAdagrad(table._ref(), accum._ref(), 0.1, summed, distinct)
    assert "Unique" not in ops(text([update], [ids, rows], *EVERYTHING))
    assert "Unique" in ops(text([update, summed], [ids, rows], *EVERYTHING))
    other = tf.unsorted_segment_sum(rows, places, 7)[: tf.shape(distinct)[0]]
    update = F.SparseApplyAdagrad(table._ref(), accum._ref(), 0.1, other, distinct)
    assert "Unique" in ops(text([update], [ids, rows], *EVERYTHING))


def test_an_update_that_comes_after_a_change_of_its_rows_keeps_their_sum() -> None:
    v, rows = variable(False, 6, 4), tf.get_variable("rows", [3, 4], initializer=tf.ones_initializer())
    slots = tf.get_variable("slots", [6, 4], initializer=tf.ones_initializer())
    ids = tf.placeholder(tf.int32, [3])
    distinct, places = tf.unique(ids)
    total = tf.math.unsorted_segment_sum(rows, places, tf.shape(distinct)[0])
    with tf.control_dependencies([total]):
        change = tf.assign(rows, tf.zeros([3, 4]))
    with tf.control_dependencies([change]):
        update = tf.raw_ops.SparseApplyAdagrad(var=v, accum=slots, lr=1.0, grad=total, indices=distinct)
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    before = session.run(v)
    session.run(update.op, {ids: [1, 2, 1]})
    np.testing.assert_allclose(before[1] - session.run(v)[1], 2 / np.sqrt(5), rtol=1e-6)
