"""DynamicRnnEstimator and LogisticRegressor; numbers are TensorFlow 1.15.5's for the same inputs and
weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib.learn.estimators import dynamic_rnn_estimator, rnn_common
from flowstone.contrib.learn.estimators.rnn_common import PredictionType, RNNKeys

X = np.random.RandomState(0).rand(4, 5, 2).astype(np.float32)
STEPS = np.tile([0, 1, 1, 0, 1], [4, 1])
CLASSIFICATION, REGRESSION = 1, 2
SINGLE, MULTIPLE = PredictionType.SINGLE_VALUE, PredictionType.MULTIPLE_VALUE


def columns(name: str, size: int) -> list[Any]:
    return [tf.contrib.layers.real_valued_column(name, dimension=size)]


def features() -> dict[str, Any]:
    whole = tf.constant([[1.0], [2.0], [3.0], [4.0]])
    return {"a": tf.constant(X), "c": whole, RNNKeys.SEQUENCE_LENGTH_KEY: tf.constant([5, 3, 2, 4])}


def made(problem_type: int, prediction_type: int, **arguments: Any) -> Any:
    arguments = {"num_units": 3, **arguments}
    return tf.contrib.learn.DynamicRnnEstimator(problem_type, prediction_type, columns("a", 2), **arguments)


def begun(session: tf.Session) -> None:
    """Gives each variable of the model half the cosines of its elements' places."""
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for each in tf.trainable_variables():
        shape = each.shape.as_list()
        each.load(np.cos(np.arange(np.prod(shape))).reshape(shape) * 0.5, session)


MULTI_RNN = {"context": True, "num_units": [3, 2], "optimizer": "Momentum", "momentum": 0.9}


@pytest.mark.parametrize(
    ("problem", "prediction", "arguments", "labels", "name", "loss", "bias", "accuracy"),
    [
        (CLASSIFICATION, SINGLE, {"num_classes": 3}, [0, 1, 2, 1], "SingleValueDynamicRNNClassifier",
         1.1277509, 0.56207776, 0.25),
        (CLASSIFICATION, MULTIPLE, {"num_classes": 2, "cell_type": "lstm"}, STEPS,
         "MultiValueDynamicRNNClassifier", 0.69748706, 0.49926323, 0.5714286),
        (REGRESSION, SINGLE, {"cell_type": "gru"}, [0.0, 1.0, 2.0, 1.0], "SingleValueDynamicRNNRegressor",
         0.6111934, 0.53011596, None),
        (REGRESSION, MULTIPLE, MULTI_RNN, np.tile(np.arange(5.0), [4, 1]), "MultiValueDynamicRNNRegressor",
         1.6571325, 0.59305526, None),
    ],
)  # fmt: skip
def test_a_step_is_tensorflows(
    problem: int,
    prediction: int,
    arguments: Any,
    labels: Any,
    name: str,
    loss: float,
    bias: float,
    accuracy: Any,
) -> None:
    arguments = dict(arguments)
    if arguments.pop("context", False):
        arguments["context_feature_columns"] = columns("c", 1)
    model = made(problem, prediction, **arguments)
    given = np.asarray(labels, np.float32 if problem == REGRESSION else np.int64)
    with tf.Graph().as_default():
        tf.train.create_global_step()
        ops = model.model_fn(features(), tf.constant(given), "train", None)
        assert ops.loss.name == f"{name}/{name[: name.index('Value') + 5]}Loss/loss:0"
        with tf.Session() as session:
            begun(session)
            assert session.run(ops.loss) == pytest.approx(loss, rel=1e-6)
            session.run(ops.train_op)
            (biases,) = [v for v in tf.trainable_variables() if v.op.name == "fully_connected/biases"]
            assert session.run(biases).sum() == pytest.approx(bias, rel=1e-6)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.create_global_step()
        metrics = model.model_fn(features(), tf.constant(given), "eval", None).eval_metric_ops
        begun(session)
        session.run([update for _, update in metrics.values()])
        found = session.run({key: value for key, (value, _) in metrics.items()})
    assert found == ({} if accuracy is None else {"accuracy": pytest.approx(accuracy)})


def test_predictions_with_probabilities_and_state() -> None:
    model = made(CLASSIFICATION, SINGLE, num_classes=3, predict_probabilities=True)
    with tf.Graph().as_default(), tf.Session() as session:
        ops = model.model_fn(features(), None, "infer", None)
        begun(session)
        found = session.run(ops.predictions)
        (alternative,) = ops.output_alternatives.items()
    np.testing.assert_allclose(found["probabilities"][0], [0.44848, 0.33787, 0.21365], atol=1e-5)
    np.testing.assert_allclose(found["rnn_cell_state_0"][0], [0.66776, 0.36799, -0.37091], atol=1e-5)
    assert found["classes"].tolist() == [0, 0, 0, 0]
    assert (alternative[0], alternative[1][0], sorted(alternative[1][1])) == (
        "dynamic_rnn_output", CLASSIFICATION, ["classes", "probabilities"],
    )  # fmt: skip


