"""Metrics of `tf.contrib.metrics` have 1.15.5's values, and the names of its variables and nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.metrics.metric_programs import answers

import flowstone as tf

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/contrib/metrics.json").read_text(encoding="utf-8"))
metrics = tf.contrib.metrics


def test_names_variables_and_values() -> None:
    found = answers(tf)
    assert list(found) == list(GOLDEN)
    for name, expected in GOLDEN.items():
        assert found[name]["variables"] == expected["variables"], name
        assert found[name]["names"] == expected["names"], name
        for value, golden in zip(found[name]["values"], expected["values"]):
            np.testing.assert_allclose(value, golden, rtol=1e-5, atol=2e-6, err_msg=name)


def run_batches(metric: Any, batches: Any) -> Any:
    """The value after these batches, each the arguments of `metric`."""
    with tf.Graph().as_default(), tf.Session() as session:
        given = [tf.placeholder(tf.float32, [None]) for _ in batches[0]]
        value, update = metric(*given)
        session.run(tf.local_variables_initializer())
        for batch in batches:
            session.run(update, dict(zip(given, batch)))
        return session.run(value)


def test_batches_of_covariance_are_one_sample() -> None:
    random = np.random.RandomState(0)
    batches = [random.rand(2, size) for size in (3, 1, 7)]
    whole = np.concatenate(batches, axis=1)
    covariance = run_batches(metrics.streaming_covariance, batches)
    assert covariance == pytest.approx(np.cov(whole)[0, 1], rel=1e-5)
    correlation = run_batches(metrics.streaming_pearson_correlation, batches)
    assert correlation == pytest.approx(np.corrcoef(whole)[0, 1], rel=1e-5)


def test_concat_of_growing_streams() -> None:
    batches = [[np.arange(size, dtype=np.float32)] for size in (1, 3, 5)]
    assert run_batches(metrics.streaming_concat, batches).tolist() == [0, 0, 1, 2, 0, 1, 2, 3, 4]


def test_strict_recall_at_precision() -> None:
    labels = [False, True, False, True, True, False, True, False]
    scores = np.arange(1, 9, dtype=np.float32) / 10
    for target, expected in ((0.2, 0.25), (0.5, 1.0), (0.6, 0.75), (0.7, 0.0)):
        with tf.Graph().as_default(), tf.Session() as session:
            value, update = metrics.recall_at_precision(
                tf.constant(labels), tf.constant(scores), target, strict_mode=True
            )
            session.run(tf.local_variables_initializer())
            session.run(update)
            assert session.run(value) == pytest.approx(expected)


def test_several_together() -> None:
    assert metrics.aggregate_metrics((1, 2), (3, 4)) == ([1, 3], [2, 4])
    assert metrics.aggregate_metric_map({"a": (1, 2), "b": (3, 4)}) == ({"a": 1, "b": 3}, {"a": 2, "b": 4})
    with pytest.raises(ValueError, match="at least one"):
        metrics.aggregate_metrics()


def test_accuracy_and_confusion_of_one_batch() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        first, second = tf.constant([0, 1, 0, 1]), tf.constant([0, 1, 1, 1])
        assert session.run(metrics.accuracy(first, second)) == 0.75
        assert session.run(metrics.accuracy(first, second, [1.0, 1.0, 2.0, 1.0])) == pytest.approx(0.6)
        assert session.run(metrics.confusion_matrix(first, second)).tolist() == [[1, 1], [0, 2]]
        with pytest.raises(ValueError, match="bool, integer, or string"):
            metrics.accuracy([1.0], [1.0])
        with pytest.raises(ValueError, match="should match"):
            metrics.accuracy([1], [True])


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("streaming_curve_points", {"curve": "X"}, "either ROC or PR"),
        ("recall_at_precision", {"precision": 1.7}, r"range \[0, 1\]"),
        ("precision_at_recall", {"target_recall": -1.0}, r"range \[0, 1\]"),
    ],
)
def test_refused(name: str, arguments: dict[str, Any], message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        getattr(metrics, name)(tf.constant([True]), tf.constant([0.5]), **arguments)


def test_concat_refuses() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="axis = 2"):
            metrics.streaming_concat(tf.ones([2, 2]), axis=2)
        with pytest.raises(ValueError, match="statically known"):
            metrics.streaming_concat(tf.placeholder(tf.float32, [None, None]))
        with pytest.raises(ValueError, match=">= 2"):
            metrics.cohen_kappa([0], [0], 1)
        with pytest.raises(ValueError, match="at least 1"):
            metrics.streaming_sparse_average_precision_at_top_k(tf.constant(1, tf.int64), [[1]])


def test_before_the_first_batch() -> None:
    """TensorFlow 1.15's: the rate of hits of nothing is 1, and kappa is a float64."""
    with tf.Graph().as_default(), tf.Session() as session:
        points, _ = metrics.streaming_curve_points(tf.constant([True]), tf.constant([0.5]), num_thresholds=3)
        kappa, _ = metrics.cohen_kappa([0], [0], 2)
        session.run(tf.local_variables_initializer())
        assert session.run(points).tolist() == [[0, 1]] * 3
        assert session.run(kappa) == 0 and kappa.dtype == tf.float64
