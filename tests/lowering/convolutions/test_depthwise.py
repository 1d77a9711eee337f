"""Depthwise convolutions in machine code: graph text, equal results, and what stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags
from flowstone.lowering.convolutions import depthwise
from flowstone.native.codegen import host

RNG = np.random.default_rng(37)
NAME = "convolve_channels"
KINDS = ("_DepthwiseConv2D", "_DepthwiseConv2DBackpropInput", "_DepthwiseConv2DBackpropFilter")

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())


@pytest.fixture(autouse=True)
def everywhere(monkeypatch) -> None:
    """Uses machine code wherever it can be."""
    monkeypatch.setattr(flags, "NATIVE", 2)
    monkeypatch.setattr(depthwise, "pays", lambda channels, what: True)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def test_a_convolution_and_its_gradients_are_replaced() -> None:
    x, w = tf.placeholder(tf.float32, [2, 9, 8, 6]), tf.Variable(values(3, 3, 6, 1))
    y = tf.nn.depthwise_conv2d(x, w, [1] * 4, "SAME")
    lines = ops(text([y, *tf.gradients(y * y, [x, w])], [x], "fold_constants", "apply_identities", NAME))
    assert [lines.count(kind) for kind in KINDS] == [1, 1, 1]
    assert not [name for name in lines if name.startswith("DepthwiseConv2dNative")]


@pytest.mark.parametrize("padding", ["SAME", "VALID", [[0, 0], [2, 1], [1, 0], [0, 0]]])
@pytest.mark.parametrize(
    ("taps", "strides", "dilations"),
    [((3, 3), (1, 1), (1, 1)), ((5, 2), (1, 1), (1, 1)), ((3, 5), (2, 2), (1, 1)), ((3, 2), (1, 1), (2, 3))],
)
def test_results_and_gradients_agree(monkeypatch, padding, taps, strides, dilations) -> None:
    x, w = tf.placeholder(tf.float32, [3, 12, 11, 10]), tf.Variable(values(*taps, 10, 1))
    y = tf.nn.depthwise_conv2d_native(x, w, [1, *strides, 1], padding, dilations=[1, *dilations, 1])
    fetches = [y, *tf.gradients(y * tf.constant(values(*y.shape.as_list())), [x, w])]
    setup = tf.global_variables_initializer()
    agree(monkeypatch, fetches, {x: values(3, 12, 11, 10)}, NAME, fires=3, setup=setup)


def test_training_a_separable_layer_agrees(monkeypatch) -> None:
    x, first = tf.placeholder(tf.float32, [4, 8, 8, 12]), tf.Variable(0.3 * values(5, 5, 12, 1))
    second = tf.Variable(0.3 * values(1, 1, 12, 7))
    y = tf.nn.separable_conv2d(x, first, second, [1, 2, 2, 1], "SAME")
    train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss := tf.reduce_mean(tf.square(y)))
    setup = tf.global_variables_initializer()
    # The images want no gradient.
    agree(monkeypatch, [loss, train], {x: values(4, 8, 8, 12)}, NAME, fires=2, setup=setup)


@pytest.mark.parametrize("reason", ["multiplier", "NCHW", "double", "batch", "sides"])
def test_other_convolutions_stay_as_they_are(reason) -> None:
    kind = tf.float64 if reason == "double" else tf.float32
    first = reason == "NCHW"
    x = tf.placeholder(kind, [None if reason == "batch" else 2, 9, 9, 9])
    w = tf.Variable(tf.ones([3, 3, 9, 2 if reason == "multiplier" else 1], kind))
    padding = [[0, 0], [3, 1], [1, 1], [0, 0]] if reason == "sides" else "SAME"
    y = tf.nn.depthwise_conv2d_native(x, w, [1] * 4, padding, "NCHW" if first else "NHWC")
    assert not set(KINDS) & set(ops(text([y], [x], "apply_identities", NAME)))


def test_without_machine_code_nothing_is_replaced(monkeypatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 0)
    x = tf.placeholder(tf.float32, [2, 9, 8, 6])
    y = tf.nn.depthwise_conv2d(x, tf.Variable(values(3, 3, 6, 1)), [1] * 4, "SAME")
    assert "_DepthwiseConv2D" not in ops(text([y], [x], NAME))
