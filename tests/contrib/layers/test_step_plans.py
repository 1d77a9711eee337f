"""A training step through `tf.contrib.layers` runs the same kernels as the step written by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

import flowstone as tf

CONSTANT = tf.constant_initializer(0.1)


def through_layers(x: Any) -> Any:
    layers = tf.contrib.layers
    y = layers.conv2d(x, 8, 3, weights_initializer=CONSTANT)
    y = layers.flatten(layers.max_pool2d(y, 2))
    return layers.fully_connected(y, 10, activation_fn=None, weights_initializer=CONSTANT)


def by_hand(x: Any) -> Any:
    w = tf.get_variable("w", [3, 3, 3, 8], initializer=CONSTANT)
    b = tf.get_variable("b", [8], initializer=tf.zeros_initializer())
    y = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), b))
    y = tf.reshape(tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"), [4, -1])
    w2 = tf.get_variable("w2", [128, 10], initializer=CONSTANT)
    b2 = tf.get_variable("b2", [10], initializer=tf.zeros_initializer())
    return tf.nn.bias_add(tf.matmul(y, w2), b2)


def kernels(build: Any) -> Counter[str]:
    """How often the step's code calls each function."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, labels = tf.placeholder(tf.float32, [4, 8, 8, 3]), tf.placeholder(tf.int32, [4])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=build(x))
        loss = tf.reduce_mean(losses)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        feed = {x: np.ones([4, 8, 8, 3]), labels: np.zeros([4])}
        text = str(session.explain([train, loss], feed))
    lines = text[text.rindex("def segment") :].splitlines()
    return Counter(line.partition("=")[2].partition("(")[0].strip() for line in lines if "=" in line)


def test_the_plans_have_the_same_kernels() -> None:
    found = kernels(through_layers)
    assert found == kernels(by_hand)
    assert sum(found.values()) > 8
