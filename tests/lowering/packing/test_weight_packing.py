"""Packed weights: graph text, equal results, when the copy is made and let go, and where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework.declarations.containers import Variable
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_profiles import AMD, INTEL, ZEN5
from flowstone.lowering.convolutions import fused_convolutions
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


@pytest.mark.needs_onednn
@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("resource", [False, True])
def test_products_take_packed_weights(resource, transposed, rows) -> None:
    x, w, y = layer(resource, transposed, rows)
    bias = tf.Variable(tf.ones([COLUMNS]))
    z = tf.nn.tanh(tf.nn.bias_add(y, bias) * 0.01)
    lines = ops(text([z], [x], "apply_identities", "fuse_biases", "pack_weights"))
    assert f"_Packed{'Resource' if resource else ''}Weights" in lines and "_PackedMatMul" in lines
    assert not {"MatMul", "_FusedMatMul", "BiasAdd"} & set(lines)
    feed = {x: values(rows, TERMS)}
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        weights = s.run(w).T if transposed else s.run(w)
        expected = np.tanh((feed[x] @ weights + 1) * 0.01)
        for _ in range(ENOUGH):
            np.testing.assert_allclose(s.run(z, feed), expected, rtol=1e-4, atol=1e-4)
        assert packed(s) is not None


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


def convolved(
    window: int = 3, stride: int = 1, padding: Any = "SAME", resource: bool = False, has_bias: bool = True
) -> Any:
    x = tf.placeholder(tf.float32, [2, 31, 32, 64], name="x")
    initial = tf.random_normal([window, window, 64, 72], stddev=0.1, seed=5)
    w = tf.get_variable("w", initializer=initial, use_resource=resource)
    y = tf.nn.conv2d(x, w, [1, stride, stride, 1], padding)
    return x, w, tf.nn.relu(tf.nn.bias_add(y, tf.Variable(tf.ones([72])))) if has_bias else y


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


@pytest.mark.needs_onednn
@pytest.mark.parametrize(("window", "stride"), [(1, 1), (1, 2), (3, 2)])
def test_filters_without_a_bias_are_packed(monkeypatch, window, stride) -> None:
    x, _, y = convolved(window, stride, has_bias=False)
    feed, setup = {x: values(2, 31, 32, 64)}, tf.global_variables_initializer()
    with tf.Session() as s:
        s.run(setup)
        first = s.run(y, feed)
        run_often(s, y, feed)
        assert packed(s) is not None
        np.testing.assert_allclose(s.run(y, feed), first, rtol=1e-4, atol=1e-4)
    log = agree(monkeypatch, [y], feed, "pack_filters", fires=1, setup=setup)
    assert "packed=True" in log


@pytest.mark.needs_onednn
@pytest.mark.parametrize("profile", [ZEN5, AMD, INTEL])
@pytest.mark.parametrize(("side", "window", "stride"), [(6, 1, 1), (12, 1, 2), (31, 1, 1), (8, 3, 2)])
def test_filters_are_packed_for_the_convolution_that_comes(
    monkeypatch, profile, side, window, stride
) -> None:
    """Each order of a filter suits one convolution: others put it into theirs in every step."""
    monkeypatch.setattr(machine.current(), "profile", profile)
    packed_for, came = [], []
    convolve, reordered = fused_convolutions._convolve, fused_convolutions.reordered_filter

    def seen_convolve(x: Any, filters: Any, bias: Any, padding: Any, strides: Any, *rest: Any) -> Any:
        came.append((tuple(padding), tuple(strides), tuple(x.shape)))
        return convolve(x, filters, bias, padding, strides, *rest)

    def seen_reordered(filters: Any, padding: Any, strides: Any, dilations: Any, dims: Any) -> Any:
        packed_for.append((tuple(padding), tuple(strides), tuple(dims)))
        return reordered(filters, padding, strides, dilations, dims)

    monkeypatch.setattr(fused_convolutions, "_convolve", seen_convolve)
    monkeypatch.setattr(fused_convolutions, "reordered_filter", seen_reordered)
    x = tf.placeholder(tf.float32, [8, side, side, 256], name="x")
    w = tf.get_variable("w", initializer=tf.random_normal([window, window, 256, 272], stddev=0.1, seed=5))
    y = tf.nn.bias_add(tf.nn.conv2d(x, w, [1, stride, stride, 1], "SAME"), tf.ones([272]))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        run_often(s, y, {x: values(8, side, side, 256)})
    assert packed_for == came[-1:]


@pytest.mark.parametrize("has_bias", [True, False])
def test_filters_that_a_step_trains_are_not_packed(has_bias) -> None:
    x, _, y = convolved(has_bias=has_bias)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        assert "pack_filters" not in s.explain([y, train], {x: values(2, 31, 32, 64)})
