"""Losses and metrics of a model's tensors are layers of the model; results are TensorFlow 1.15.5's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]

_LAYERS = ["i", "d", "e", "tf_op_layer_Mean", "tf_op_layer_mul", "add_loss", "tf_op_layer_Sum", "add_metric"]


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def _model() -> Any:
    x = tf.keras.Input([5], name="i")
    hidden = tf.keras.layers.Dense(3, name="d")(x)
    model = tf.keras.Model(x, tf.keras.layers.Dense(2, name="e")(hidden))
    model.add_loss(tf.reduce_mean(hidden) * 0.1)
    model.add_metric(tf.reduce_sum(hidden), name="sum", aggregation="mean")
    return model


def _results(model: Any) -> tuple[list[str], list[float]]:
    model.compile("sgd", "mse")
    model.set_weights([np.full(each.shape, 0.1) for each in model.get_weights()])
    found = model.evaluate(np.ones([4, 5]), np.ones([4, 2]), verbose=0)
    return model.metrics_names, [float(value) for value in found]


def test_what_they_take_of_the_model_is_in_its_summary_and_configuration() -> None:
    model, lines = _model(), []
    assert [layer.name for layer in model.layers] == _LAYERS
    model.summary(print_fn=lines.append)
    assert (
        "add_loss (AddLoss)              ()                   0           tf_op_layer_mul[0][0]"
        in "".join(lines)
    )
    added = {layer["class_name"]: layer["config"] for layer in model.get_config()["layers"]}
    assert added["AddLoss"]["unconditional"] is False
    assert added["AddMetric"]["metric_name"] == "sum"
    assert added["AddMetric"]["aggregation"] == "mean"


def _copy(layer: Any) -> Any:
    return type(layer).from_config(layer.get_config())


def _saved(model: Any, folder: Path) -> Any:
    model.save(str(folder / "model.h5"))
    return tf.keras.models.load_model(str(folder / "model.h5"))


@pytest.mark.parametrize(
    "made",
    [
        lambda model, _: model,
        lambda model, _: tf.keras.Model.from_config(model.get_config()),
        lambda model, _: tf.keras.models.model_from_json(model.to_json()),
        lambda model, _: tf.keras.models.clone_model(model),
        lambda model, _: tf.keras.models.clone_model(model, clone_function=_copy),
        _saved,
    ],
    ids=["itself", "configuration", "text", "clone", "clone by a function", "file"],
)
def test_they_count_in_what_is_made_of_the_model(made: Callable[[Any, Path], Any], tmp_path: Path) -> None:
    model = made(_model(), tmp_path)
    assert [layer.name for layer in model.layers] == _LAYERS
    names, values = _results(model)
    assert names == ["loss", "sum"]
    np.testing.assert_allclose(values, [0.5184 + 0.06, 7.2], rtol=1e-5)


def test_a_loss_counts_where_the_model_is_called_within_another() -> None:
    x = tf.keras.Input([3])
    model = tf.keras.Model(x, tf.keras.layers.Dense(3)(x))
    model.add_loss(tf.reduce_mean(model.output))
    y = tf.keras.Input([3])
    outer = tf.keras.Model(y, model(y))
    outer.compile("sgd", "mse")
    outer.set_weights([np.full(each.shape, 0.1) for each in outer.get_weights()])
    found = outer.evaluate(np.ones([4, 3]), np.ones([4, 3]), verbose=0)
    np.testing.assert_allclose(found, 0.36 + 0.4, rtol=1e-5)


def test_a_model_trains_by_what_was_added_alone() -> None:
    x = tf.keras.Input([5])
    y = tf.keras.layers.Dense(5)(tf.keras.layers.Dense(2)(x))
    model = tf.keras.Model(x, y)
    model.add_loss(tf.reduce_mean(tf.keras.losses.mse(x, y)))
    assert model.layers[-1].name == "add_loss"
    model.compile("adam")
    model.set_weights([np.full(each.shape, 0.1) for each in model.get_weights()])
    losses = model.fit(np.ones([4, 5]), epochs=2, verbose=0).history["loss"]
    np.testing.assert_allclose(losses, [0.6083999, 0.6030890], rtol=1e-5)


def test_what_depends_on_no_layer_is_a_loss_of_the_model_itself() -> None:
    x = tf.keras.Input([2])
    model = tf.keras.Model(x, tf.keras.layers.Dense(1, name="d")(x))
    model.add_loss(tf.reduce_sum(model.get_layer("d").kernel))
    assert [type(layer).__name__ for layer in model.layers] == ["InputLayer", "Dense"]
    assert len(model.losses) == 1
