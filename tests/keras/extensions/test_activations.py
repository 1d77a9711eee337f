"""`tf.keras.activations`: objects with a configuration, as in TensorFlow 1.15."""

from __future__ import annotations

from typing import Any

import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


class Scaled:
    def __init__(self, factor: int = 1) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return x * self.factor

    def get_config(self) -> dict[str, Any]:
        return {"factor": self.factor}


def test_objects_and_their_configurations() -> None:
    config = {"class_name": "Scaled", "config": {"factor": 3}}
    layer = tf.keras.layers.Dense(2, activation=Scaled(3))
    assert tf.keras.activations.serialize(Scaled(3)) == config == layer.get_config()["activation"]
    with tf.keras.utils.custom_object_scope({"Scaled": Scaled}):
        assert tf.keras.activations.get(config).factor == 3
        assert tf.keras.activations.deserialize("Scaled").factor == 1
        copy = tf.keras.layers.Dense.from_config(layer.get_config())
    assert copy.activation.factor == 3


def test_functions_have_names() -> None:
    assert tf.keras.activations.serialize(tf.nn.relu) == "relu"
    assert tf.keras.activations.get("relu") is tf.keras.activations.relu
    assert tf.keras.activations.get(None) is tf.keras.activations.linear
    with pytest.raises(ValueError, match="Cannot serialize"):
        tf.keras.activations.serialize(object())
