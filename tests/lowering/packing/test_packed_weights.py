"""Packed copies of weights live until the weights change, and one serves all plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.containers import Variable
from flowstone.lowering.packing.packed_weights import Packed

RNG = np.random.default_rng(19)


ROWS, TERMS, COLUMNS = 3, 1024, 1024


ENOUGH = 20  # runs until weights are packed


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def layer(resource: bool = False, transposed: bool = False, rows: int = ROWS) -> tuple[Any, Any, Any]:
    x = tf.placeholder(tf.float32, [rows, TERMS], name="x")
    initial = tf.random_normal([TERMS, COLUMNS], seed=3)
    w = tf.get_variable("w", initializer=initial, use_resource=resource)
    return x, w, tf.matmul(x, w, transpose_b=transposed)


def held(session: Any, name: str = "w") -> Variable:
    found = session._target.resources.look_up_or_create("", name, lambda: Variable(name))
    assert found.is_initialized
    return found


def packed(session: Any) -> Any:
    kept = held(session).packed
    return kept.weights if type(kept) is Packed else None


def run_often(session: Any, fetch: Any, feed: Any) -> None:
    for _ in range(ENOUGH):
        session.run(fetch, feed)


CHANGES = {
    "assign": lambda w: w.assign(w * 0.5),
    "add": lambda w: tf.assign_add(w, tf.ones([TERMS, COLUMNS])),
    "rows": lambda w: tf.scatter_update(w, [3], tf.zeros([1, COLUMNS])),
    "slice": lambda w: w[2:5].assign(tf.zeros([3, COLUMNS])),
    "descent": lambda w: tf.train.GradientDescentOptimizer(0.1).minimize(tf.nn.l2_loss(w)),
    "adam": lambda w: tf.train.AdamOptimizer(0.1).minimize(tf.nn.l2_loss(w)),
    "initializer": lambda w: w.initializer,
    "loop": lambda w: tf.while_loop(
        lambda i: i < 3, lambda i: (i + with_control(w.assign_add(tf.ones([TERMS, COLUMNS])).op),), [0]
    ),
}


def with_control(operation: Any) -> Any:
    with tf.control_dependencies([operation]):
        return tf.constant(1)


@pytest.mark.needs_onednn
@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_any_change_lets_the_copy_go(name, resource) -> None:
    x, w, y = layer(resource)
    change = CHANGES[name](w)
    feed = {x: values(ROWS, TERMS)}
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        run_often(s, y, feed)
        assert packed(s) is not None
        s.run(change)
        assert packed(s) is None
        for _ in range(ENOUGH):
            np.testing.assert_allclose(s.run(y, feed), feed[x] @ s.run(w), rtol=1e-3, atol=1e-3)
        assert packed(s) is not None


@pytest.mark.needs_onednn
def test_a_change_that_fails_half_way_lets_the_copy_go() -> None:
    x, w, y = layer()
    rows = tf.placeholder(tf.int32, [2])
    change = tf.scatter_update(w, rows, tf.zeros([2, COLUMNS]))
    feed = {x: values(ROWS, TERMS)}
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        run_often(s, y, feed)
        with pytest.raises(tf.errors.InvalidArgumentError):
            s.run(change, {rows: [0, TERMS]})
        assert packed(s) is None
        np.testing.assert_allclose(s.run(y, feed), feed[x] @ s.run(w), rtol=1e-3, atol=1e-3)


@pytest.mark.needs_onednn
def test_a_copy_begun_before_a_change_is_nobodys() -> None:
    x, w, y = layer()
    change = w.assign(w * 2)
    feed = {x: values(ROWS, TERMS)}
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(y, feed)
        begun = held(s).packed
        s.run(change)
        assert begun is not None and held(s).packed is not begun


def test_uninitialised_weights_are_an_error() -> None:
    x, _, y = layer()
    with tf.Session() as s, pytest.raises(tf.errors.FailedPreconditionError):
        s.run(y, {x: values(ROWS, TERMS)})


@pytest.mark.needs_onednn
@pytest.mark.parametrize("transposed", [False, True])
def test_constants_are_packed_once_for_all_plans(transposed) -> None:
    x = tf.placeholder(tf.float32, [None, TERMS])
    weights = values(TERMS, COLUMNS)
    y = tf.matmul(x, tf.constant(weights), transpose_b=transposed)
    z = tf.nn.relu(y)
    feeds = [{x: values(rows, TERMS)} for rows in (2, 3)]
    with tf.Session() as s:
        for feed in feeds * ENOUGH:
            expected = feed[x] @ (weights.T if transposed else weights)
            np.testing.assert_allclose(s.run(y, feed), expected, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(s.run(z, feed), np.maximum(expected, 0), rtol=1e-3, atol=1e-3)
        assert "_PackedConstant" in s.explain(y, feeds[0])
        environment = next(iter(s.planner.options.environments.values()))
        copies = [held.packed for _, held in environment.states.values()]
        assert [type(copy.weights[0]) for copy in copies] == [torch.Tensor]
