"""Batch normalisation: what is refused, what it makes, and training steps that move its averages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

SEEN = np.random.default_rng(4).normal(2.0, 3.0, size=[5, 8, 3]).astype("f")  # batches of each step


def x(*shape: int | None, dtype: Any = tf.float32) -> tf.Tensor:
    return tf.placeholder(dtype, shape)


def normalized(inputs: Any, **arguments: Any) -> tf.Tensor:
    y: tf.Tensor = tf.layers.batch_normalization(inputs, **arguments)
    return y


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: normalized(x(None, None)), ValueError, "undefined `axis` dimension"),
        (lambda: normalized(x(None, 4), axis=0), ValueError, "undefined `axis` dimension"),
        (lambda: normalized(x(None, 4), axis=3), ValueError, "Invalid axis: 3"),
        (lambda: normalized(x(None, 4), axis=-3), ValueError, "Invalid axis: -1"),
        (lambda: normalized(x(None, 4), axis=[1, -1]), ValueError, r"Duplicate axis: \[1, 1\]"),
        (lambda: normalized(x(None, 4), axis="a"), TypeError, "axis must be int or list"),
        (lambda: normalized(x(None, 4), axis=1.0), TypeError, "axis must be int or list"),
        (lambda: normalized(tf.placeholder(tf.float32)), ValueError, "undefined rank"),
        (lambda: normalized(x(2, 3, dtype=tf.int32)), TypeError, "non-floating point"),
        (lambda: normalized(x(2, 4), virtual_batch_size=0), ValueError, "must be a positive integer"),
        (
            lambda: normalized(x(2, 4), virtual_batch_size=2, adjustment=lambda shape: (1, 0)),
            ValueError,
            "When using virtual_batch_size, adjustment cannot be specified",
        ),
        (
            lambda: normalized(x(2, 4), renorm=True, renorm_clipping={"foo": 1}),
            ValueError,
            "contains keys not in",
        ),
        (lambda: normalized(x(2, 4), training="yes"), TypeError, "`pred` must be a Tensor"),
        (
            lambda: [layer(x(2, n)) for layer in [tf.layers.BatchNormalization()] for n in (3, 4)],
            ValueError,
            "expected axis 1 of input shape to have value 3 but received",
        ),
    ],
)
def test_batch_normalization_refuses(build: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        build()


def test_updates_belong_to_the_inputs_of_a_call() -> None:
    layer = tf.layers.BatchNormalization()
    first, second = x(2, 3), x(2, 3)
    layer(first, training=True)
    layer(second)
    assert layer.updates == tf.get_collection(tf.GraphKeys.UPDATE_OPS) == layer.get_updates_for(first)
    assert len(layer.updates) == 2
    assert layer.get_updates_for(second) == layer.get_updates_for(None) == []
    assert [v.op.name.split("/")[1] for v in layer.non_trainable_weights] == [
        "moving_mean",
        "moving_variance",
    ]


def test_wide_numbers_are_normalised_without_the_fused_op(graph: tf.Graph) -> None:
    layer = tf.layers.BatchNormalization()
    y = layer(x(None, 4, 4, 3, dtype=tf.float64), training=True)
    assert y.dtype == layer.moving_mean.dtype.base_dtype == tf.float64
    assert layer.fused is False
    assert not any("FusedBatchNorm" in op.type for op in graph.get_operations())


def test_narrow_numbers_have_wide_averages() -> None:
    layer = tf.layers.BatchNormalization()
    assert layer(x(None, 4, 4, 3, dtype=tf.float16), training=True).dtype == tf.float16
    assert {v.dtype.base_dtype for v in layer.weights} == {tf.float32}


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("told", [False, True])
def test_averages_move_in_training_only(fused: bool | None, use_resource: bool, told: bool) -> None:
    inputs = x(None, 1, 1, 3)
    training = tf.placeholder_with_default(True, [])
    with tf.variable_scope("s", use_resource=use_resource):
        y = normalized(inputs, momentum=0.75, fused=fused, training=training if told else True, name="b")
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    averages = [v for v in tf.global_variables() if "moving" in v.op.name]
    mean, variance = np.zeros(3), np.ones(3)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for batch in SEEN:
            found, _ = session.run([y, updates], {inputs: batch[:, None, None]})
            of_batch = batch.var(0)
            np.testing.assert_allclose(
                found[:, 0, 0], (batch - batch.mean(0)) / np.sqrt(of_batch + 1e-3), rtol=1e-4, atol=1e-4
            )
            corrected = of_batch * (8 / 7 if fused is None else 1)
            mean, variance = 0.75 * mean + 0.25 * batch.mean(0), 0.75 * variance + 0.25 * corrected
        if told:
            feed = {inputs: SEEN[0][:, None, None], training: False}
            found, _ = session.run([y, updates], feed)
            expected = (SEEN[0] - mean) / np.sqrt(variance + 1e-3)
            np.testing.assert_allclose(found[:, 0, 0], expected, rtol=1e-4, atol=1e-4)
        for variable, expected in zip(averages, (mean, variance)):
            np.testing.assert_allclose(session.run(variable), expected, rtol=1e-4)


def test_virtual_batches_of_images_of_any_size() -> None:
    inputs = x(None, None, 3, 2)
    y = normalized(inputs, virtual_batch_size=2, training=True)
    assert y.shape.as_list() == [None, None, 3, 2]
    values = np.random.default_rng(1).normal(size=[6, 4, 3, 2]).astype("f")
    parts = values.reshape(2, 3, 4, 3, 2)
    mean, variance = (f(parts, axis=(0, 2, 3), keepdims=True) for f in (np.mean, np.var))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(y, {inputs: values})
    expected = ((parts - mean) / np.sqrt(variance + 1e-3)).reshape(values.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_averages_are_whole_where_variables_are_in_parts() -> None:
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2)):
        normalized(x(None, 4), training=True)
    assert [v.shape.as_list() for v in tf.global_variables()] == [[2]] * 4 + [[4]] * 2


def test_averages_begin_as_told() -> None:
    layer = tf.layers.BatchNormalization(
        renorm=True, moving_mean_initializer="ones", moving_variance_initializer=tf.constant_initializer(4.0)
    )
    layer(x(None, 2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run([layer.moving_mean, layer.moving_stddev, layer.renorm_mean, layer.renorm_stddev])
    assert [value.tolist() for value in values] == [[1, 1], [2, 2], [1, 1], [2, 2]]


def test_reuse_shares_averages_and_moves_them_from_both_calls() -> None:
    for reuse in (None, True):
        normalized(x(2, 3), training=True, name="shared", reuse=reuse)
    assert len(tf.global_variables()) == 4
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 4
