"""`tf.keras.backend`: what counts as a tensor."""

from __future__ import annotations

from typing import Any

import pytest
from tests.keras.published import with_keras

import flowstone as tf
from flowstone.keras import tf_utils

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


class Registered:
    """What a library has registered, as TensorFlow Probability does its distributions."""


def test_objects_of_registered_classes_are_tensors(monkeypatch: Any) -> None:
    monkeypatch.setattr(tf_utils, "_symbolic_types", [])
    is_keras_tensor, found = tf.keras.backend.is_keras_tensor, Registered()
    with pytest.raises(ValueError, match="Registered"):
        is_keras_tensor(found)
    tf_utils.register_symbolic_tensor_type(Registered)
    assert not is_keras_tensor(found) and not is_keras_tensor(tf.ones([2]))
    assert is_keras_tensor(tf.keras.Input((2,)))


def test_recurrent_layers_in_a_chosen_learning_phase() -> None:
    tf.keras.backend.set_learning_phase(0)
    layers = [tf.keras.layers.LSTM(2, dropout=0.9, input_shape=(3, 1)), tf.keras.layers.GRU(2, unroll=True)]
    for layer in (layers[0], tf.keras.Sequential([layers[1]])):
        assert layer(tf.ones([4, 3, 1])).shape.as_list() == [4, 2]
