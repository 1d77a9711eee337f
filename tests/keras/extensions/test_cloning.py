"""`clone_model` with a function that makes the layers, and `Sequential` of an `Input`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def wider(layer: Any) -> Any:
    config = layer.get_config()
    return type(layer).from_config({**config, "units": 5} if config.get("name") == "hidden" else config)


def branches() -> Any:
    layers = tf.keras.layers
    x, y = tf.keras.Input((3,), name="x"), tf.keras.Input((3,), name="y")
    shared = layers.Dense(2, name="hidden")
    return tf.keras.Model([x, y], layers.Dense(1)(layers.Concatenate()([shared(x), shared(y)])))


def test_sequences_of_other_layers() -> None:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(2, name="hidden", input_shape=(3,)), layers.Dense(1)])
    copy = tf.keras.models.clone_model(model, clone_function=wider)
    assert [w.shape for w in copy.get_weights()] == [(3, 5), (5,), (5, 1), (1,)]
    assert copy.predict(np.ones([4, 3])).shape == (4, 1)


def test_graphs_of_other_layers_share_what_was_shared() -> None:
    copy = tf.keras.models.clone_model(branches(), clone_function=wider)
    assert [w.shape for w in copy.get_weights()] == [(3, 5), (5,), (10, 1), (1,)]
    assert copy.input_names == ["x", "y"]


def test_the_same_layers_on_other_inputs() -> None:
    model = branches()
    value = tf.constant([[1.0, 2, 3]])
    copy = tf.keras.models.clone_model(model, [value, value * 2], clone_function=lambda layer: layer)
    assert copy.layers[-1] is model.layers[-1]
    fed = np.array([[1.0, 2, 3]])
    found = tf.keras.backend.get_session().run(copy.output)
    np.testing.assert_allclose(found, model.predict([fed, 2 * fed]), rtol=1e-6)


def test_models_of_a_class_of_its_own_are_refused() -> None:
    with pytest.raises(ValueError, match="functional `Model` instance"):
        tf.keras.models.clone_model(tf.keras.Model(), clone_function=wider)


def test_a_sequence_begins_with_an_input() -> None:
    model = tf.keras.Sequential([tf.keras.Input((3,), name="feature"), tf.keras.layers.Dense(2)])
    assert model.input_names == ["feature"]
    assert model.output_shape == (None, 2)
    with pytest.raises(TypeError, match="instance of class Layer"):
        model.add(tf.constant(1.0))


def test_a_copy_of_a_sequence_is_built_though_its_layers_do_not_know_the_inputs() -> None:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.InputLayer((3,)), layers.Dense(2)])
    copy = tf.keras.models.clone_model(model)
    copy.set_weights(model.get_weights())
    np.testing.assert_array_equal(copy.predict(np.ones([1, 3])), model.predict(np.ones([1, 3])))