def test_sequences_go_on_from_a_state() -> None:
    model = made(REGRESSION, MULTIPLE, cell_type="lstm")

    def predicted(given: dict[str, Any]) -> Any:
        with tf.Graph().as_default(), tf.Session() as session:
            tensors = {name: tf.constant(value) for name, value in given.items()}
            ops = model.model_fn(tensors, None, "infer", None)
            begun(session)
            return session.run(ops.predictions)

    whole, first = predicted({"a": X}), predicted({"a": X[:, :3]})
    scores = first.pop("scores")
    assert sorted(first) == ["rnn_cell_state_0", "rnn_cell_state_1"]
    rest = predicted({"a": X[:, 3:], **first})
    np.testing.assert_allclose(np.concatenate([scores, rest["scores"]], 1), whole["scores"], rtol=1e-5)
    with pytest.raises(ValueError, match="the state lacks"):
        dynamic_rnn_estimator.dict_to_state_tuple({}, rnn_common.construct_rnn_cell(3))


def test_a_recurrent_model_learns_with_dropout() -> None:
    config = tf.contrib.learn.RunConfig(tf_random_seed=1)
    model = made(CLASSIFICATION, SINGLE, num_classes=2, dropout_keep_probabilities=[0.9, 0.9], config=config)

    def input_fn() -> Any:
        return features(), tf.constant([0, 1, 0, 1])

    first = model.fit(input_fn=input_fn, steps=1).evaluate(input_fn=input_fn, steps=1)["loss"]
    assert model.fit(input_fn=input_fn, steps=12).evaluate(input_fn=input_fn, steps=1)["loss"] < first
    assert "rnn/basic_rnn_cell/kernel" in model.get_variable_names()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="problem_type must be either"):
        made(9, SINGLE)
    with pytest.raises(ValueError, match="prediction_type must be one of"):
        made(REGRESSION, 9)
    with pytest.raises(ValueError, match="num_classes must be specified"):
        made(CLASSIFICATION, SINGLE)
    with pytest.raises(TypeError, match="cell_type must be one of"):
        rnn_common.construct_rnn_cell(3, "other")
    with pytest.raises(ValueError, match="must be one greater than the number of cells"):
        rnn_common.construct_rnn_cell([3, 2], "gru", [0.5, 0.5])
    assert len(rnn_common.construct_rnn_cell([3, 2], "gru", [0.5, 0.5, 0.5]).state_size) == 2


def test_the_steps_within_sequences() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        outputs, labels = tf.reshape(tf.range(12), [2, 3, 2]), tf.constant([[1, 2, 3], [4, 5, 6]])
        lengths = tf.constant([1, 3])
        assert session.run(rnn_common.select_last_activations(outputs, lengths)).tolist() == [
            [0, 1],
            [10, 11],
        ]
        valid, kept = session.run(rnn_common.mask_activations_and_labels(outputs, labels, lengths))
        assert (valid[:, 0].tolist(), kept.tolist()) == ([0, 6, 8, 10], [1, 4, 5, 6])
        assert session.run(rnn_common.mask_activations_and_labels(outputs, labels, None)[1]).tolist() == [
            1,
            2,
            3,
            4,
            5,
            6,
        ]


def test_a_regression_of_probabilities_has_the_metrics_of_classes() -> None:
    x = np.random.RandomState(0).rand(8, 2).astype(np.float32)
    y = np.array([[0], [1], [0], [1], [1], [0], [1], [0]], np.float32)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weights = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
        found = tf.sigmoid(tf.matmul(features, weights) - 1.2)
        loss = None if labels is None else tf.reduce_mean(tf.square(found - labels))
        step = tf.train.get_global_step()
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step) if mode == "train" else None
        return found, loss, train

    def input_fn() -> Any:
        return tf.constant(x), tf.constant(y)

    model = tf.contrib.learn.LogisticRegressor(model_fn, thresholds=[0.4, 0.6]).fit(
        input_fn=input_fn, steps=1
    )
    assert model.evaluate(input_fn=input_fn, steps=1) == pytest.approx({
        "accuracy/baseline_label_mean": 0.5, "accuracy/threshold_0.400000_mean": 0.625,
        "accuracy/threshold_0.600000_mean": 0.5, "auc": 0.87499988, "global_step": 1,
        "labels/actual_label_mean": 0.5, "labels/prediction_mean": 0.48840064, "loss": 0.21404254,
        "precision/positive_threshold_0.400000_mean": 0.5714286,
        "precision/positive_threshold_0.600000_mean": 0, "recall/positive_threshold_0.400000_mean": 1,
    "recall/positive_threshold_0.600000_mean": 0, })  # fmt: skip
