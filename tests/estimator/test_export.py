"""Receivers and export outputs; the messages are TensorFlow 1.15.5's."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

export = tf.estimator.export


def texts() -> Any:
    return tf.placeholder(tf.string, [None])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: export.ClassificationOutput(), "At least one of scores and classes"),
        (lambda: export.ClassificationOutput(texts()), "scores must be a float32 Tensor"),
        (lambda: export.ClassificationOutput(classes=tf.ones([1])), "classes must be a string Tensor"),
        (lambda: export.RegressionOutput(texts()), "must be a float32 Tensor"),
        (lambda: export.PredictOutput({3: tf.ones([1])}), "key must be a string; got 3"),
        (lambda: export.PredictOutput({"a": 3}), "value must be a Tensor; got 3"),
        (
            lambda: export.ClassificationOutput(tf.ones([1])).as_signature_def({"a": tf.ones([1])}),
            "string Tensor",
        ),
        (
            lambda: export.RegressionOutput(tf.ones([1])).as_signature_def({"a": texts(), "b": texts()}),
            "string",
        ),
        (lambda: export.ServingInputReceiver(None, tf.ones([1])), "features must be defined"),
        (lambda: export.ServingInputReceiver(tf.ones([1]), None), "receiver_tensors must be defined"),
        (lambda: export.ServingInputReceiver({"a": 3}, tf.ones([1])), "feature a must be a Tensor"),
        (lambda: export.ServingInputReceiver(tf.ones([1]), {"a": 3}), "receiver_tensor a must be a Tensor"),
        (lambda: export.ServingInputReceiver(tf.ones([1]), tf.ones([1]), 3), "must be a dict: 3"),
        (lambda: export.TensorServingInputReceiver({"a": tf.ones([1])}, tf.ones([1])), "must be a Tensor"),
        (lambda: export.TensorServingInputReceiver(None, tf.ones([1])), "features must be defined"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_signatures_of_outputs() -> None:
    scores, examples = tf.ones([2, 3]), texts()
    classify = export.ClassificationOutput(scores, texts())
    signature = classify.as_signature_def({"examples": examples})
    assert signature.method_name == "tensorflow/serving/classify"
    assert signature.outputs["scores"].name == classify.scores.name and classify.classes.dtype == tf.string
    regress = export.RegressionOutput(scores)
    assert regress.as_signature_def(examples).outputs["outputs"].name == regress.value.name
    predict = export.PredictOutput(scores)
    assert list(predict.outputs) == ["output"]
    assert predict.as_signature_def({"x": scores}).method_name == "tensorflow/serving/predict"
    assert isinstance(predict, export.ExportOutput)


def test_receivers_name_single_tensors() -> None:
    receiver = export.ServingInputReceiver(tf.ones([1]), tf.ones([1]), {"other": tf.ones([2])})
    assert list(receiver.features) == ["feature"] and list(receiver.receiver_tensors) == ["input"]
    assert list(receiver.receiver_tensors_alternatives["other"]) == ["input"]
    assert export.TensorServingInputReceiver(tf.ones([3]), tf.ones([1])).features.shape == [3]


def test_examples_are_parsed() -> None:
    build = export.build_parsing_serving_input_receiver_fn({"x": tf.FixedLenFeature([1], tf.float32)}, 2)
    receiver = build()
    fed = receiver.receiver_tensors["examples"]
    assert fed.name == "input_example_tensor:0" and fed.shape == [2]
    example = tf.train.Example()
    example.features.feature["x"].float_list.value.append(3.0)
    with tf.Session() as session:
        values = session.run(receiver.features["x"], {fed: [example.SerializeToString()] * 2})
    assert values.tolist() == [[3.0], [3.0]]


def test_raw_features_are_fed() -> None:
    receiver = export.build_raw_serving_input_receiver_fn({"x": tf.ones([3, 4], name="x")}, 5)()
    assert receiver.features["x"].shape == [5, 4] and receiver.features["x"] is receiver.receiver_tensors["x"]
    build = tf.estimator.experimental.build_raw_supervised_input_receiver_fn(
        tf.ones([3]), {"y": tf.ones([3])}
    )
    assert set(build().receiver_tensors) == {"input", "y"}
    with pytest.raises(ValueError, match="distinct keys"):
        tf.estimator.experimental.build_raw_supervised_input_receiver_fn({"x": texts()}, {"x": texts()})
