"""With a seed of the graph alone, models of `tf.keras` begin and drop as in TensorFlow 1.15."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def dense() -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Flatten(input_shape=(6, 6, 2)),
            layers.Dense(8, activation="relu"),
            layers.Dropout(0.3),
            layers.Dense(2, activation="softmax"),
        ]
    )


def convolutional() -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Conv2D(4, 3, activation="relu", input_shape=(6, 6, 2)),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Dropout(0.2),
            layers.Flatten(),
            layers.Dense(2, activation="softmax"),
        ]
    )


# The seeds of random operations and the losses of two epochs, by TensorFlow 1.15.5.
CASES: list[tuple[Callable[[], Any], list[int], list[float]]] = [
    (dense, [14, 41, 59], [0.7912, 0.6747]),
    (convolutional, [6, 101, 127], [0.9761, 1.0854]),
]


@pytest.mark.parametrize(("make", "seeds", "losses"), CASES)
def test_seeds_and_losses_are_tensorflows(
    make: Callable[[], Any], seeds: list[int], losses: list[float]
) -> None:
    if version("keras").startswith("2.2"):
        pytest.skip("needs Keras 2.3: the normalization of 2.2 has other nodes")
    tf.set_random_seed(5)
    model = make()
    model.compile("adam", "sparse_categorical_crossentropy")
    ops = tf.get_default_graph().get_operations()
    assert [op.get_attr("seed2") for op in ops if "seed2" in op.node_def.attr] == seeds
    images = np.random.RandomState(0).rand(16, 6, 6, 2).astype(np.float32)
    labels = (images.sum((1, 2, 3)) > 36).astype(int)
    found = model.fit(images, labels, 8, 2, verbose=0, shuffle=False).history["loss"]
    np.testing.assert_allclose(found, losses, atol=1e-4)


@pytest.mark.parametrize("layout", ["channels_last", "channels_first"])
def test_dilated_causal_and_strided_layers(layout: str) -> None:
    values = np.arange(12, dtype=np.float32).reshape(1, 6, 2)
    inputs = tf.constant(values if layout == "channels_last" else values.transpose(0, 2, 1))
    options: dict[str, Any] = {
        "kernel_initializer": "ones",
        "bias_initializer": "ones",
        "data_format": layout,
    }
    padding = "causal" if layout == "channels_last" else "valid"  # causal padding is of channels_last alone
    dilated = tf.keras.layers.Conv1D(1, 2, padding=padding, dilation_rate=2, **options)(inputs)
    strided = tf.keras.layers.Conv1D(1, 2, 2, **options)(inputs)
    sums = values.sum(2)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, other = session.run([dilated, strided])
    expected = 1 + sums + np.append([0, 0], sums[:-2])
    np.testing.assert_allclose(found.ravel(), expected if padding == "causal" else expected[2:])
    np.testing.assert_allclose(other.ravel(), 1 + sums[::2] + sums[1::2])


def test_operations_have_tensorflows_names() -> None:
    tf.keras.layers.Conv2D(1, 1)(tf.keras.Input((3, 3, 1)))
    assert tf.get_default_graph().get_operation_by_name("conv2d/Conv2D").type == "Conv2D"


def test_dropout_of_everything_and_of_nothing() -> None:
    values = tf.ones([4, 3])
    layers = [tf.keras.layers.Dropout(0.0), tf.keras.layers.Dropout(0.5)]
    with tf.Session() as session:
        assert session.run(layers[0](values, training=True)).sum() == 12
        assert session.run(layers[1](values, training=False)).sum() == 12
        assert set(session.run(layers[1](values, training=True)).ravel()) <= {0.0, 2.0}


def test_the_phase_of_a_new_graph_is_fed_only_where_it_is_read() -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,), kernel_initializer="ones")])
    assert tf.get_default_graph().get_operations()[1].name == "keras_learning_phase"
    np.testing.assert_allclose(model.predict(np.ones([1, 2])), [[2.0]])
