"""Gradients of layers of few examples with their weights' descent: text, results, and what stays."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags
from flowstone.lowering.updates import joint_descents
from flowstone.native.codegen import host

RNG = np.random.default_rng(53)
NAME = "join_descents"
BEFORE = ("fold_constants", "apply_identities", "drop_waits", "fuse_updates", "remove_unneeded")
KINDS = {"_JointDescent", "_ResourceJointDescent"}

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())


@pytest.fixture(autouse=True)
def everywhere(monkeypatch) -> None:
    """Uses machine code wherever it can be."""
    monkeypatch.setattr(flags, "NATIVE", 2)
    monkeypatch.setattr(joint_descents, "LEAST", 1)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def layers(
    rows: int = 4, resource: bool = False, width: int = 48, dtype: Any = tf.float32
) -> tuple[Any, Any, Any]:
    """(x, weights, loss) of three layers without biases."""
    x = tf.placeholder(dtype, [rows, 40])
    sizes = [40, 64, width, 32]
    weights = [
        tf.get_variable(f"w{i}", initializer=tf.constant(0.2 * values(*dims), dtype), use_resource=resource)
        for i, dims in enumerate(itertools.pairwise(sizes))
    ]
    y = x
    for w in weights:
        y = tf.tanh(tf.matmul(y, w))
    return x, weights, tf.reduce_mean(tf.square(y - 0.3))


def step(loss: Any, rate: Any = 0.1, **options: Any) -> Any:
    return tf.train.GradientDescentOptimizer(rate).minimize(loss, **options)


def joined(fetches: Any, feeds: Any, targets: Any) -> int:
    return len([kind for kind in ops(text(fetches, feeds, *BEFORE, NAME, targets=targets)) if kind in KINDS])


@pytest.mark.parametrize("resource", [False, True])
def test_all_but_the_first_layer_are_joined(resource) -> None:
    x, _, loss = layers(resource=resource)
    assert joined([loss], [x], [step(loss)]) == 2


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("rows", [1, 4, 7])
@pytest.mark.parametrize("rate", ["constant", "fed", "variable", "zero"])
def test_steps_agree(monkeypatch, resource, rows, rate) -> None:
    x, weights, loss = layers(rows, resource)
    feed: dict[Any, Any] = {x: values(rows, 40)}
    rates = {
        "constant": 0.1,
        "zero": 0.0,
        "fed": tf.placeholder(tf.float32, []),
        "variable": tf.Variable(0.2),
    }
    if rate == "fed":
        feed[rates["fed"]] = 0.3
    train = step(loss, rates[rate], var_list=weights)
    with tf.control_dependencies([train]):
        after = [w.read_value() for w in weights] if resource else []
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [loss, train, *after], feed, NAME, fires=2, setup=setup)


@pytest.mark.parametrize(
    "reason", ["many rows", "odd width", "double", "shared weights", "momentum", "clipped"]
)
def test_other_layers_stay_as_they_are(reason) -> None:
    rows, width = (40 if reason == "many rows" else 4), (59 if reason == "odd width" else 48)
    x, weights, loss = layers(rows, width=width, dtype=tf.float64 if reason == "double" else tf.float32)
    if reason == "shared weights":
        loss += tf.reduce_sum(weights[1]) + tf.reduce_sum(weights[2])
    train = step(loss)
    if reason == "momentum":
        train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    if reason == "clipped":
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, weights), 1.0)
        train = optimizer.apply_gradients(zip(gradients, weights))
    assert joined([loss], [x], [train]) == (1 if reason == "odd width" else 0)


def test_what_reads_the_weights_afterwards_reads_the_new_ones(monkeypatch) -> None:
    x, weights, loss = layers()
    train = step(loss)
    with tf.control_dependencies([train]):
        total = tf.add_n([tf.reduce_sum(w * 1.0) for w in weights])
    setup = tf.global_variables_initializer()
    log = agree(monkeypatch, [loss, total], {x: values(4, 40)}, NAME, fires=2, setup=setup)
    assert "JointDescent" in log


def test_without_machine_code_nothing_is_joined(monkeypatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 0)
    x, _, loss = layers()
    assert joined([loss], [x], [step(loss)]) == 0
