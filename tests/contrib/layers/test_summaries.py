"""Summaries of tensors and collections have 1.15.5's names."""

from __future__ import annotations

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

layers = tf.contrib.layers


def test_tensors() -> None:
    x, scalar = tf.ones([2, 3], name="x"), tf.constant(1.0, name="sc")
    assert layers.summarize_tensor(x).name == "x_summary:0"
    assert layers.summarize_tensor(scalar, "tag").op.type == "ScalarSummary"
    assert layers.summarize_tensor(tf.constant("a")) is None
    assert [s.name for s in layers.summarize_tensors([x, scalar])] == ["x_summary_1:0", "sc_summary:0"]


def test_activations() -> None:
    x = tf.constant([-1.0, 0.0, 3.0, 8.0], name="x")
    six = tf.nn.relu6(x, name="r6")
    assert layers.summarize_activation(tf.nn.relu(x, name="re")).name == "re/activation:0"
    layers.summarize_activation(six)
    names = [s.op.name for s in tf.get_collection("summaries")]
    assert names == ["re/zeros", "re/activation", "r6/zeros", "r6/sixes", "r6/activation"]


def test_collections() -> None:
    x = tf.ones([2], name="x")
    tf.add_to_collection(tf.GraphKeys.ACTIVATIONS, x)
    tf.get_variable("w", [1], collections=[tf.GraphKeys.WEIGHTS, tf.GraphKeys.GLOBAL_VARIABLES])
    tf.get_variable("b", [1], collections=[tf.GraphKeys.BIASES, tf.GraphKeys.GLOBAL_VARIABLES])
    summaries = layers.summaries
    assert [s.op.name for s in layers.summarize_activations()] == ["x/activation"]
    assert layers.summarize_activations("y") == []
    assert [s.op.name for s in layers.summarize_collection("activations", "x")] == ["x_summary"]
    assert [s.op.name for s in summaries.summarize_variables()] == ["w_summary", "b_summary"]
    assert [s.op.name for s in summaries.summarize_weights()] == ["w_summary_1"]
    assert [s.op.name for s in summaries.summarize_biases()] == ["b_summary_1"]
