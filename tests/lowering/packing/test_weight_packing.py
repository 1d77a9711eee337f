"""Packed weights: graph text, equal results, when the copy is made and let go, and where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework.containers import Variable
from flowstone.lowering.packing.packed_weights import Packed

RNG = np.random.default_rng(19)
ROWS, TERMS, COLUMNS = 3, 1024, 1024
ENOUGH = 20  # runs until weights are packed


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def layer(resource: bool = False, turned: bool = False, rows: int = ROWS) -> tuple[Any, Any, Any]:
    x = tf.placeholder(tf.float32, [rows, TERMS], name="x")
    initial = tf.random_normal([TERMS, COLUMNS], seed=3)
    w = tf.get_variable("w", initializer=initial, use_resource=resource)
    return x, w, tf.matmul(x, w, transpose_b=turned)


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


@pytest.mark.needs_onednn
@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("resource", [False, True])
def test_products_take_packed_weights(resource, turned, rows) -> None:
    x, w, y = layer(resource, turned, rows)
    bias = tf.Variable(tf.ones([COLUMNS]))
    z = tf.nn.tanh(tf.nn.bias_add(y, bias) * 0.01)
    lines = ops(text([z], [x], "apply_identities", "fuse_biases", "pack_weights"))
    assert f"_Packed{'Resource' if resource else ''}Weights" in lines and "_PackedMatMul" in lines
    assert not {"MatMul", "_FusedMatMul", "BiasAdd"} & set(lines)
    feed = {x: values(rows, TERMS)}
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        weights = s.run(w).T if turned else s.run(w)
        expected = np.tanh((feed[x] @ weights + 1) * 0.01)
        for _ in range(ENOUGH):
            np.testing.assert_allclose(s.run(z, feed), expected, rtol=1e-4, atol=1e-4)
        assert packed(s) is not None


@pytest.mark.needs_onednn
@pytest.mark.parametrize("activation", [tf.nn.relu, tf.nn.tanh, tf.nn.sigmoid])
def test_activations_stay_in_the_product(monkeypatch, activation) -> None:
    x, _, y = layer()
    z = activation(tf.nn.bias_add(y, tf.Variable(tf.ones([COLUMNS]))))
    log = agree(
        monkeypatch,
        [z],
        {x: values(ROWS, TERMS)},
        "pack_weights",
        fires=1,
        setup=tf.global_variables_initializer(),
    )
    assert "pack_weights: " in log and "_PackedMatMul" in log


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


@pytest.mark.needs_onednn
def test_both_orientations_of_one_variable() -> None:
    x, w, y = layer()
    z = tf.matmul(x, w, transpose_b=True)
    feed = {x: values(ROWS, TERMS)}
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        weights = s.run(w)
        for _ in range(ENOUGH):
            np.testing.assert_allclose(s.run(y, feed), feed[x] @ weights, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(s.run(z, feed), feed[x] @ weights.T, rtol=1e-3, atol=1e-3)


def test_uninitialised_weights_are_an_error() -> None:
    x, _, y = layer()
    with tf.Session() as s, pytest.raises(tf.errors.FailedPreconditionError):
        s.run(y, {x: values(ROWS, TERMS)})


@pytest.mark.needs_onednn
def test_traced_steps_take_packed_weights() -> None:
    x, _, y = layer()
    feed = {x: values(ROWS, TERMS)}
    metadata = tf.RunMetadata()
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        run_often(s, y, feed)
        s.run(y, feed, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), metadata)
    names = [node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats]
    assert "MatMul" in names and "MatMul/weights" in names


@pytest.mark.needs_onednn
@pytest.mark.parametrize("turned", [False, True])
def test_constants_are_packed_once_for_all_plans(turned) -> None:
    x = tf.placeholder(tf.float32, [None, TERMS])
    weights = values(TERMS, COLUMNS)
    y = tf.matmul(x, tf.constant(weights), transpose_b=turned)
    z = tf.nn.relu(y)
    feeds = [{x: values(rows, TERMS)} for rows in (2, 3)]
    with tf.Session() as s:
        for feed in feeds * ENOUGH:
            expected = feed[x] @ (weights.T if turned else weights)
            np.testing.assert_allclose(s.run(y, feed), expected, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(s.run(z, feed), np.maximum(expected, 0), rtol=1e-3, atol=1e-3)
        assert "_PackedConstant" in s.explain(y, feeds[0])
        environment = next(iter(s.planner.options.environments.values()))
        copies = [held.packed for _, held in environment.states.values()]
        assert [type(copy.weights[0]) for copy in copies] == [torch.Tensor]


@pytest.mark.needs_onednn
@pytest.mark.parametrize("reason", ["many rows", "changed", "small", "narrow rows", "fed", "double"])
def test_other_products_stay_as_they_are(reason) -> None:
    kind = tf.float64 if reason == "double" else tf.float32
    columns = {"small": 512, "narrow rows": 1100}.get(reason, COLUMNS)
    x = tf.placeholder(kind, [100 if reason == "many rows" else ROWS, TERMS])
    w = tf.Variable(tf.ones([TERMS, columns], kind))
    weights = tf.placeholder(kind, w.shape) if reason == "fed" else w
    y = tf.matmul(x, weights)
    change = w.assign(w * 2).op if reason == "changed" else tf.no_op()
    feed = {x: np.ones(x.shape.as_list())} | (
        {weights: np.ones(w.shape.as_list())} if reason == "fed" else {}
    )
    with tf.Session() as s:
        s.run(w.initializer)
        assert "pack_weights" not in s.explain([y, change], feed)
        np.testing.assert_allclose(s.run([y, change], feed)[0][0, 0] % TERMS, 0)


# ---- filters


def convolved(window: int = 3, stride: int = 1, padding: Any = "SAME", resource: bool = False) -> Any:
    x = tf.placeholder(tf.float32, [2, 31, 32, 64], name="x")
    initial = tf.random_normal([window, window, 64, 72], stddev=0.1, seed=5)
    w = tf.get_variable("w", initializer=initial, use_resource=resource)
    y = tf.nn.conv2d(x, w, [1, stride, stride, 1], padding)
    return x, w, tf.nn.relu(tf.nn.bias_add(y, tf.Variable(tf.ones([72]))))


@pytest.mark.needs_onednn
@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [1, 0], [2, 1], [0, 0]]])
def test_filters_are_packed(monkeypatch, resource, window, stride, padding) -> None:
    x, w, y = convolved(window, stride, padding, resource)
    feed = {x: values(2, 31, 32, 64)}
    setup = tf.global_variables_initializer()
    change = w.assign(w * 2.0)
    with tf.Session() as s:
        s.run(setup)
        first = s.run(y, feed)
        run_often(s, y, feed)
        np.testing.assert_allclose(s.run(y, feed), first, rtol=1e-4, atol=1e-4)
        assert packed(s) is not None
        s.run(change)
        assert packed(s) is None
        changed = s.run(y, feed)
        assert np.abs(changed - first).max() > 0.1
        run_often(s, y, feed)
        np.testing.assert_allclose(s.run(y, feed), changed, rtol=1e-4, atol=1e-4)
    log = agree(monkeypatch, [y], feed, "pack_filters", fires=1, setup=setup)
    assert "pack_filters: " in log and "packed=True" in log


def test_filters_that_a_step_trains_are_not_packed() -> None:
    x, _, y = convolved()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        assert "pack_filters" not in s.explain([y, train], {x: values(2, 31, 32, 64)})
