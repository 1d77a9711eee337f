"""`MetricSpec`: how metric functions are called. The answers are TensorFlow 1.15.5's."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

MetricSpec = tf.contrib.learn.MetricSpec


def usual(predictions: Any, labels: Any, weights: Any = None) -> Any:
    return predictions, labels, weights


def older(targets: Any, prediction: Any) -> Any:
    return targets, prediction


def positional(value: Any, labels: Any) -> Any:
    return value, labels


def only_predictions(predictions: Any) -> Any:
    return predictions


def test_parameters_are_found_by_name() -> None:
    features = {"w": 5}
    assert MetricSpec(usual).create_metric_ops(features, 2, 3) == (3, 2, None)
    assert MetricSpec(usual, weight_key="w").create_metric_ops(features, 2, 3) == (3, 2, 5)
    assert MetricSpec(older).create_metric_ops(features, 2, 3) == (2, 3)
    assert MetricSpec(positional).create_metric_ops(features, 2, 3) == (3, 2)
    assert MetricSpec(only_predictions).create_metric_ops(features, 2, 3) == 3
    weighed = functools.partial(usual, weights=9)
    assert MetricSpec(weighed).create_metric_ops(features, 2, 3) == (3, 2, 9)
    with pytest.raises(ValueError, match=r"missing from only_predictions\(\('predictions',\)\)"):
        MetricSpec(only_predictions, label_key="l")
    with pytest.raises(ValueError, match="missing from usual"):
        MetricSpec(weighed, weight_key="w")


def test_keys_choose_parts() -> None:
    spec = MetricSpec(usual, prediction_key="p", label_key="l", weight_key="w")
    assert spec.create_metric_ops({"w": 5}, {"l": 2}, {"p": 3}) == (3, 2, 5)
    assert (spec.prediction_key, spec.label_key, spec.weight_key) == ("p", "l", "w")
    assert str(spec) == "MetricSpec(metric_fn=usual, prediction_key=p, label_key=l, weight_key=w)"
    assert spec.metric_fn(1, 2, 3) == (1, 2, 3)
    with pytest.raises(KeyError, match="Key 'l' missing"):
        spec.create_metric_ops({"w": 5}, {"q": 2}, {"p": 3})
    with pytest.raises(KeyError, match="w"):
        spec.create_metric_ops({"v": 5}, {"l": 2}, {"p": 3})
    with pytest.raises(ValueError, match="requires labels dict, got 2"):
        spec.create_metric_ops({"w": 5}, 2, {"p": 3})
    with pytest.raises(ValueError, match="requires predictions tensor or single element dict"):
        MetricSpec(usual).create_metric_ops({}, 2, {"p": 3, "q": 4})
    assert MetricSpec(usual).create_metric_ops({}, {"l": 2}, {"p": 3}) == (3, 2, None)


def test_a_metric_of_tensors() -> None:
    spec = MetricSpec(tf.metrics.accuracy, prediction_key="classes")
    value, update = spec.create_metric_ops({}, tf.constant([1, 0]), {"classes": tf.constant([1, 1])})
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(update) == 0.5 and session.run(value) == 0.5


def test_interfaces_are_abstract() -> None:
    assert tf.contrib.learn.Evaluable.__abstractmethods__ == {"model_dir", "evaluate"}
    assert tf.contrib.learn.Trainable.__abstractmethods__ == {"fit"}
    with pytest.raises(TypeError):
        tf.contrib.learn.Evaluable()
