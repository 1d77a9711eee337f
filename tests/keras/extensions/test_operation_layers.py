"""Operations between layers: the class of the layers that they become."""

from __future__ import annotations

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def test_the_class_is_found_where_layers_are() -> None:
    from flowstone.keras.engine.base_layer import TensorFlowOpLayer  # type: ignore[import-not-found]

    x = tf.keras.Input([3])
    model = tf.keras.Model(x, tf.keras.layers.Dense(2)(x * 2.0))
    made = [layer for layer in model.layers if isinstance(layer, TensorFlowOpLayer)]
    assert [layer.name for layer in made] == ["tf_op_layer_mul"]
    assert issubclass(TensorFlowOpLayer, tf.keras.layers.Layer)


def test_a_layer_that_tracks_another_by_name_has_it() -> None:
    class Wrapped(tf.keras.layers.Wrapper):  # type: ignore[misc]
        def __init__(self, layer: tf.keras.layers.Layer) -> None:
            super().__init__(layer)
            assert self._track_trackable(layer, name="layer") is layer

        def call(self, inputs: tf.Tensor) -> tf.Tensor:
            return self.layer(inputs)

    model = tf.keras.Sequential([Wrapped(tf.keras.layers.Dense(2, use_bias=False))])
    assert model.predict(np.ones([4, 3])).shape == (4, 2)
    assert len(model.weights) == 1
