"""Rows that are subtracted from a variable: graph text, and the same bits without the pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.rewriting.passes import PASSES

RNG = np.random.default_rng(11)
EVERYTHING = [each.name for each in PASSES]
NAME = "add_negated_rows"


def variable(use_resource: bool, *dims: int) -> Any:
    start = RNG.standard_normal(dims).astype("f")
    return tf.get_variable("v", initializer=start, use_resource=use_resource)


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
    log = agree(monkeypatch, [after], {ids: [1, 3, 1, 0, 1]}, NAME, setup=setup, tolerance=0)
    assert f"{NAME}:" in log


def test_who_waits_for_the_update_waits_for_the_new_one(monkeypatch) -> None:
    v = variable(True, 6, 4)
    ids = tf.placeholder(tf.int32, [2])
    update = v.scatter_sub(tf.IndexedSlices(tf.gather(v, ids) * 2.0, ids))
    with tf.control_dependencies([update]):
        after = v.read_value() + 0.0
    setup = tf.global_variables_initializer()
    assert f"{NAME}:" in agree(monkeypatch, [after], {ids: [1, 3]}, NAME, setup=setup, tolerance=0)


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
