"""Convolutions with their bias and activation: equal results, and NaN stays NaN."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from agreement import agree
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune

RNG = np.random.default_rng(3)


def text(fetches, feeds, *names):
    subgraph = prune(fetches, [], feeds)
    run_passes(subgraph, EVERY, {p.name for p in EVERY} - set(names))
    return str(subgraph).splitlines()


@pytest.mark.parametrize("activation", [None, tf.nn.relu, tf.tanh, tf.sigmoid])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_a_convolution_takes_its_bias_and_activation(activation, layout, padding, dtype):
    x = tf.placeholder(dtype, [2, 7, 6, 3] if layout == "NHWC" else [2, 3, 7, 6])
    w, b = tf.placeholder(dtype, [3, 2, 3, 4]), tf.placeholder(dtype, [4])
    strides = [1, 2, 1, 1] if layout == "NHWC" else [1, 1, 2, 1]
    y = tf.nn.conv2d(x, w, strides, padding, data_format=layout)
    y = tf.nn.bias_add(y, b, data_format=layout)
    if activation is not None:
        y = activation(y)
    lines = text([y], [x, w, b], "fuse_biases")
    assert "_BiasedConv2D" in lines[3] and len(lines) == 5
    feed = {p: RNG.standard_normal(p.shape.as_list()) for p in (x, w, b)}
    with tf.Session() as s:
        fused = s.run(y, feed)
        plain = s.run([y, y.op.inputs[0], tf.identity(y.op.inputs[0])], feed)[0]
    np.testing.assert_allclose(fused, plain, rtol=1e-5, atol=1e-5)


@pytest.mark.needs_onednn
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", range(3))
def test_rectifiers_of_large_products_and_convolutions_keep_nan(monkeypatch, special, where):
    """oneDNN's own rectifier makes zeros of them."""
    layers = {
        "product": ([64, 512], [512, 256], tf.matmul),
        "more results than images": ([2, 24, 24, 8], [3, 3, 8, 40], strided(1)),
        "fewer": ([2, 24, 24, 40], [3, 3, 40, 8], strided(2)),
    }
    for dims, kernel, apply in layers.values():
        operands = [RNG.standard_normal(n).astype("f") for n in (dims, kernel, kernel[-1:])]
        operands[where].flat[operands[where].size // 2] = special
        x, w, b = (tf.placeholder(tf.float32, each.shape) for each in operands)
        y = tf.nn.relu(tf.nn.bias_add(apply(x, w), b))
        log = agree(monkeypatch, [y], dict(zip((x, w, b), operands)), "fuse_biases", fires=2)
        assert "fuse_biases: " in log


def strided(stride):
    return lambda x, w: tf.nn.conv2d(x, w, [1, stride, stride, 1], "SAME")
