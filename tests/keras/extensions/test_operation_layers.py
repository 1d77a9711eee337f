"""Operations between layers: the class of the layers that they become."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]
NODES = ["mul/y", "mul", "add/y", "add", "group_deps", "VarIsInitializedOp", "init", "group_deps_1"]


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


def _with_operations() -> tf.keras.Model:
    x = tf.keras.Input([5], name="i")
    hidden = tf.keras.layers.Dense(3, name="d")(x)
    mean = tf.reduce_mean(hidden, [1], keepdims=True, name="sc/zz") * 2.0
    return tf.keras.Model(x, tf.concat([mean, hidden], 1))


def test_the_configuration_of_an_operation_is_tensorflow_s() -> None:
    layer = _with_operations().get_layer("tf_op_layer_sc/zz")
    config = layer.get_config()
    np.testing.assert_array_equal(config.pop("constants")[1], [1])
    assert config == {
        "name": "sc/zz",
        "trainable": True,
        "dtype": None,
        "node_def": {
            "name": "sc/zz",
            "op": "Mean",
            "input": ["d/BiasAdd", "sc/zz/reduction_indices"],
            "attr": {"keep_dims": {"b": True}, "T": {"type": "DT_FLOAT"}, "Tidx": {"type": "DT_INT32"}},
        },
    }
    assert (layer.input_shape, layer.output_shape) == ([(None, 3)], [(None, 1)])


@pytest.mark.parametrize("way", ["text", "configuration", "clone", "file"])
def test_a_model_with_operations_is_made_again(way: str, tmp_path: Path) -> None:
    model = _with_operations()
    if way == "text":
        other = tf.keras.models.model_from_json(model.to_json())
    elif way == "configuration":
        other = tf.keras.Model.from_config(model.get_config())
    elif way == "clone":
        other = tf.keras.models.clone_model(model)
    else:
        model.save(str(tmp_path / "model.h5"))
        other = tf.keras.models.load_model(str(tmp_path / "model.h5"))
    other.set_weights(model.get_weights())
    x = np.arange(10.0).reshape(2, 5)
    np.testing.assert_allclose(other.predict(x), model.predict(x), rtol=1e-6)
    assert [layer.name for layer in other.layers] == [layer.name for layer in model.layers]


def test_constants_are_asked_of_the_session_as_tensorflow_does() -> None:
    """So that random operations made afterwards have TensorFlow 1.15's seeds: its nodes, in its order."""
    x = tf.keras.Input([3])
    y = tf.keras.layers.Dense(2, use_bias=False)(x)
    before = len(tf.get_default_graph().get_operations())
    tf.keras.Model(x, y * 2.0 + 1.0)
    made = [each.name for each in tf.get_default_graph().get_operations()[before:]]
    assert made == NODES
