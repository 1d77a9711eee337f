"""Layers of `tf.compat.v2.keras` have the defaults, weights and values of TensorFlow 1.15.5's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf
from flowstone.compat import version_two

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


@pytest.fixture
def layers() -> Any:
    return version_two.namespace("keras.layers")


def test_they_derive_from_those_of_keras(layers: Any) -> None:
    derived = [
        name
        for name in dir(layers)
        if not name.startswith("_") and getattr(layers, name) is not getattr(tf.keras.layers, name)
    ]
    assert derived == ["DenseFeatures", "GRU", "GRUCell", "LSTM", "LSTMCell"]
    for name in derived:
        made = getattr(layers, name)
        assert issubclass(made, getattr(tf.keras.layers, name)) and made.__name__ == name
    assert layers.LSTM(2, "relu", "tanh").get_config()["recurrent_activation"] == "tanh"
    assert tf.keras.layers.LSTM(2).get_config()["recurrent_activation"] == "hard_sigmoid"
    assert layers.DenseFeatures([tf.feature_column.numeric_column("x")]).name == "dense_features"


def test_recurrences(layers: Any) -> None:
    random = np.random.RandomState(0)
    x = tf.constant(random.randn(3, 5, 4).astype(np.float32))
    sums = {  # TensorFlow 1.15.5's
        "GRU": [1.6393, -7.4618, 9.286, 0.8183, -2.0275, -7.131],
        "LSTM": [-0.3164, 1.2736, -1.5086, 2.1027, -1.3195, -2.5795],
    }
    for name, expected in sums.items():
        layer = getattr(layers, name)(6, return_sequences=True)
        outputs = layer(x)
        layer.set_weights([random.randn(*v.shape.as_list()).astype(np.float32) for v in layer.weights])
        found = tf.keras.backend.get_session().run(outputs).sum((0, 1))
        np.testing.assert_allclose(found, expected, atol=1e-4)
    cell = tf.keras.layers.RNN(layers.GRUCell(4))
    cell(x)
    assert [v.shape.as_list() for v in cell.weights] == [[4, 12], [4, 12], [2, 12]]
