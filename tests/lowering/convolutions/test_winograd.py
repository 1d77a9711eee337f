"""Convolutions by Winograd's algorithm: graph text, equal results, and when it is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags
from flowstone.lowering.convolutions import winograd
from flowstone.lowering.passes import EVERY, passes_for
from flowstone.placement.operation_cost import work
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune

RNG = np.random.default_rng(23)
NAME = "convolve_by_winograd"


@pytest.fixture
def everywhere(monkeypatch) -> None:
    """Uses the algorithm wherever it can be."""
    monkeypatch.setattr(winograd, "pays", lambda sizes, *_: sizes.taps > 1 and sizes.count > 1)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


# ---- the algorithm


# ---- the graph


def layer(resource: bool = False, channels: int = 3, filters: int = 5) -> tuple[Any, Any, Any]:
    x = tf.placeholder(tf.float32, [2, 9, 8, channels], name="x")
    initial = tf.random_normal([3, 3, channels, filters], seed=3)
    w = tf.get_variable("w", initializer=initial, use_resource=resource)
    return x, w, tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")


@pytest.mark.needs_onednn
def test_a_convolution_becomes_sums_of_its_filter_and_products(everywhere) -> None:
    x, _, y = layer()
    b = tf.Variable(tf.ones([5]))
    z = tf.nn.relu(tf.nn.bias_add(y, b))
    lines = text([z], [x], "apply_identities", "fuse_biases", NAME)
    assert ops(lines).count("_WinogradFilter") == ops(lines).count("_WinogradConv2D") == 1
    assert not {"Conv2D", "_BiasedConv2D", "BiasAdd", "Relu"} & set(ops(lines))
    (line,) = [line for line in lines if "_WinogradConv2D(" in line]
    assert "activation=Relu" in line.replace("'", "") and line.endswith("# Relu")
    assert "_BiasedConv2D" in ops(text([z], [x], "apply_identities", "fuse_biases"))


@pytest.mark.needs_onednn
def test_a_convolution_and_its_gradients_share_the_sums(everywhere) -> None:
    x, w, y = layer()
    lines = ops(text([*tf.gradients(y * y, [x, w])], [x], "fold_constants", "apply_identities", NAME))
    for name in ("_WinogradFilter", "_WinogradConv2D", "_WinogradConv2DBackpropInput"):
        assert lines.count(name) == 1
    assert lines.count("_WinogradConv2DBackpropFilter") == 1
    assert not [name for name in lines if name.startswith("Conv2D")]


@pytest.mark.needs_onednn
@pytest.mark.parametrize("resource", [False, True])
def test_a_filter_that_nothing_changes_is_summed_and_packed_once(everywhere, resource) -> None:
    x, w, y = layer(resource, 24, 24)
    name = "_PackedResourceWeights" if resource else "_PackedWeights"
    lines = ops(text([y], [x], "apply_identities", NAME, "pack_weights"))
    assert name in lines and "_WinogradFilter" not in lines
    feed, change = {x: values(2, 9, 8, 24)}, w.assign(w * 2.0)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        first = s.run(y, feed)
        for _ in range(20):
            np.testing.assert_allclose(s.run(y, feed), first, rtol=1e-4, atol=1e-4)
        s.run(change)
        for _ in range(20):
            np.testing.assert_allclose(s.run(y, feed), 2 * first, rtol=1e-4, atol=1e-4)


@pytest.mark.needs_onednn
def test_a_small_filter_is_not_packed(everywhere) -> None:
    x, w, y = layer()
    feed, change = {x: values(2, 9, 8, 3)}, w.assign(w * 2.0)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        assert "_WinogradFilter" in s.explain(y, feed)
        first = [s.run(y, feed) for _ in range(20)][-1]
        s.run(change)
        np.testing.assert_allclose(s.run(y, feed), 2 * first, rtol=1e-4, atol=1e-4)


@pytest.mark.needs_onednn
def test_constant_filters_are_packed_too(everywhere, monkeypatch) -> None:
    x = tf.placeholder(tf.float32, [2, 9, 8, 3])
    y = tf.nn.conv2d(x, tf.constant(values(3, 3, 3, 5)), [1, 1, 1, 1], "VALID")
    log = agree(monkeypatch, [y], {x: values(2, 9, 8, 3)}, NAME, fires=1)
    assert "_PackedConstant" in log


# ---- results


@pytest.mark.needs_onednn
def test_training_agrees(monkeypatch, everywhere) -> None:
    x = tf.placeholder(tf.float32, [4, 8, 8, 3])
    h = tf.nn.relu(tf.nn.conv2d(x, tf.Variable(values(3, 3, 3, 8)), [1, 1, 1, 1], "SAME"))
    y = tf.nn.conv2d(h, tf.Variable(0.1 * values(5, 5, 8, 4)), [1, 1, 1, 1], "VALID")
    loss = tf.reduce_mean(tf.square(y))
    train = tf.train.MomentumOptimizer(0.001, 0.9).minimize(loss)
    log = agree(
        monkeypatch,
        [loss, train],
        {x: values(4, 8, 8, 3)},
        NAME,
        fires=5,
        setup=tf.global_variables_initializer(),
    )
    assert log.count(f"{NAME}: ") == 5  # the images of the first layer want no gradient


# ---- when


@pytest.mark.parametrize("reason", ["stride", "dilation", "NCHW", "double", "tanh", "groups", "batch"])
def test_other_convolutions_stay_as_they_are(everywhere, reason) -> None:
    kind = tf.float64 if reason == "double" else tf.float32
    dims = [None if reason == "batch" else 2, 9, 9, 4]
    strides, dilations = [1, 1, 1, 1], [1, 1, 1, 1]
    if reason == "stride":
        strides = [1, 2, 2, 1]
    if reason == "dilation":
        dilations = [1, 2, 2, 1]
    layout = "NCHW" if reason == "NCHW" else "NHWC"
    x = tf.placeholder(kind, dims)
    channels = 2 if reason == "groups" else 9 if reason == "NCHW" else 4
    w = tf.Variable(tf.ones([3, 3, channels, 4], kind))
    y = tf.nn.conv2d(x, w, strides, "SAME", data_format=layout, dilations=dilations)
    if reason == "tanh":
        y = tf.nn.tanh(tf.nn.bias_add(y, tf.Variable(tf.ones([4], kind))))
    lines = ops(text([y], [x], "apply_identities", "fuse_biases", NAME))
    assert not [name for name in lines if name.startswith("_Winograd")]


@pytest.mark.needs_onednn
def test_costs_count_the_multiplications_that_are_left(everywhere) -> None:
    x, w, y = layer()
    gradients = tf.gradients(y * y, [x, w])
    for disabled, share in ((frozenset({NAME}), 1), (frozenset(), 2 / 3)):
        subgraph = run_passes(prune(gradients, [], [x]), EVERY, flags.DISABLED_PASSES | disabled)
        found = [work(node).operations for node in subgraph.nodes if "Conv2D" in node.type]
        assert found == pytest.approx([share * 2 * 2 * 9 * 8 * 5 * 27] * 3)


def test_only_hosts_have_the_kernels() -> None:
    assert NAME in [each.name for each in passes_for("CPU", in_part=True)]
    assert NAME not in [each.name for each in passes_for("GPU", in_part=False)]
