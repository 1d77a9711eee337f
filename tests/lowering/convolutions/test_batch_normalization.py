"""Batch normalisation in machine code: graph text, equal results, and what stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text
from flowstone.framework import flags
from flowstone.lowering.convolutions import batch_normalization
from flowstone.native.codegen import host

RNG = np.random.default_rng(47)
NAME = "normalize_batches"
KINDS = ("_NormalizedBatch", "_NormalizedBatchGrad")
OLD = {"FusedBatchNormV3", "FusedBatchNormGradV3"}

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason())


@pytest.fixture(autouse=True)
def everywhere(monkeypatch) -> None:
    """Uses machine code wherever it can be."""
    monkeypatch.setattr(flags, "NATIVE", 2)
    monkeypatch.setattr(batch_normalization, "WORTHWHILE", 1)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


def normalized(x: Any, **options: Any) -> Any:
    """The three results; scale and offset are variables."""
    channels = x.shape[-1].value
    scale, offset = tf.Variable(1 + 0.3 * values(channels)), tf.Variable(values(channels))
    return tf.nn.fused_batch_norm(x, scale, offset, **{"epsilon": 0.01, **options})


def lines(fetches: Any, feeds: Any) -> list[str]:
    return text(fetches, feeds, "fold_constants", "apply_identities", "remove_unneeded", NAME)


@pytest.mark.parametrize("kind", ["relu", "relu6"])
def test_an_activation_and_its_gradient_become_part_of_it(kind) -> None:
    x = tf.placeholder(tf.float32, [2, 5, 4, 6])
    y = getattr(tf.nn, kind)(normalized(x)[0])
    found = ops(lines([y, *tf.gradients(y * y, [x, *tf.trainable_variables()])], [x]))
    assert [found.count(each) for each in KINDS] == [1, 1]
    assert not {*OLD, "Relu", "Relu6", "ReluGrad", "Relu6Grad"} & set(found)


def test_what_is_added_becomes_part_of_it_but_not_the_gradient() -> None:
    x = tf.placeholder(tf.float32, [2, 5, 4, 6])
    y = tf.nn.relu(x + normalized(tf.square(x))[0])
    found = ops(lines([y, *tf.gradients(y * y, [x])], [x]))
    assert [found.count(each) for each in (*KINDS, "ReluGrad", "Relu")] == [1, 1, 1, 0]


def test_of_two_normalisations_that_are_added_one_takes_the_other() -> None:
    x = tf.placeholder(tf.float32, [2, 5, 4, 6])
    y = tf.nn.relu(normalized(x)[0] + normalized(tf.square(x))[0])
    found = ops(lines([y], [x]))
    assert found.count("_NormalizedBatch") == 2 and not {"Relu", "AddV2"} & set(found)


@pytest.mark.parametrize("reason", ["another taker", "fetched", "waits"])
def test_an_activation_stays_where_more_depends_on_what_is_before_it(reason) -> None:
    x = tf.placeholder(tf.float32, [2, 5, 4, 6])
    before = normalized(x)[0]
    with tf.control_dependencies([tf.print(x)] if reason == "waits" else []):
        y = tf.nn.relu(before)
    fetches = {"another taker": [y, tf.exp(before)], "fetched": [y, before], "waits": [y]}[reason]
    found = ops(lines(fetches, [x]))
    assert found.count("_NormalizedBatch") == 1 and "Relu" in found


@pytest.mark.parametrize("dims", [(3, 6, 5, 7), (2, 3, 4, 5, 6), (2, 9, 9, 40)])
@pytest.mark.parametrize("kind", ["relu", "relu6", "identity", "tanh"])
def test_results_and_gradients_agree(monkeypatch, dims, kind) -> None:
    x = tf.placeholder(tf.float32, dims)
    layout = "NHWC" if len(dims) == 4 else "NDHWC"
    y, mean, variance = normalized(x, data_format=layout)
    y = tf.identity(y) if kind == "identity" else getattr(tf.nn, kind)(y)
    loss = tf.reduce_sum(y * tf.constant(values(*dims)))
    fetches = [y, mean, variance, *tf.gradients(loss, [x, *tf.trainable_variables()])]
    setup = tf.global_variables_initializer()
    agree(monkeypatch, fetches, {x: values(*dims)}, NAME, fires=2, setup=setup)


@pytest.mark.parametrize("dims", [(40, 2, 3, 3), (3, 4, 5, 17), (2, 3, 4, 5, 1)])
def test_a_gradient_without_its_normalisation_agrees(monkeypatch, dims) -> None:
    dy, x = (tf.placeholder(tf.float32, dims) for _ in range(2))
    scale, mean, variance = (tf.placeholder(tf.float32, dims[-1:]) for _ in range(3))
    layout = {"data_format": "NHWC" if len(dims) == 4 else "NDHWC", "epsilon": 0.01}
    found = tf.raw_ops.FusedBatchNormGradV3(
        y_backprop=dy, x=x, scale=scale, reserve_space_1=mean, reserve_space_2=variance, reserve_space_3=[],
        **layout,
    )  # fmt: skip
    feeds = {dy: values(*dims), x: values(*dims), scale: 1 + values(dims[-1]), mean: values(dims[-1])}
    agree(monkeypatch, list(found[:3]), {**feeds, variance: values(dims[-1]) ** 2}, NAME, fires=1)


def test_training_a_residual_block_agrees(monkeypatch) -> None:
    tf.set_random_seed(5)
    x = tf.placeholder(tf.float32, [4, 8, 8, 12])
    y = tf.layers.batch_normalization(tf.layers.conv2d(x, 12, 1, use_bias=False), training=True)
    z = tf.nn.relu(tf.layers.batch_normalization(tf.layers.conv2d(x, 12, 3, padding="same"), training=True))
    z = tf.layers.batch_normalization(tf.layers.conv2d(z, 12, 3, padding="same"), training=True)
    loss = tf.reduce_mean(tf.square(tf.nn.relu(y + z)))
    moving = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(moving):
        train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    kept = [v.read_value() for v in tf.global_variables() if "moving" in v.op.name]
    with tf.control_dependencies([train]):
        after = [tf.identity(each) for each in kept]
    setup = tf.global_variables_initializer()
    agree(monkeypatch, [loss, train, *after], {x: values(4, 8, 8, 12)}, NAME, fires=6, setup=setup)


@pytest.mark.parametrize("reason", ["inference", "half", "batch", "average"])
def test_other_normalisations_stay_as_they_are(reason) -> None:
    kind = tf.float16 if reason == "half" else tf.float32
    x = tf.placeholder(kind, [None if reason == "batch" else 2, 9, 9, 5])
    options: dict[str, Any] = {}
    if reason != "half" and reason != "batch":
        options = {"mean": tf.zeros([5]), "variance": tf.ones([5])}
        options |= {"is_training": False} if reason == "inference" else {"exponential_avg_factor": 0.5}
    y = normalized(x, **options)[0]
    assert not set(KINDS) & set(ops(lines([y, *tf.gradients(y, x)], [x])))


def test_without_machine_code_nothing_is_replaced(monkeypatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", 0)
    x = tf.placeholder(tf.float32, [2, 9, 8, 6])
    assert "_NormalizedBatch" not in ops(lines([normalized(x)[0]], [x]))
