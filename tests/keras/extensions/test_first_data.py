"""Models that get their inputs by the first data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def test_a_model_whose_layers_add_the_loss_is_trained_without_targets() -> None:
    class Model(tf.keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)

        def call(self, inputs: Any) -> Any:
            outputs = self.dense(inputs["x"])
            with tf.GradientTape() as tape:
                tape.watch(inputs["x"])
                loss = tf.reduce_mean((self.dense(inputs["x"]) - inputs["y"]) ** 2)
            slope = tape.gradient(loss, inputs["x"])
            self.add_loss(loss + 0 * tf.reduce_sum(slope))
            return outputs

    model = Model()
    model.compile("sgd")
    x = np.arange(8, dtype=np.float32).reshape(4, 2) / 8
    history = model.fit({"x": x, "y": np.zeros([4, 1], np.float32)}, epochs=3, verbose=0).history["loss"]
    np.testing.assert_allclose(history[0], np.mean(x.sum(1) ** 2), rtol=1e-5)
    assert history[2] < history[1] < history[0]


def doubled_in_training(default: Any) -> Any:
    """A model whose outputs are doubled while it is trained; `training` is `default` otherwise."""

    class Model(tf.keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)

        def call(self, inputs: Any, training: Any = default) -> Any:
            outputs = self.dense(inputs)
            if training:
                outputs = outputs * 2.0
            return outputs

    return Model()


@pytest.mark.parametrize("default", [None, False])
def test_a_model_is_told_whether_it_is_trained(default: Any) -> None:
    model = doubled_in_training(default)
    model.compile(tf.keras.optimizers.SGD(0.01), "mse")
    x, y = np.ones([4, 2], np.float32), np.zeros([4, 1], np.float32)
    losses = model.fit(x, y, epochs=2, verbose=0).history["loss"]
    np.testing.assert_allclose(losses, [16.0, 11.2896], rtol=1e-5)  # of TensorFlow 1.15
    np.testing.assert_allclose(model.evaluate(x, y, verbose=0), 1.99149, rtol=1e-5)


def test_statements_on_tensors_in_a_layer() -> None:
    class Grown(tf.keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            if tf.reduce_sum(x) > 3:
                x = x * 10.0
            return x

    x = tf.keras.Input((2,))
    model = tf.keras.Model(x, Grown()(x))
    assert model.predict(np.ones([2, 2])).tolist() == [[10.0, 10.0]] * 2
    assert model.predict(np.ones([1, 2])).tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("kind", ["dataset", "tensors"])
def test_inputs_without_targets(kind: str) -> None:
    class Model(tf.keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)

        def call(self, inputs: Any) -> Any:
            outputs = self.dense(inputs["x"])
            self.add_loss(tf.reduce_mean((outputs - inputs["label"]) ** 2))
            return outputs

    rows = {"x": np.array([[1, 2], [3, 4]], np.float32), "label": np.array([[1], [0]], np.float32)}
    data: Any = tf.data.Dataset.from_tensor_slices(rows).batch(2).repeat()
    if kind == "tensors":
        data = {name: tf.constant(each) for name, each in rows.items()}
    model = Model()
    model.compile(tf.keras.optimizers.SGD(0.01))
    losses = model.fit(data, steps_per_epoch=1, epochs=2, verbose=0).history["loss"]
    np.testing.assert_allclose(losses, [26.5, 13.2889], rtol=1e-5)  # of TensorFlow 1.15
    np.testing.assert_allclose(model.evaluate(data, steps=1, verbose=0), 6.79, rtol=1e-3)
    np.testing.assert_allclose(model.predict(data, steps=1), [[1.5202], [3.6482]], rtol=1e-4)
