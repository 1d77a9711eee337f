"""Layers and variables that an attribute no longer holds, as `tf.keras` of TensorFlow 1.15 has it."""

from __future__ import annotations

from typing import Any

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
