"""Layers of `tf.layers` and cells where `tf.keras` expects layers; values of TensorFlow 1.15 and 1.4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("keras_graph")]


@pytest.mark.parametrize(
    "name", ["Dense", "Dropout", "Flatten", "Conv2D", "BatchNormalization", "MaxPooling1D"]
)
def test_layers_of_graphs_are_instances(name: str) -> None:
    graph, keras = getattr(tf.layers, name), getattr(tf.keras.layers, name)
    assert issubclass(graph, keras) and issubclass(graph, tf.keras.layers.Layer)
    assert not issubclass(keras, tf.layers.Layer)


def test_what_is_a_layer() -> None:
    layer = tf.keras.layers.Layer
    assert isinstance(tf.layers.Dense(3), layer) and isinstance(tf.nn.rnn_cell.LSTMCell(3), layer)
    assert isinstance(tf.contrib.rnn.GRUBlockCell(3), layer)
    assert not isinstance(tf.nn.rnn_cell.LSTMCell(3), tf.keras.layers.LSTMCell)
    assert not isinstance(tf.layers.Dense(3), tf.keras.layers.Dropout) and not isinstance(3, layer)
    assert not isinstance(tf.keras.layers.Dense(3), tf.layers.Layer)


def test_internal_module_of_layers() -> None:
    from flowstone.framework.names.alias_modules import alias_module

    base_layer: Any = alias_module("tensorflow.python.keras.engine.base_layer")
    assert base_layer.Layer is tf.keras.layers.Layer
    assert base_layer.InputSpec is tf.keras.layers.InputSpec is tf.layers.InputSpec
    assert repr(tf.layers.InputSpec(min_ndim=2, axes={-1: 4})) == "InputSpec(min_ndim=2, axes={-1: 4})"

    class Scaled(base_layer.Layer):  # type: ignore[misc]
        def __init__(self, units: int) -> None:
            super().__init__()
            self.units = units

        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight("w", [int(input_shape[-1]), self.units], initializer="ones")

        def call(self, x: Any) -> Any:
            return tf.matmul(x, self.w)

    scaled = Scaled(3)
    assert scaled(tf.ones([2, 4])).shape == (2, 3) and scaled.count_params() == 12
    with pytest.raises(NotImplementedError, match="must override `get_config`"):
        scaled.get_config()


# After two steps of SGD with TensorFlow 1.4, whose models take such layers.
LOSSES = [0.5850352, 0.4396827]
KERNEL = [0.0808, 0.08058, 0.08035, 0.08012]


def test_layers_of_graphs_in_models() -> None:
    constant = tf.constant_initializer(0.1)
    inputs = tf.keras.layers.Input([4])
    hidden = tf.layers.Dense(
        3, name="a", kernel_initializer=constant, kernel_regularizer=lambda y: tf.reduce_sum(y * y)
    )(inputs)
    hidden = tf.layers.BatchNormalization(name="norm")(hidden)
    outputs = tf.keras.layers.Dense(2, name="b", kernel_initializer="ones")(hidden)
    model = tf.keras.models.Model(inputs, outputs)
    assert [layer.name for layer in model.layers[1:]] == ["a", "norm", "b"]
    assert model.count_params() == 15 + 12 + 8 and len(model.trainable_weights) == 6
    model.compile("sgd", "mse")
    x, y = np.arange(16, dtype=np.float32).reshape(4, 4) / 8, np.ones([4, 2], np.float32)
    losses = [model.train_on_batch(x, y) for _ in range(2)]
    np.testing.assert_allclose(losses, LOSSES, rtol=1e-5)
    np.testing.assert_allclose(model.get_weights()[0][:, 0], KERNEL, atol=2e-5)


def test_sequential_models_train_layers_of_graphs() -> None:
    model = tf.keras.Sequential([tf.layers.Dense(3, input_shape=(4,)), tf.layers.Dense(2)])
    model.compile("sgd", "mse")
    before = model.get_weights()
    model.fit(np.ones([4, 4]), np.ones([4, 2]), verbose=0)
    assert len(before) == 4 and all(np.any(a != b) for a, b in zip(before, model.get_weights()))


def test_models_of_a_class_train_layers_of_graphs() -> None:
    class Two(tf.keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = tf.layers.Dense(3), tf.keras.layers.Dense(2)

        def call(self, x: Any) -> Any:
            return self.b(self.a(x))

    model = Two()
    model.compile("sgd", "mse")
    assert list(model.fit(np.ones([4, 4]), np.ones([4, 2]), verbose=0).history) == ["loss"]
    assert len(model.trainable_weights) == 4


def test_time_distributed_layer_of_a_graph() -> None:
    layer = tf.keras.layers.TimeDistributed(tf.layers.Dense(3, kernel_initializer=tf.ones_initializer()))
    outputs = layer(tf.ones([2, 5, 4]))
    np.testing.assert_array_equal(tf.keras.backend.get_value(outputs), np.full([2, 5, 3], 4.0))


@pytest.mark.parametrize(
    "name, states, expected",
    [
        ("BasicRNNCell", 1, [0.401623, 0.75849]),
        ("LSTMCell", 2, [0.19681, 0.583923]),
        ("GRUCell", 1, [0.123284, 0.238335]),
    ],
)
def test_cells_of_graphs_in_recurrent_layers(name: str, states: int, expected: list[float]) -> None:
    cell, constant = getattr(tf.nn.rnn_cell, name)(2), tf.constant_initializer(0.1)
    x = tf.constant(np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 10)
    with tf.variable_scope("v", initializer=constant):
        layer = tf.keras.layers.RNN(cell, return_state=True)
        outputs = layer(x)
    assert layer.cell is cell and len(outputs) == 1 + states and layer.trainable_weights
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(outputs[0])[:, 0], expected, atol=2e-6)
