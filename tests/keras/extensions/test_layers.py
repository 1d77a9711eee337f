"""Layers and variables that an attribute no longer holds, as `tf.keras` of TensorFlow 1.15 has it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def built() -> Any:
    layer = tf.keras.layers.Dense(2)
    layer.build((None, 3))
    return layer


def names(layer: Any) -> list[str]:
    return [v.name.split("_")[0].split(":")[0] for v in layer.trainable_weights]


def test_a_weight_that_is_replaced_is_none_of_the_layers() -> None:
    layer = built()
    layer.kernel = layer.kernel  # no change
    assert names(layer) == ["kernel", "bias"]
    layer.kernel = tf.ones([3, 2])
    assert names(layer) == ["bias"]


def test_a_weight_of_two_attributes_stays_until_both_are_replaced() -> None:
    layer = built()
    layer.other = layer.kernel
    layer.kernel = None
    assert names(layer) == ["kernel", "bias"]
    layer.other = None
    assert names(layer) == ["bias"]


def test_a_weight_may_go_and_come_back() -> None:
    layer = built()
    kernel = layer.kernel
    del layer.kernel
    assert names(layer) == ["bias"] and not hasattr(layer, "kernel")
    layer.kernel = kernel
    assert names(layer) == ["bias", "kernel"]


def test_layers_that_are_replaced() -> None:
    class Model(tf.keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dense = tf.keras.layers.Dense(2)
            self.dense = tf.keras.layers.Dense(3)
            self.several = [tf.keras.layers.Dense(1)]
            self.several = None
            self.flatten = tf.keras.layers.Flatten()
            del self.flatten

        def call(self, x: Any) -> Any:
            return self.dense(x)

    model = Model()
    assert model.layers == [model.dense]
    model(tf.ones([1, 3]))
    assert [v.shape.as_list() for v in model.weights] == [[3, 3], [3]]


def test_layers_of_a_sequence_stay() -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
    model.first = model.layers[0]
    model.first = None
    assert len(model.layers) == 1


def test_a_class_may_have_its_own_trainable() -> None:
    """Its property is not set before the constructor of the class has made what it reads."""

    class Stack(tf.keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.parts = [tf.keras.layers.Dense(2), tf.keras.layers.Dense(3)]

        @property
        def trainable(self) -> bool:
            return super().trainable and any(part.trainable for part in self.parts)

        @trainable.setter
        def trainable(self, value: bool) -> None:
            self._trainable = value
            for part in self.parts:
                part.trainable = value

    stack = Stack()
    assert stack.trainable and stack._trainable
    stack.trainable = False
    assert not stack.trainable and [part.trainable for part in stack.parts] == [False, False]


def test_trainable_is_set_for_the_layers_within() -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,)), tf.keras.layers.Dense(2)])
    model.trainable = False
    assert [layer.trainable for layer in model.layers] == [False, False]
    assert model.trainable_weights == []
    model.trainable = True
    model.layers[0].trainable = False
    assert len(model.trainable_weights) == 2


def test_layers_that_a_program_appends_are_kept() -> None:
    class Net(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.sizes = [3, 4]  # a list beside the layers
            self._layers.append(tf.keras.layers.Dense(2))
            self._layers.extend([tf.keras.layers.Dense(3)])

        def call(self, inputs: Any) -> Any:
            for layer in self.layers:
                inputs = layer(inputs)
            return inputs, None

    net = Net()
    outputs, nothing = net(tf.zeros([2, 5]))
    assert outputs.shape == (2, 3) and nothing is None
    assert [v.shape for v in net.weights] == [(5, 2), (2,), (2, 3), (3,)]


def test_lists_of_a_class_may_have_the_names_of_a_models_own() -> None:
    class Encoder(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self._input_layers = [tf.keras.layers.Dense(3), tf.keras.layers.Dense(2)]
            self._output_layers = [tf.keras.layers.Dense(1)]

        def call(self, inputs: Any) -> Any:
            for layer in [*self._input_layers, *self._output_layers]:
                inputs = layer(inputs)
            return inputs

    model = Encoder()
    model(tf.zeros([2, 4]))
    assert [v.shape.as_list() for v in model.trainable_weights] == [[4, 3], [3], [3, 2], [2], [2, 1], [1]]


def test_a_copy_of_a_model_has_its_layers() -> None:
    class Net(tf.keras.Model):
        def __init__(self, size: int) -> None:  # and no `get_config`
            super().__init__()
            self.dense = tf.keras.layers.Dense(size)

        def call(self, inputs: Any) -> Any:
            return self.dense(inputs)

    net = Net(2)
    net(tf.zeros([1, 3]))
    other = copy.copy(net)
    assert type(other) is Net and other is not net and other.dense is net.dense
    assert [*map(id, other.weights)] == [*map(id, net.weights)]


def test_the_state_of_an_lstm_cell_is_a_list() -> None:
    cell = tf.keras.layers.LSTMCell(3)
    assert cell.state_size == [3, 3]
    state = cell.get_initial_state(batch_size=2, dtype=tf.float32)
    tf.nest.assert_same_structure(cell.state_size, state)


def test_programs_are_told_shapes_as_tensorflow_tells_them() -> None:
    layers = tf.keras.layers
    found = layers.Conv2D(3, 3).compute_output_shape((None, 8, 8, 3))
    assert isinstance(found, tf.TensorShape) and found.as_list() == [None, 6, 6, 3]
    assert layers.Flatten().compute_output_shape((None, 2, 3)).as_list() == [None, 6]
    states = layers.LSTM(3, return_state=True).compute_output_shape((None, 5, 3))
    assert [each.as_list() for each in states] == [[None, 3]] * 3
    wrapped = layers.TimeDistributed(layers.Dense(2)).compute_output_shape((None, 3, 4))
    assert wrapped.as_list() == [None, 3, 2]
    assert layers.Dropout(0.5).compute_output_shape((None, 4)) == (None, 4)
    inputs = layers.Input((4,))
    model = tf.keras.Model(inputs, [layers.Dense(2)(inputs), layers.Dense(3)(inputs)])
    assert [each.as_list() for each in model.compute_output_shape((None, 4))] == [[None, 2], [None, 3]]
    assert model.output_shape == [(None, 2), (None, 3)]


def test_a_program_renames_by_the_attribute_of_tensorflows() -> None:
    class Named(tf.keras.layers.Layer):
        @property
        def name(self) -> str:
            return "its own"

    layer, metric = tf.keras.layers.Dense(1, name="a"), tf.keras.metrics.MeanAbsoluteError()
    model = tf.keras.Sequential([layer])
    model.build((None, 2))
    layer._name, metric._name, model._name = "b", "error", "whole"
    assert (layer.name, layer._dtype, metric.name, metric._dtype) == ("b", "float32", "error", "float32")
    assert model.get_layer("b") is layer and model.get_config()["name"] == "whole"
    model.compile("sgd", "mse", metrics=[metric])
    assert model.metrics_names == ["loss", "error"]
    assert Named().name == "its own"


@pytest.mark.parametrize("part", ["scale", "center"])
def test_batches_of_images_are_normalised_without_scale_or_centre(part: str) -> None:
    images = np.random.RandomState(0).randn(2, 3, 3, 4).astype("f")
    layer = tf.keras.layers.BatchNormalization(**{part: False})
    model = tf.keras.Sequential([layer])
    model.compile("sgd", "mse")
    model.fit(images, np.zeros_like(images), verbose=0)
    assert len(layer.get_weights()) == 3
    values = dict(zip([w.name.rpartition("/")[2] for w in layer.weights], layer.get_weights()))
    expected = (images - values["moving_mean:0"]) / np.sqrt(values["moving_variance:0"] + 1e-3)
    expected = expected * values.get("gamma:0", 1.0) + values.get("beta:0", 0.0)
    np.testing.assert_allclose(model.predict(images), expected, rtol=1e-4, atol=1e-5)
