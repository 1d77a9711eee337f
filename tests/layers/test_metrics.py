"""Metrics give TensorFlow 1.15's values batch by batch, variables, nodes, collections and errors."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from tests.layers import metric_programs
from tests.layers.test_losses import GOLDEN, golden_lines

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

VALUES = np.load(GOLDEN / "metrics.npz")
LINES = golden_lines("metrics.txt")


def test_every_program_has_its_goldens() -> None:
    assert list(VALUES.files) == list(LINES) == list(metric_programs.PROGRAMS)


def test_every_metric_has_a_program() -> None:
    public = {name for name in dir(tf.metrics) if not name.startswith("_")}
    assert public <= set(metric_programs.PROGRAMS)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("name", metric_programs.PROGRAMS)
def test_values(name: str, known: bool) -> None:
    np.testing.assert_allclose(metric_programs.values(tf, name, known), VALUES[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", metric_programs.PROGRAMS)
def test_nodes_and_collections(name: str) -> None:
    assert metric_programs.node_lines(tf, name) == LINES[name]


def run(session: Any, pair: Any, feeds: Any = None) -> Any:
    """What the update of one batch returns."""
    session.run(tf.local_variables_initializer())
    return session.run(pair[1], feeds)


# ---- variables and collections


def test_variables_are_local_and_of_metrics() -> None:
    tf.metrics.mean([1.0])
    tf.metrics.auc([True], [0.5])
    local = tf.get_collection(tf.GraphKeys.LOCAL_VARIABLES)
    assert tf.get_collection(tf.GraphKeys.METRIC_VARIABLES) == local
    assert not tf.global_variables() and not tf.trainable_variables()
    assert [v.name for v in local[:3]] == ["mean/total:0", "mean/count:0", "auc/true_positives:0"]


def test_each_call_has_its_own_variables() -> None:
    first, second = tf.metrics.mean([1.0]), tf.metrics.mean([3.0])
    with tf.variable_scope("evaluation"):
        third = tf.metrics.mean([5.0], name="mine")
    assert [v.op.name for v in tf.local_variables()][::2] == [
        "mean/total",
        "mean_1/total",
        "evaluation/mine/total",
    ]
    assert third[0].op.name == "evaluation/mine/value"
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run([first[1], second[1]])
        assert session.run([first[0], second[0], third[0]]) == [1, 3, 0]


def test_initializing_forgets_what_was_seen() -> None:
    x = tf.placeholder(tf.float32)
    value, update = tf.metrics.mean(x)
    with tf.Session() as session:
        for _ in range(2):
            session.run(tf.local_variables_initializer())
            assert session.run(update, {x: [1.0, 3.0]}) == 2
            assert session.run(update, {x: [5.0]}) == 3
            assert session.run(value) == 3


def test_resource_variables_give_the_same() -> None:
    x = tf.placeholder(tf.float32)
    with tf.variable_scope("resources", use_resource=True):
        value, update = tf.metrics.mean(x)
        matrix = tf.metrics.mean_iou([0, 1], [0, 0], 2)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(update, {x: [1.0, 3.0]}) == 2
        assert session.run(update, {x: [5.0]}) == 3
        assert session.run(value) == 3
        assert session.run(matrix[1]).tolist() == [[1, 0], [1, 0]]


# ---- shapes


def test_ranks_that_only_the_step_knows() -> None:
    labels, predictions, weights = (tf.placeholder(t) for t in (tf.int64, tf.int64, tf.float32))
    metric = tf.metrics.accuracy(labels, predictions, weights)
    with tf.Session() as session:
        for shape in ([3], [3, 1]):
            for other in ([3], [3, 1]):
                for weight in ([], [3], [3, 1]):
                    feeds = {
                        labels: np.reshape([1, 2, 3], shape),
                        predictions: np.reshape([1, 2, 0], other),
                        weights: np.resize([1.0, 2, 1], weight),
                    }
                    assert run(session, metric, feeds) == pytest.approx(0.75 if weight else 2 / 3)
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(session, metric, {labels: [1, 2], predictions: [1, 2], weights: [1.0, 2, 3]})


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.metrics.accuracy([1, 2], [1, 2, 3]),
        lambda: tf.metrics.mean([1.0, 2.0], [1.0, 2.0, 3.0]),
        lambda: tf.metrics.mean_relative_error([1.0], [2.0], [1.0, 2.0]),
        lambda: tf.metrics.mean_iou([1, 2], [1], 3),
        lambda: tf.metrics.mean_tensor(tf.placeholder(tf.float32, [None])),
        lambda: tf.metrics.recall([True], [[[True]]]),
        lambda: tf.metrics.recall_at_k([[[1]]], [[0.5, 0.5]], 1),
        lambda: tf.metrics.average_precision_at_k([1], [[0.5, 0.5]], 0),
        lambda: tf.metrics.auc([True], [0.5], curve="round"),
        lambda: tf.metrics.auc([True], [0.5], summation_method="guessed"),
        lambda: tf.metrics.auc([True], [0.5], summation_method="careful"),
        lambda: tf.metrics.sensitivity_at_specificity([True], [0.5], 1.5),
        lambda: tf.metrics.specificity_at_sensitivity([True], [0.5], -0.5),
    ],
)
def test_what_is_known_not_to_fit(make) -> None:
    with pytest.raises(ValueError):
        make()


def test_predictions_that_are_no_shares() -> None:
    x = tf.placeholder(tf.float32, [2])
    metric = tf.metrics.precision_at_thresholds([0, 1], x, [0.5])
    with tf.Session() as session:
        for wrong in ([0.5, 1.5], [-0.5, 0.5]):
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"predictions must be in \[0, 1\]"):
                run(session, metric, {x: wrong})


# ---- values at the edges


def test_nothing_seen_and_nothing_relevant() -> None:
    values = {
        "mean": tf.metrics.mean(tf.zeros([0])),
        "accuracy": tf.metrics.accuracy(tf.zeros([0]), tf.zeros([0])),
        "precision": tf.metrics.precision([True], [False]),
        "recall": tf.metrics.recall([False], [True]),
        "mean_iou": tf.metrics.mean_iou(tf.zeros([0], tf.int64), tf.zeros([0], tf.int64), 3),
    }
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run([update for _, update in values.values()])
        assert session.run({name: value for name, (value, _) in values.items()}) == dict.fromkeys(values, 0)


def test_no_labels_have_no_recall() -> None:
    labels = tf.SparseTensor(tf.zeros([0, 2], tf.int64), tf.zeros([0], tf.int64), [1, 2])
    recall = tf.metrics.recall_at_k(labels, [[0.1, 0.9]], 1)
    precision = tf.metrics.precision_at_k(labels, [[0.1, 0.9]], 1)
    with tf.Session() as session:
        assert np.isnan(run(session, recall))
        assert run(session, precision) == 0


def test_repeated_labels_count_once() -> None:
    recall = tf.metrics.recall_at_k([[3, 3, 3, 1]], [[0.1, 0.2, 0.0, 0.9]], 1)
    precision = tf.metrics.precision_at_top_k([[3, 3, 1]], [[3, 3, 0]])
    with tf.Session() as session:
        assert run(session, recall) == 0.5
        assert run(session, precision) == 0.5


def test_own_thresholds_of_an_area() -> None:
    given = [0.25, 0.5, 0.75]
    labels, predictions = [False, True, True, False], [0.1, 0.9, 0.4, 0.6]
    mine = tf.metrics.auc(labels, predictions, thresholds=given)
    even = tf.metrics.auc(labels, predictions, num_thresholds=5)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(mine[1]) == session.run(even[1])


def test_the_trapezoids_of_precision_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="tensorflow"):
        tf.metrics.auc([True], [0.5], curve="PR")
    assert "careful_interpolation" in caplog.messages[0]


@pytest.mark.parametrize("metric", [tf.metrics.precision_at_k, tf.metrics.recall_at_k])
def test_labels_of_other_examples_are_refused(metric: Any) -> None:
    scores = tf.constant([[0.1, 0.9], [0.8, 0.2]])
    with pytest.raises(ValueError, match="incompatible"):
        metric(tf.constant([[0]], tf.int64), scores, 1)
    _, update = metric(tf.placeholder_with_default(tf.constant([0], tf.int64), None), scores, 1)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="Mismatched shapes"):
            session.run(update)
