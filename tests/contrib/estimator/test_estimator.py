"""Extended Estimators, exports by mode, hooks that end training early."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.estimator.canned.metric_keys import MetricKeys
from flowstone.estimator.canned.prediction_keys import PredictionKeys
from flowstone.framework.names.refusals import NotInGraphModeError

contrib = tf.contrib.estimator
experimental = tf.estimator.experimental


def model(features: Any, labels: Any, mode: str) -> Any:
    w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    predictions = features["x"] * w
    loss = None if labels is None else tf.reduce_mean(tf.square(predictions - labels))
    train_op = None
    if mode == "train":
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, {"p": predictions}, loss, train_op)


def data() -> Any:
    return tf.data.Dataset.from_tensors(({"x": [1.0, 2.0]}, [1.0, 2.0])).repeat(20)


@pytest.fixture
def estimator(tmp_path: Path) -> Any:
    config = tf.estimator.RunConfig(str(tmp_path), save_checkpoints_steps=5)
    return tf.estimator.Estimator(model, config=config)


def test_metrics_are_added(estimator: Any) -> None:
    def metric_fn(features: Any, labels: Any, predictions: Any) -> Any:
        return {"largest": tf.metrics.mean(tf.reduce_max(features["x"] + labels + predictions["p"]))}

    assert contrib.add_metrics is tf.estimator.add_metrics
    results = contrib.add_metrics(estimator, metric_fn).evaluate(data, steps=1)
    assert results["largest"] == 4.0 and results["loss"] == 2.5
    with pytest.raises(ValueError, match=r"not expected args: \['other'\]"):
        contrib.add_metrics(estimator, lambda other: {})


def test_features_come_with_the_predictions(estimator: Any) -> None:
    assert next(contrib.forward_features(estimator, "x").predict(data)) == {"p": 0.0, "x": 1.0}
    sparse = tf.estimator.Estimator(
        lambda features, mode: tf.estimator.EstimatorSpec(mode, {"p": tf.ones([1])})
    )

    def input_fn() -> Any:
        return {"s": tf.SparseTensor([[0, 1]], [5], [1, 2])}

    found = next(contrib.forward_features(sparse, sparse_default_values={"s": -1}).predict(input_fn))
    assert found["s"].tolist() == [-1, 5]
    for arguments, error, message in (
        ((estimator, 3), TypeError, "keys should be either"),
        ((estimator, ["z"]), ValueError, "should be exist in features"),
        ((estimator, ["p"]), ValueError, "should be exist in features"),
    ):
        with pytest.raises(error, match=message):
            next(contrib.forward_features(*arguments).predict(data))
    with pytest.raises(ValueError, match="should be a Tensor"):
        next(contrib.forward_features(sparse).predict(input_fn))


def test_gradients_are_clipped_together() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable([3.0, 4.0])
        optimizer = contrib.clip_gradients_by_norm(tf.train.MomentumOptimizer(1.0, 0.9), 1.0)
        train = optimizer.minimize(tf.reduce_sum(v * [6.0, 8.0]))
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(v), [2.4, 3.2], rtol=1e-5)
        assert optimizer.get_slot_names() == ["momentum"] and optimizer.variables()
        assert optimizer.get_slot(v, "momentum").shape == [2]


def test_one_mode_is_exported(estimator: Any, tmp_path: Path) -> None:
    estimator.train(data, steps=1)
    build = contrib.build_supervised_input_receiver_fn_from_input_fn(data)
    path = contrib.export_saved_model_for_mode(estimator, str(tmp_path / "one"), build, mode="eval")
    with tf.Session(graph=tf.Graph()) as session:
        meta = tf.saved_model.loader.load(session, ["eval"], path.decode())
    assert sorted(meta.signature_def["eval"].inputs) == ["label", "x"]
    again = contrib.export_all_saved_models(estimator, str(tmp_path / "all"), {"train": build})
    assert (Path(again.decode()) / "saved_model.pb").exists()


@pytest.mark.parametrize(
    ("make", "arguments", "step"),
    [
        (experimental.stop_if_lower_hook, ("loss", 0.5), 10),
        (experimental.stop_if_higher_hook, ("loss", 0.001), 5),
        (experimental.stop_if_no_increase_hook, ("loss", 5), 10),
        (experimental.stop_if_no_decrease_hook, ("loss", 5), 20),
    ],
)
def test_training_ends_by_what_evaluations_found(
    make: Any, arguments: Any, step: int, estimator: Any
) -> None:
    metric, value = arguments
    for at, loss in ((5, 0.6), (10, 0.4), (15, 0.3)):
        writer = tf.summary.FileWriter(estimator.eval_dir(), filename_suffix=f".{at}")
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=loss)]), at)
        writer.close()
    hook = make(estimator, metric, value, min_steps=0, run_every_secs=None, run_every_steps=1)
    estimator.train(data, hooks=[hook])
    assert list(contrib.read_eval_metrics(estimator.eval_dir())) == [5, 10, 15]
    expected = 20 if make is experimental.stop_if_no_decrease_hook else 1
    assert estimator.get_variable_value("global_step") == expected


def test_training_ends_when_a_function_says_so(estimator: Any) -> None:
    asked: list[int] = []

    def should_stop() -> bool:
        asked.append(1)
        return len(asked) == 2

    hook = experimental.make_early_stopping_hook(
        estimator, should_stop, run_every_secs=None, run_every_steps=2
    )
    estimator.train(data, hooks=[hook])
    assert estimator.get_variable_value("global_step") == 3
    with pytest.raises(TypeError, match="must have type"):
        experimental.make_early_stopping_hook(3, should_stop)
    with pytest.raises(ValueError, match="Only one of"):
        experimental.make_early_stopping_hook(estimator, should_stop, 1, 1)


def test_training_ends_at_a_checkpoints_step(estimator: Any) -> None:
    estimator.train(data, hooks=[experimental.make_stop_at_checkpoint_step_hook(estimator, 4)])
    assert estimator.get_variable_value("global_step") == 4


def test_training_is_evaluated_without_checkpoints(estimator: Any) -> None:
    hook = experimental.InMemoryEvaluatorHook(estimator, data, steps=2, name="now", every_n_iter=2)
    estimator.train(data, hooks=[hook], steps=4)
    metrics = contrib.read_eval_metrics(estimator.eval_dir("now"))
    assert list(metrics) == [0, 2, 4]
    np.testing.assert_allclose(metrics[0]["loss"], 2.5)
    assert metrics[4]["loss"] < metrics[2]["loss"] < 2.5
    with pytest.raises(ValueError, match="invalid every_n_iter=0"):
        experimental.InMemoryEvaluatorHook(estimator, data, every_n_iter=0)


@pytest.mark.parametrize("name", ["RNNClassifier", "RNNEstimator", "SavedModelEstimator"])
def test_other_names_say_what_to_use(name: str) -> None:
    with pytest.raises(NotInGraphModeError, match=f"no tf.contrib.estimator.{name}: use "):
        getattr(contrib, name)()


def test_the_keys_are_the_names_that_heads_use() -> None:
    with tf.Graph().as_default():
        head = contrib.binary_classification_head(thresholds=[0.25])
        spec = head.create_estimator_spec({}, "eval", tf.zeros([1, 1]), tf.ones([1]))
    for key in (
        "ACCURACY",
        "ACCURACY_BASELINE",
        "AUC",
        "AUC_PR",
        "LOSS_MEAN",
        "LABEL_MEAN",
        "PREDICTION_MEAN",
    ):
        assert getattr(MetricKeys, key) in spec.eval_metric_ops
    assert MetricKeys.ACCURACY_AT_THRESHOLD % 0.25 in spec.eval_metric_ops
    for key in (
        "LOGITS",
        "LOGISTIC",
        "PROBABILITIES",
        "CLASS_IDS",
        "CLASSES",
        "ALL_CLASSES",
        "ALL_CLASS_IDS",
    ):
        assert getattr(PredictionKeys, key) in spec.predictions
