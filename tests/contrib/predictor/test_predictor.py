"""Predictors of SavedModels and Estimators; the values follow from the models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

predictor = tf.contrib.predictor


@pytest.fixture
def folder(tmp_path: Path) -> str:
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        y = tf.multiply(x, tf.Variable(2.0), name="y")
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, path, {"in": x}, {"out": y})
    return path


def test_of_a_saved_model(folder: str) -> None:
    double = predictor.from_saved_model(folder)
    assert double({"in": [1.0, 2.0]})["out"].tolist() == [2.0, 4.0]
    assert double.graph is double.session.graph
    assert (list(double.feed_tensors), list(double.fetch_tensors)) == (["in"], ["out"])
    with pytest.raises(ValueError, match="unexpected keys"):
        double({"z": 1})
    named = predictor.from_saved_model(folder, input_names={"a": "x:0"}, output_names={"b": "y:0"})
    assert named({"a": [3.0]})["b"].tolist() == [6.0]
    with pytest.raises(ValueError, match="serving_default"):
        predictor.from_saved_model(folder, "other")
    with pytest.raises(ValueError):
        predictor.from_saved_model(folder, input_names={"a": "x:0"})
    with pytest.raises(ValueError):
        predictor.from_saved_model(folder, "a", input_names={"a": "x:0"}, output_names={"b": "y:0"})
    with pytest.raises(NotImplementedError, match="from_estimator"):
        predictor.from_contrib_estimator(None, None)


def model(features: Any, labels: Any, mode: Any) -> Any:
    weight = tf.get_variable("w", [], initializer=tf.constant_initializer(3.0))
    found = features["x"] * weight
    outputs = {"serving_default": tf.estimator.export.PredictOutput({"y": found})}
    loss = tf.reduce_sum(found)
    train = tf.train.get_global_step().assign_add(1).op
    return tf.estimator.EstimatorSpec(mode, {"y": found}, loss, train, export_outputs=outputs)


def receiver() -> Any:
    x = tf.placeholder(tf.float32, [None])
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def test_of_an_estimator(tmp_path: Path) -> None:
    estimator = tf.estimator.Estimator(model, str(tmp_path))
    with pytest.raises(ValueError, match="checkpoint"):
        predictor.from_estimator(estimator, receiver)
    inputs = tf.estimator.inputs.numpy_input_fn({"x": np.ones(2, np.float32)}, np.ones(2), shuffle=False)
    estimator.train(inputs, steps=1)
    triple = predictor.from_estimator(estimator, receiver)
    assert triple({"x": [2.0]})["y"].tolist() == [6.0]
    assert repr(triple).startswith("CoreEstimatorPredictor with feed tensors {'x': ")
    with pytest.raises(ValueError, match="output_key"):
        predictor.from_estimator(estimator, receiver, "other")
    with pytest.raises(TypeError):
        predictor.from_estimator(3, receiver)


def test_inputs_are_those_of_the_signature(tmp_path: Path) -> None:
    """A classification's is called `inputs`, whatever the receiver's name, as in TensorFlow 1.15.5."""
    columns = [tf.feature_column.numeric_column("x")]
    estimator = tf.estimator.LinearClassifier(columns, str(tmp_path))
    inputs = tf.estimator.inputs.numpy_input_fn({"x": np.ones(2, np.float32)}, np.ones(2), shuffle=False)
    estimator.train(inputs, steps=1)
    parse = tf.feature_column.make_parse_example_spec(columns)
    serving = tf.estimator.export.build_parsing_serving_input_receiver_fn(parse)
    number = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0]))
    example = tf.train.Example(features=tf.train.Features(feature={"x": number})).SerializeToString()
    found = predictor.from_estimator(estimator, serving)({"inputs": [example]})
    assert found["classes"].tolist() == [[b"0", b"1"]]
    named = predictor.from_estimator(estimator, serving, "predict")({"examples": [example]})
    assert np.array_equal(named["probabilities"], found["scores"])
