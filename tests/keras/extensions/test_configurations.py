"""Configurations of layers and optimisers have TensorFlow 1.15's entries in its order."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("keras_graph")]
KERNEL = "kernel_initializer bias_initializer kernel_regularizer bias_regularizer activity_regularizer"
CONSTRAINTS = "kernel_constraint bias_constraint"
RECURRENT = "return_sequences return_state go_backwards stateful"
LAYERS: list[tuple[str, dict[str, Any], str]] = [
    (
        "SeparableConv2D",
        {"filters": 3, "kernel_size": 2},
        f"filters kernel_size strides padding data_format dilation_rate activation use_bias {KERNEL} "
        f"{CONSTRAINTS} depth_multiplier depthwise_initializer pointwise_initializer depthwise_regularizer "
        "pointwise_regularizer depthwise_constraint pointwise_constraint",
    ),
    (
        "LocallyConnected1D",
        {"filters": 3, "kernel_size": 2, "implementation": 2},
        f"filters kernel_size strides padding data_format activation use_bias {KERNEL} {CONSTRAINTS} "
        "implementation",
    ),
    (
        "CuDNNGRU",
        {"units": 3, "time_major": False},
        f"{RECURRENT} time_major units kernel_initializer recurrent_initializer bias_initializer "
        "kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint "
        "recurrent_constraint bias_constraint",
    ),
    (
        "BatchNormalization",
        {},
        "axis momentum epsilon center scale beta_initializer gamma_initializer moving_mean_initializer "
        "moving_variance_initializer beta_regularizer gamma_regularizer beta_constraint gamma_constraint",
    ),
]
BIAS = 3.0
OPTIMIZERS = {
    "SGD": "momentum nesterov",
    "RMSprop": "rho momentum epsilon centered",
    "Adagrad": "initial_accumulator_value epsilon",
    "Adadelta": "rho epsilon",
    "Adam": "beta_1 beta_2 epsilon amsgrad",
    "Nadam": "beta_1 beta_2 epsilon",
    "Ftrl": "initial_accumulator_value learning_rate_power l1_regularization_strength "
    "l2_regularization_strength l2_shrinkage_regularization_strength",
}


@pytest.mark.parametrize("name, options, entries", LAYERS)
def test_layers(name: str, options: dict[str, Any], entries: str) -> None:
    layer_class = getattr(tf.keras.layers, name)
    config = layer_class(**options).get_config()
    assert list(config) == ["name", "trainable", "dtype", *entries.split()]
    again = layer_class.from_config(json.loads(json.dumps(config))).get_config()
    assert json.dumps(again) == json.dumps(config)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str) -> None:
    optimizer_class = getattr(tf.keras.optimizers, name)
    config = optimizer_class().get_config()
    assert list(config) == ["name", "learning_rate", "decay", *OPTIMIZERS[name].split()]
    assert optimizer_class.from_config(config).get_config() == config


def test_inputs_tables_and_stacked_cells() -> None:
    layers = tf.keras.layers
    assert list(layers.InputLayer((3,)).get_config())[-2:] == ["ragged", "name"]
    assert layers.Embedding(5, 2).get_config()["dtype"] == "float32"
    assert list(layers.RNN([layers.LSTMCell(2)]).get_config())[-2:] == ["time_major", "cell"]


def test_what_no_layer_computes_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="time_major=True"):
        tf.keras.layers.CuDNNLSTM(3, time_major=True)


def test_functions_of_loaded_models_see_their_modules() -> None:
    """As in TensorFlow 1.15: a model with a Lambda loads where the module of its function is."""
    model = tf.keras.Sequential([tf.keras.layers.Lambda(lambda x: tf.square(x) + BIAS, input_shape=(1,))])
    (layer,) = model.get_config()["layers"]
    entries = "function_type module output_shape output_shape_type output_shape_module arguments"
    assert list(layer["config"])[-6:] == entries.split()
    assert layer["config"]["module"] == __name__ and layer["config"]["output_shape_module"] is None
    for loaded, expected in (
        (tf.keras.models.model_from_json(model.to_json()), 7.0),
        (tf.keras.models.model_from_json(model.to_json(), custom_objects={"BIAS": 1.0}), 5.0),
    ):
        assert loaded.predict([[2.0]]) == [[expected]]


@pytest.mark.parametrize("name", ["LocallyConnected1D", "LocallyConnected2D"])
def test_signatures_name_the_arguments(name: str) -> None:
    """Libraries read a layer's arguments from its signature, as TensorFlow 1.15's gives them."""
    parameters = inspect.signature(getattr(tf.keras.layers, name)).parameters
    expected = f"filters kernel_size strides padding data_format activation use_bias {KERNEL} {CONSTRAINTS}"
    assert list(parameters) == [*expected.split(), "implementation", "kwargs"]
    assert parameters["implementation"].default == 1
