"""The parts of heads, on numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

Est = tf.estimator


def value(tensor: Any) -> Any:
    with tf.Session() as session:
        session.run(
            [tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()]
        )
        return session.run(tensor)


def updated(metrics: dict[str, Any]) -> dict[str, Any]:
    with tf.Session() as session:
        session.run([tf.local_variables_initializer(), tf.tables_initializer()])
        session.run([metric.updates for metric in metrics.values()])
        return session.run({name: metric.result() for name, metric in metrics.items()})


def test_a_binary_head() -> None:
    head = Est.BinaryClassHead(weight_column="w", name="h")
    logits, labels = tf.constant([[0.0], [math.log(3.0)]]), tf.constant([0, 1])
    features = {"w": tf.constant([1.0, 3.0])}
    losses = [math.log(2.0), -math.log(0.75)]
    expected = (losses[0] + 3 * losses[1]) / 2
    np.testing.assert_allclose(value(head.loss(labels, logits, features)), expected, rtol=1e-5)
    np.testing.assert_allclose(
        value(head.loss(labels, logits, features, regularization_losses=[tf.constant(1.0)])),
        expected + 1,
        rtol=1e-5,
    )
    assert (head.logits_dimension, head.name, head.loss_reduction) == (1, "h", "sum_over_batch_size")
    predictions = value(head.predictions(logits, ["probabilities", "classes"]))
    np.testing.assert_allclose(predictions["probabilities"], [[0.5, 0.5], [0.25, 0.75]], rtol=1e-5)
    assert predictions["classes"].tolist() == [[b"0"], [b"1"]]
    found = updated(head.update_metrics(head.metrics(), features, logits, labels))
    np.testing.assert_allclose(found["average_loss/h"], (losses[0] + 3 * losses[1]) / 4, rtol=1e-5)
    np.testing.assert_allclose(found["label/mean/h"], 0.75)
    assert found["accuracy/h"] == 1.0


def test_a_multi_class_head_with_texts() -> None:
    head = Est.MultiClassHead(3, label_vocabulary=["a", "b", "c"])
    logits, labels = tf.zeros([2, 3]), tf.constant(["a", "c"])
    np.testing.assert_allclose(value(head.loss(labels, logits)), math.log(3.0), rtol=1e-5)
    metrics = updated(head.update_metrics(head.metrics(), {}, logits, labels))
    assert metrics["accuracy"] == 0.5
    assert (
        value(head.predictions(logits, ["all_classes"]))["all_classes"].tolist() == [[b"a", b"b", b"c"]] * 2
    )


def test_heads_of_regression() -> None:
    logits, labels = tf.constant([[0.0], [1.0]]), tf.constant([1.0, 1.0])
    assert value(Est.RegressionHead().loss(labels, logits)) == 0.5
    poisson = Est.PoissonRegressionHead(compute_full_loss=False)
    np.testing.assert_allclose(value(poisson.loss(labels, logits)), (1 + math.e - 1) / 2, rtol=1e-5)
    np.testing.assert_allclose(
        value(poisson.predictions(logits)["predictions"]), [[1.0], [math.e]], rtol=1e-5
    )
    logistic = Est.LogisticRegressionHead("w")
    loss = logistic.loss(labels, tf.zeros([2, 1]), {"w": tf.constant([[2], [0]])})
    np.testing.assert_allclose(value(loss), math.log(2.0), rtol=1e-5)
    found = updated(poisson.update_metrics(poisson.metrics(), {}, logits, labels))
    np.testing.assert_allclose(found["prediction/mean"], (1 + math.e) / 2, rtol=1e-5)


def test_a_multi_label_head_takes_sparse_and_dense_labels() -> None:
    head = Est.MultiLabelHead(
        2, thresholds=[0.5], label_vocabulary=["a", "b"], classes_for_class_based_metrics=["b"]
    )
    logits = tf.zeros([2, 2])
    sparse = tf.SparseTensor([[0, 0], [1, 1]], tf.constant(["a", "b"]), [2, 2])
    for labels in (sparse, tf.constant([[1, 0], [0, 1]])):
        np.testing.assert_allclose(value(head.loss(labels, logits)), math.log(2.0), rtol=1e-5)
    metrics = updated(head.update_metrics(head.metrics(), {}, logits, sparse))
    assert metrics["accuracy/positive_threshold_0.5"] == 0.5 and metrics["probability_mean/b"] == 0.5


def test_several_heads_share_the_logits() -> None:
    head = Est.MultiHead([Est.RegressionHead(name="r"), Est.BinaryClassHead(name="b")], [2.0, 1.0])
    labels = {"r": tf.constant([1.0]), "b": tf.constant([1])}
    expected = 2.0 + math.log(2.0)
    np.testing.assert_allclose(value(head.loss(labels, tf.zeros([1, 2]))), expected, rtol=1e-5)
    by_name = {"r": tf.zeros([1, 1]), "b": tf.zeros([1, 1])}
    np.testing.assert_allclose(value(head.loss(labels, by_name)), expected, rtol=1e-5)
    assert head.logits_dimension == 2 and head.name == "r_b"
    assert ("b", "class_ids") in head.predictions(by_name)
    metrics = updated(head.update_metrics(head.metrics(), {}, by_name, labels))
    assert metrics["average_loss/r"] == 1.0


def test_a_head_makes_specs_with_a_programs_loss() -> None:
    def loss_fn(labels: Any, logits: Any, features: Any) -> Any:
        return tf.abs(labels - logits)[:, 0] + features["x"]

    head = Est.RegressionHead(loss_fn=loss_fn, inverse_link_fn=tf.square)
    features, logits, labels = {"x": tf.ones([2])}, tf.constant([[2.0], [3.0]]), tf.constant([[1.0], [1.0]])
    spec = head.create_estimator_spec(
        features, "eval", logits, labels, regularization_losses=[tf.constant(5.0)]
    )
    assert value(spec.loss) == 7.5 and "regularization_loss" in spec.eval_metric_ops
    assert value(spec.predictions["predictions"]).tolist() == [[4.0], [9.0]]
    train = head.create_estimator_spec(features, "train", logits, labels, train_op_fn=lambda loss: loss)
    assert train.train_op is train.loss
    outputs = head.create_estimator_spec(features, "infer", logits).export_outputs
    assert sorted(outputs) == ["predict", "regression", "serving_default"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Est.BinaryClassHead(thresholds=[1.0]), r"thresholds not in \(0, 1\)"),
        (lambda: Est.BinaryClassHead(loss_fn=lambda labels: 1), "must contain argument: logits"),
        (lambda: Est.BinaryClassHead(loss_fn=lambda labels, logits, z: 1), r"unexpected args: \['z'\]"),
        (lambda: Est.MultiClassHead(2), "n_classes must be > 2"),
        (lambda: Est.MultiLabelHead(1), "n_classes must be > 1"),
        (lambda: Est.MultiLabelHead(3, classes_for_class_based_metrics=[3]), "must be in range"),
        (lambda: Est.MultiHead([]), "Must specify heads"),
        (lambda: Est.MultiHead([Est.RegressionHead()]), "must have name specified"),
        (lambda: Est.MultiHead([Est.RegressionHead(name="a")], [1.0, 2.0]), "must have the same size"),
        (lambda: Est.MultiHead([Est.RegressionHead(name="a")] * 2), "must have unique names"),
        (lambda: Est.RegressionHead().loss(None, tf.ones([2, 1])), "You must provide a labels Tensor"),
        (lambda: Est.RegressionHead().loss(tf.ones([2, 2]), tf.ones([2, 1])), "Mismatched label shape"),
        (lambda: Est.RegressionHead().loss(tf.ones([2]), tf.ones([2, 2])), "logits shape must be"),
        (lambda: Est.MultiClassHead(3).loss(tf.ones([2]), tf.ones([2, 3])), "Labels dtype should be integer"),
        (
            lambda: Est.RegressionHead(weight_column="w").loss(tf.ones([2]), tf.ones([2, 1]), {}),
            "Feature w is not",
        ),
        (lambda: Est.RegressionHead().metrics()["average_loss"].result(), "call update_metrics first"),
        (
            lambda: Est.RegressionHead().create_estimator_spec({}, "train", tf.ones([2, 1]), tf.ones([2])),
            "cannot both be None",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_labels_out_of_range_are_an_error_of_the_step() -> None:
    labels = tf.placeholder_with_default([3], [1])
    loss = Est.MultiClassHead(3).loss(labels, tf.zeros([1, 3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Labels must be < n_classes"):
        value(loss)


def test_a_head_is_abstract() -> None:
    with pytest.raises(TypeError):
        Est.Head("h", None, "sum", None)
