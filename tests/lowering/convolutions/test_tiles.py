"""Convolutions in tiles: graph text, equal results, and when they are chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags
from flowstone.lowering.convolutions import tiles
from flowstone.native.codegen import host
from flowstone.native.networks import tile_kernels

RNG = np.random.default_rng(23)
NAME = "convolve_in_tiles"

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())


@pytest.fixture(autouse=True)
def native(monkeypatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 2)


@pytest.fixture
def everywhere(monkeypatch) -> None:
    """Uses tiles wherever they can be."""
    monkeypatch.setattr(tiles, "pays", lambda found, *_: found.computed.taps in tile_kernels.TAPS)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def sides_of(padding: str, taps: int) -> Any:
    """The explicit padding of a test, or the padding itself."""
    return [[0, 0], [taps // 2, taps - 1], [1, 0], [0, 0]] if padding == "explicit" else padding


def layer(resource: bool = False) -> tuple[Any, Any, Any]:
    x = tf.placeholder(tf.float32, [2, 9, 8, 6], name="x")
    w = tf.get_variable("w", initializer=tf.random_normal([3, 3, 6, 5], seed=3), use_resource=resource)
    return x, w, tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")


# ---- the graph


def test_a_convolution_becomes_a_filter_and_a_convolution_in_tiles(everywhere) -> None:
    x, _, y = layer()
    z = tf.nn.relu(tf.nn.bias_add(y, tf.Variable(tf.ones([5]))))
    lines = text([z], [x], "apply_identities", "fuse_biases", NAME)
    assert ops(lines).count("_TiledFilter") == ops(lines).count("_TiledConv2D") == 1
    assert not {"Conv2D", "_BiasedConv2D", "BiasAdd", "Relu"} & set(ops(lines))
    (line,) = [line for line in lines if "_TiledConv2D(" in line]
    assert "activation=Relu" in line.replace("'", "") and line.endswith("# Relu")
    assert "_BiasedConv2D" in ops(text([z], [x], "apply_identities", "fuse_biases"))


def test_gradients_are_convolved_in_tiles(everywhere) -> None:
    x, w, y = layer()
    lines = ops(text([*tf.gradients(y * y, [x, w])], [x], "fold_constants", "apply_identities", NAME))
    for name in ("_TiledFilter", "_TiledConv2D", "_TiledConv2DBackpropInput", "_TiledConv2DBackpropFilter"):
        assert lines.count(name) == 1
    assert not [name for name in lines if name.startswith("Conv2D")]


@pytest.mark.parametrize("resource", [False, True])
def test_a_filter_that_nothing_changes_is_transformed_once(everywhere, set_profile, resource) -> None:
    x = tf.placeholder(tf.float32, [2, 9, 8, 64])
    w = tf.get_variable("w", initializer=tf.random_normal([3, 3, 64, 64], seed=3), use_resource=resource)
    y = tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    name = "_PackedResourceWeights" if resource else "_PackedWeights"
    lines = ops(text([y], [x], "apply_identities", NAME, "pack_weights"))
    assert name in lines and "_TiledFilter" not in lines
    feed, change = {x: values(2, 9, 8, 64)}, w.assign(w * 2.0)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        first = s.run(y, feed)
        for _ in range(20):
            np.testing.assert_array_equal(s.run(y, feed), first)
        s.run(change)
        for _ in range(20):
            np.testing.assert_allclose(s.run(y, feed), 2 * first, rtol=1e-4, atol=1e-3)


# ---- results


@pytest.mark.parametrize("padding", ["SAME", "VALID", "explicit"])
@pytest.mark.parametrize("taps", [2, 3, 4, 5])
def test_results_and_gradients_agree(monkeypatch, everywhere, padding, taps) -> None:
    x = tf.placeholder(tf.float32, [3, 9, 11, 4])
    w = tf.Variable(values(taps, taps, 4, 6))
    convolved = tf.nn.conv2d(x, w, [1, 1, 1, 1], sides_of(padding, taps))
    y = tf.nn.relu(tf.nn.bias_add(convolved, tf.Variable(values(6))))
    weights = tf.constant(values(*y.shape.as_list()))
    fetches = [y, *tf.gradients(convolved * weights, [x, w])]
    setup = tf.global_variables_initializer()
    agree(monkeypatch, fetches, {x: values(3, 9, 11, 4)}, NAME, fires=3, setup=setup)


@pytest.mark.parametrize("padding", ["SAME", "VALID", "explicit"])
@pytest.mark.parametrize("taps", [3, 4, 5, 6, 7, 9])
@pytest.mark.parametrize("size", [(11, 14), (12, 13)])
def test_windows_that_skip_every_other_position_agree(monkeypatch, everywhere, padding, taps, size) -> None:
    x = tf.placeholder(tf.float32, [3, *size, 4])
    w = tf.Variable(values(taps, taps, 4, 6))
    convolved = tf.nn.conv2d(x, w, [1, 2, 2, 1], sides_of(padding, taps))
    y = tf.nn.relu(tf.nn.bias_add(convolved, tf.Variable(values(6))))
    weights = tf.constant(values(*y.shape.as_list()))
    fetches = [y, *tf.gradients(convolved * weights, [x, w])]
    setup = tf.global_variables_initializer()
    agree(monkeypatch, fetches, {x: values(3, *size, 4)}, NAME, fires=3, setup=setup, tolerance=1e-3)


def test_transposed_convolutions_agree(monkeypatch, everywhere) -> None:
    x, w = tf.placeholder(tf.float32, [2, 7, 7, 6]), tf.Variable(values(5, 5, 4, 6))
    y = tf.nn.conv2d_transpose(x, w, [2, 14, 14, 4], [1, 2, 2, 1], "SAME")
    fetches = [y, *tf.gradients(y * tf.constant(values(2, 14, 14, 4)), [x, w])]
    setup = tf.global_variables_initializer()
    agree(monkeypatch, fetches, {x: values(2, 7, 7, 6)}, NAME, fires=3, setup=setup, tolerance=1e-3)


def test_training_agrees(monkeypatch, everywhere) -> None:
    x = tf.placeholder(tf.float32, [4, 8, 8, 3])
    h = tf.nn.relu(tf.nn.conv2d(x, tf.Variable(values(3, 3, 3, 8)), [1, 1, 1, 1], "SAME"))
    y = tf.nn.conv2d(h, tf.Variable(0.1 * values(5, 5, 8, 4)), [1, 1, 1, 1], "VALID")
    loss = tf.reduce_mean(tf.square(y))
    train = tf.train.MomentumOptimizer(0.001, 0.9).minimize(loss)
    setup = tf.global_variables_initializer()
    # The images of the first layer want no gradient.
    agree(monkeypatch, [loss, train], {x: values(4, 8, 8, 3)}, NAME, fires=5, setup=setup)


# ---- when


@pytest.mark.parametrize(
    "reason",
    ["stride", "strides", "dilation", "NCHW", "double", "tanh", "groups", "batch", "oblong", "seven"],
)
def test_other_convolutions_stay_as_they_are(everywhere, reason) -> None:
    kind = tf.float64 if reason == "double" else tf.float32
    strides = {"stride": [1, 3, 3, 1], "strides": [1, 1, 2, 1]}.get(reason, [1, 1, 1, 1])
    dilations = [1, 2, 2, 1] if reason == "dilation" else [1, 1, 1, 1]
    x = tf.placeholder(kind, [None if reason == "batch" else 2, 9, 9, 4])
    channels = 2 if reason == "groups" else 9 if reason == "NCHW" else 4
    window = {"oblong": (3, 5), "seven": (7, 7)}.get(reason, (3, 3))
    w = tf.Variable(tf.ones([*window, channels, 4], kind))
    layout = "NCHW" if reason == "NCHW" else "NHWC"
    y = tf.nn.conv2d(x, w, strides, "SAME", data_format=layout, dilations=dilations)
    if reason == "tanh":
        y = tf.nn.tanh(tf.nn.bias_add(y, tf.Variable(tf.ones([4], kind))))
    lines = ops(text([y], [x], "apply_identities", "fuse_biases", NAME))
    assert not [name for name in lines if name.startswith("_Tiled")]


def test_without_machine_code_there_are_no_tiles(monkeypatch, everywhere) -> None:
    monkeypatch.setattr(flags, "NATIVE", 0)
    x, _, y = layer()
    assert "_TiledConv2D" not in ops(text([y], [x], NAME))
