"""Dense, dropout and flatten layers: what is refused, static shapes, attributes, random masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def x(*shape: int | None, dtype: Any = tf.float32) -> tf.Tensor:
    return tf.placeholder(dtype, shape)


# ---- dense


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: tf.layers.dense(x(None, None), 3), ValueError, "last dimension .* should be defined"),
        (lambda: tf.layers.dense(x(4), 3), ValueError, "expected min_ndim=2, found ndim=1"),
        (lambda: tf.layers.dense(tf.placeholder(tf.float32), 3), ValueError, "its rank is undefined"),
        (lambda: tf.layers.dense(x(2, 3, dtype=tf.int32), 3), TypeError, "non-floating point dtype int32"),
        (lambda: tf.layers.dense(x(2, 3), -1), ValueError, "-1"),
        (lambda: tf.layers.Dense(3, bogus=1), TypeError, "bogus"),
        (lambda: tf.layers.dense(x(2, 3), 3, "nonsense"), ValueError, "Unknown activation function"),
        (
            lambda: tf.layers.dense(x(2, 3), 3, kernel_initializer="nonsense"),
            ValueError,
            "Unknown initializer: 'nonsense'",
        ),
        (lambda: tf.layers.dense([1.0, 2.0], 3), ValueError, "expects 1 inputs, but it received 2"),
        (lambda: tf.layers.dense(x(2, 3), 3, name="a", reuse=True), ValueError, "a/kernel does not exist"),
        (
            lambda: [tf.layers.dense(x(2, 3), 3, name="a") for _ in range(2)],
            ValueError,
            "a/kernel already exists",
        ),
        (
            lambda: [layer(x(2, n)) for layer in [tf.layers.Dense(3)] for n in (3, 4)],
            ValueError,
            "expected axis -1 of input shape to have value 3 but received",
        ),
    ],
)
def test_dense_refuses(build: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        build()


def test_dense_has_its_arguments_and_variables() -> None:
    layer = tf.layers.Dense(4, tf.nn.relu, kernel_constraint=tf.abs, name="d", dtype=tf.float64)
    assert layer.kernel is None
    y = layer(x(None, 7, 3))
    assert y.dtype == tf.float64
    assert y.shape.as_list() == [None, 7, 4] == list(layer.output_shape)
    assert (layer.units, layer.use_bias, layer.activation) == (4, True, tf.nn.relu)
    assert layer.weights == [layer.kernel, layer.bias] == layer.trainable_weights
    assert layer.kernel.constraint is tf.abs
    assert layer.count_params() == 16
    layer.trainable = False
    assert layer.trainable_weights == []


def test_dense_static_shapes() -> None:
    layer = tf.layers.Dense(4)
    assert layer.compute_output_shape([None, 5, 3]).as_list() == [None, 5, 4]
    with pytest.raises(ValueError, match="innermost dimension of input_shape must be defined"):
        layer.compute_output_shape([2, None])
    assert tf.layers.dense(x(None, 3), 0).shape.as_list() == [None, 0]


def test_dense_of_an_array() -> None:
    y = tf.layers.dense(np.ones([2, 3], "f"), 2, kernel_initializer="ones", bias_initializer="zeros")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(y).tolist() == [[3, 3], [3, 3]]


def test_a_kernel_in_parts() -> None:
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(3)):
        y = tf.layers.dense(tf.ones([2, 6]), 2, kernel_initializer=tf.ones_initializer(), use_bias=False)
    assert [v.shape.as_list() for v in tf.global_variables()] == [[2, 2]] * 3
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(y).tolist() == [[6, 6], [6, 6]]


# ---- dropout


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: tf.layers.dropout(x(2, 2), 1.5, training=True), r"range \[0, 1\)"),
        (lambda: tf.layers.dropout(x(2, 2, dtype=tf.int32), training=True), "floating point"),
        (lambda: tf.layers.dropout(x(2, 2), noise_shape=[3], training=True), "2 and 3"),
    ],
)
def test_dropout_refuses(build: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build()


@pytest.mark.parametrize("training", [True, 1, np.bool_(True), "told"])
def test_dropout_scales_what_it_keeps(training: Any) -> None:
    told = tf.placeholder_with_default(True, [])
    y = tf.layers.dropout(tf.ones([40, 50]), 0.2, seed=1, training=told if training == "told" else training)
    with tf.Session() as session:
        values = session.run(y)
        kept = session.run(y, {told: False})
    assert set(np.unique(values)) == {0.0, np.float32(1.25)}
    assert 0.15 < (values == 0).mean() < 0.25
    assert (kept == 1).all() == (training == "told")


@pytest.mark.parametrize("training", [False, None, 0])
def test_dropout_in_inference_is_the_identity(training: Any) -> None:
    y = tf.layers.dropout(tf.ones([2, 3]), 0.9, training=training)
    assert y.op.type == "Identity"
    with tf.Session() as session:
        assert session.run(y).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_dropout_of_whole_rows() -> None:
    y = tf.layers.dropout(
        tf.placeholder_with_default(np.ones([50, 4], "f"), [None, 4]), 0.5, [None, 1], 3, True
    )
    with tf.Session() as session:
        values = session.run(y)
    assert values.shape == (50, 4)
    assert (values == values[:, :1]).all()
    assert 0 < (values[:, 0] == 0).sum() < 50


def test_a_rate_of_zero_drops_nothing() -> None:
    inputs = x(2, 2)
    assert tf.layers.dropout(inputs, 0.0, training=True) is inputs


def test_a_variable_tells_whether_to_train() -> None:
    training = tf.Variable(False, trainable=False)
    y = tf.layers.dropout(tf.ones([30, 30]), 0.5, training=training)
    with tf.Session() as session:
        session.run(training.initializer)
        assert session.run(y).min() == 1
        session.run(training.assign(True))
        assert session.run(y).min() == 0


# ---- flatten


def test_flatten_refuses() -> None:
    with pytest.raises(ValueError, match="expected min_ndim=1, found ndim=0"):
        tf.layers.flatten(x())
    with pytest.raises(ValueError, match="its rank is undefined"):
        tf.layers.flatten(tf.placeholder(tf.float32))
    with pytest.raises(ValueError, match="Received: foo"):
        tf.layers.Flatten(data_format="foo")


def test_flatten_gives_both_layouts_one_result() -> None:
    last = np.arange(24, dtype="f").reshape(2, 2, 2, 3)
    first = tf.layers.flatten(tf.constant(np.moveaxis(last, -1, 1)), data_format="channels_first")
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(first), last.reshape(2, 12))


def test_flatten_of_empty_batches() -> None:
    inputs = x(None, 3, 2)
    y = tf.layers.flatten(inputs)
    with tf.Session() as session:
        assert session.run(y, {inputs: np.zeros([0, 3, 2])}).shape == (0, 6)
