"""`tf.keras.backend`: what counts as a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
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


def test_the_value_of_what_is_no_tensor_is_itself() -> None:
    schedule = tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 2, 0.5)
    assert tf.keras.backend.get_value(schedule) is schedule
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile(tf.keras.optimizers.SGD(schedule), "mse")
    plateau = tf.keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=5)
    found = model.fit(np.ones([4, 2]), np.ones([4, 1]), epochs=2, verbose=0, callbacks=[plateau])
    assert found.history["lr"] == [schedule, schedule]
