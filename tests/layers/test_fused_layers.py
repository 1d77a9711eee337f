"""A training step written with layers becomes the nodes that the same step written by hand becomes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowstone as tf

RNG = np.random.default_rng(0)


class ByLayers:
    """The parts of networks as layers."""

    def dense(self, x: Any, units: int, activation: Any = None) -> Any:
        return tf.layers.dense(x, units, activation)

    def conv(self, x: Any, filters: int, bias: bool, activation: Any = None) -> Any:
        return tf.layers.conv2d(x, filters, 3, padding="same", use_bias=bias, activation=activation)

    def normalized(self, x: Any, training: Any) -> Any:
        return tf.layers.batch_normalization(x, momentum=0.9, training=training)

    def pooled(self, x: Any) -> Any:
        return tf.layers.max_pooling2d(x, 2, 2)

    def flat(self, x: Any) -> Any:
        return tf.layers.flatten(x)

    def dropped(self, x: Any, training: Any) -> Any:
        return tf.layers.dropout(x, 0.4, training=training)


class ByHand:
    """The same parts of ops and variables."""

    def __init__(self) -> None:
        self.made = 0

    def variable(self, shape: list[int], value: float | None = None, trainable: bool = True) -> Any:
        self.made += 1
        initializer = None if value is None else tf.constant_initializer(value)
        return tf.get_variable(f"v{self.made}", shape, initializer=initializer, trainable=trainable)

    def dense(self, x: Any, units: int, activation: Any = None) -> Any:
        *sizes, depth = x.shape.as_list()
        rows = x if len(sizes) == 1 else tf.reshape(x, [-1, depth])
        y = tf.nn.bias_add(tf.matmul(rows, self.variable([depth, units])), self.variable([units], 0.0))
        y = y if rows is x else tf.reshape(y, [-1, *sizes[1:], units])
        return y if activation is None else activation(y)

    def conv(self, x: Any, filters: int, bias: bool, activation: Any = None) -> Any:
        y = tf.nn.conv2d(x, self.variable([3, 3, x.shape[-1].value, filters]), 1, "SAME")
        y = tf.nn.bias_add(y, self.variable([filters], 0.0)) if bias else y
        return y if activation is None else activation(y)

    def normalized(self, x: Any, training: bool) -> Any:
        size = [x.shape[-1].value]
        gamma, beta = self.variable(size, 1.0), self.variable(size, 0.0)
        mean, variance = self.variable(size, 0.0, False), self.variable(size, 1.0, False)
        if not training:
            return tf.nn.fused_batch_norm(x, gamma, beta, mean, variance, is_training=False)[0]
        y, *moments = tf.nn.fused_batch_norm(x, gamma, beta)
        for average, moment in zip((mean, variance), moments):
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, average.assign_sub((average - moment) * 0.1))
        return y

    def pooled(self, x: Any) -> Any:
        return tf.nn.max_pool(x, 2, 2, "VALID")

    def flat(self, x: Any) -> Any:
        return tf.reshape(x, [-1, int(np.prod(x.shape.as_list()[1:]))])

    def dropped(self, x: Any, training: bool) -> Any:
        return tf.nn.dropout(x, rate=0.4) if training else x


def perceptron(parts: Any, x: Any, training: Any) -> Any:
    y = parts.dense(parts.dense(x, 32, tf.nn.relu), 32, tf.tanh)
    return parts.dense(parts.dropped(y, training), 10)


def sequences(parts: Any, x: Any, training: Any) -> Any:
    y = parts.dense(parts.dense(x, 32, tf.nn.relu), 16, tf.nn.relu)
    return tf.reduce_mean(parts.dense(y, 10), 1)


def convolutions(parts: Any, x: Any, training: Any) -> Any:
    y = parts.pooled(parts.conv(x, 8, True, tf.nn.relu))
    return parts.dense(parts.flat(parts.pooled(parts.conv(y, 8, True, tf.nn.relu))), 10)


def normalized_convolutions(parts: Any, x: Any, training: Any) -> Any:
    for _ in range(2):
        x = parts.pooled(tf.nn.relu(parts.normalized(parts.conv(x, 8, False), training)))
    return parts.dense(parts.dropped(parts.dense(parts.flat(x), 16, tf.nn.relu), training), 10)


def planned(build: Callable[..., Any], parts: Any, shape: list[int], training: bool) -> str:
    """How the training step came about, and its final graph and code."""
    with tf.Graph().as_default():
        x, labels = tf.placeholder(tf.float32, [None, *shape]), tf.placeholder(tf.int32, [None])
        logits = build(parts, x, training)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        feed = {x: RNG.normal(size=[8, *shape]), labels: RNG.integers(0, 10, 8)}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(train, feed)
            return session.explain([train, loss], feed)


def nodes(text: str) -> Counter[str]:
    """How often each op is in the final graph; constants and views, of which there are many forms, are not
    counted."""
    found = Counter(re.findall(r"^%\d+ = (\w+)\(", text, re.MULTILINE))
    for view in ("Const", "Reshape", "Identity"):
        del found[view]
    return found


@pytest.mark.both_ways
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (perceptron, [20]),
        (sequences, [5, 20]),
        (convolutions, [8, 8, 3]),
        (normalized_convolutions, [8, 8, 3]),
    ],
)
def test_a_step_of_layers_becomes_that_of_hand(
    build: Callable[..., Any], shape: list[int], training: bool
) -> None:
    by_layers = nodes(planned(build, ByLayers(), shape, training))
    assert by_layers == nodes(planned(build, ByHand(), shape, training))
    assert any(name.startswith(("_Fused", "_Biased", "_Product")) for name in by_layers)
