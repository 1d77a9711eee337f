"""Convolutions with few results a position: graph text, equal results, and when they are chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.lowering.convolutions import spreading

RNG = np.random.default_rng(31)
NAME = "spread_convolutions"
pytestmark = pytest.mark.both_ways


@pytest.fixture(autouse=True)
def everywhere(monkeypatch) -> None:
    """Spreads wherever it can be."""
    monkeypatch.setattr(spreading, "pays", lambda *_: True)
    monkeypatch.setattr(spreading, "gradient_pays", lambda found: True)


def values(*dims: int, kind: Any = np.float32) -> Any:
    return RNG.standard_normal(dims).astype(kind)


def test_a_convolution_its_bias_and_activation_are_one_node() -> None:
    x, w = tf.placeholder(tf.float32, [2, 9, 8, 6]), tf.Variable(values(3, 3, 6, 2))
    y = tf.nn.tanh(tf.nn.bias_add(tf.nn.conv2d(x, w, [1] * 4, "SAME"), tf.Variable(tf.ones([2]))))
    lines = text([y], [x], "apply_identities", "fuse_biases", NAME)
    assert ops(lines).count("_SpreadConv2D") == 1
    assert not {"Conv2D", "_BiasedConv2D", "BiasAdd", "Tanh"} & set(ops(lines))
    (line,) = [line for line in lines if "_SpreadConv2D(" in line]
    assert "reversed=True" in line and "activation='Tanh'" in line


@pytest.mark.parametrize("activation", [tf.identity, tf.nn.relu, tf.nn.sigmoid])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [2, 2], [0, 0], [0, 0]]])
@pytest.mark.parametrize("taps", [(3, 3), (5, 1)])
def test_results_and_gradients_agree(monkeypatch, padding, taps, activation) -> None:
    x = tf.placeholder(tf.float32, [3, 9, 11, 4])
    w = tf.Variable(values(*taps, 4, 3))
    y = activation(tf.nn.bias_add(tf.nn.conv2d(x, w, [1] * 4, padding), tf.Variable(values(3))))
    fetches = [y, *tf.gradients(y * tf.constant(values(*y.shape.as_list())), [x, w])]
    setup = tf.global_variables_initializer()
    agree(monkeypatch, fetches, {x: values(3, 9, 11, 4)}, NAME, fires=3, setup=setup)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("taps", "stride"), [(5, 2), (4, 2), (3, 3), (2, 3), (3, 1)])
@pytest.mark.parametrize("size", [(14, 13), (15, 16)])
def test_transposed_convolutions_agree(monkeypatch, padding, taps, stride, size, kind) -> None:
    w, strides = tf.Variable(values(taps, taps, 3, 6, kind=kind)), [1, stride, stride, 1]
    given = tf.nn.conv2d(tf.zeros([2, *size, 3], kind), w, strides, padding).shape.as_list()
    x = tf.placeholder(kind, given)
    y = tf.nn.conv2d_transpose(x, w, [2, *size, 3], strides, padding)
    fetches = [y, *tf.gradients(y * tf.constant(values(2, *size, 3, kind=kind)), [x, w])]
    setup = tf.global_variables_initializer()
    fires = 3 if stride == 1 and kind == np.float32 and (taps % 2 or padding == "VALID") else 1
    agree(monkeypatch, fetches, {x: values(*given, kind=kind)}, NAME, fires=fires, setup=setup)


def test_training_a_generator_agrees(monkeypatch) -> None:
    z, w = tf.placeholder(tf.float32, [4, 4, 4, 8]), tf.Variable(0.1 * values(5, 5, 1, 8))
    y = tf.nn.sigmoid(tf.nn.conv2d_transpose(z, w, [4, 8, 8, 1], [1, 2, 2, 1], "SAME"))
    loss = tf.reduce_mean(tf.square(y - 0.3))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [loss, train], {z: values(4, 4, 4, 8)}, NAME, fires=1, setup=setup)


@pytest.mark.parametrize("reason", ["stride", "dilation", "NCHW", "double", "groups", "batch", "sides"])
def test_other_convolutions_stay_as_they_are(reason) -> None:
    kind = tf.float64 if reason == "double" else tf.float32
    strides = [1, 2, 2, 1] if reason == "stride" else [1] * 4
    dilations = [1, 2, 2, 1] if reason == "dilation" else [1] * 4
    x = tf.placeholder(kind, [None if reason == "batch" else 2, 9, 9, 4])
    channels = 2 if reason == "groups" else 9 if reason == "NCHW" else 4
    w = tf.Variable(tf.ones([3, 3, channels, 4], kind))
    layout = "NCHW" if reason == "NCHW" else "NHWC"
    padding = [[0, 0], [1, 2], [1, 1], [0, 0]] if reason == "sides" else "SAME"
    y = tf.nn.conv2d(x, w, strides, padding, data_format=layout, dilations=dilations)
    assert "_SpreadConv2D" not in ops(text([y], [x], "apply_identities", NAME))


def test_gradients_of_dilated_windows_stay_as_they_are() -> None:
    x, w = tf.placeholder(tf.float32, [2, 9, 9, 2]), tf.Variable(tf.ones([3, 3, 2, 4]))
    y = tf.nn.conv2d(x, w, [1] * 4, "SAME", dilations=[1, 2, 2, 1])
    names = "fold_constants", "apply_identities", NAME
    assert "Conv2DBackpropInput" in ops(text([*tf.gradients(y, x)], [x], *names))
