"""Estimators of tf.contrib.learn on arrays and input functions, with their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib.learn.estimators import tensor_signature

X = np.random.RandomState(0).rand(20, 3).astype(np.float32)
Y = (X.sum(1) > 1.5).astype(np.float32)
RATE = {"rate": 0.1}


def line(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> Any:
    """A linear model of three features, beginning with zeros."""
    weights = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    found = tf.matmul(features, weights)[:, 0]
    loss = train = None
    if mode != tf.contrib.learn.ModeKeys.INFER:
        loss = tf.reduce_mean(tf.square(found - labels))
    if mode == tf.contrib.learn.ModeKeys.TRAIN:
        train = tf.contrib.layers.optimize_loss(loss, tf.train.get_global_step(), params["rate"], "SGD")
    return {"p": found, "q": 2 * found}, loss, train


@pytest.fixture
def fitted(tmp_path: Path) -> Any:
    return tf.contrib.learn.Estimator(line, model_dir=str(tmp_path), params=RATE).fit(X, Y, steps=3)


def test_arrays_are_trained_on(fitted: Any) -> None:
    weights = np.zeros(3)
    for _ in range(3):  # all examples a step: the gradient of the mean square
        weights -= 0.1 * 2 * X.T @ (X @ weights - Y) / 20
    np.testing.assert_allclose(fitted.get_variable_value("w")[:, 0], weights, rtol=1e-5)
    assert fitted.get_variable_names() == ["OptimizeLoss/learning_rate", "global_step", "w"]
    found = fitted.evaluate(X, Y, batch_size=10)
    assert found["loss"] == pytest.approx(np.mean((X @ weights - Y) ** 2), rel=1e-5)
    assert found["global_step"] == 3
    np.testing.assert_allclose(
        [each["p"] for each in fitted.predict(X, batch_size=7)], X @ weights, rtol=1e-5
    )


def test_arrays_keep_their_type() -> None:
    """As in the tutorial of TensorFlow 1.0, whose variables are of 64 bits like NumPy's numbers."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weight = tf.get_variable("w", [1], dtype=tf.float64, initializer=tf.zeros_initializer())
        y = weight * features["x"]
        loss = tf.reduce_sum(tf.square(y - labels))
        step = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
        return tf.contrib.learn.ModelFnOps(mode, y, loss, step)

    x = np.array([1.0, 2.0, 3.0])
    inputs = tf.contrib.learn.io.numpy_input_fn({"x": x}, 2 * x, batch_size=3, num_epochs=100, shuffle=False)
    model = tf.contrib.learn.Estimator(model_fn).fit(input_fn=inputs, steps=100)
    assert model.get_variable_value("w")[0] == pytest.approx(2.0, rel=1e-6)
    model = tf.contrib.learn.Estimator(model_fn).fit({"x": x}, 2 * x[:, None], steps=100)
    assert model.get_variable_value("w").dtype == np.float64
    assert model.get_variable_value("w")[0] == pytest.approx(2.0, rel=1e-6)


def test_predictions_come_one_by_one_in_batches_or_whole(fitted: Any) -> None:
    assert [sorted(each) for each in fitted.predict(X[:2], outputs=["q"])] == [["q"], ["q"]]
    whole = fitted.predict(X, batch_size=8, as_iterable=False)
    assert whole["p"].shape == (20,)

    def constant() -> Any:
        return tf.constant(X.astype(np.float32))

    assert len(list(fitted.predict(input_fn=constant))) == 20  # once, though the tensors never end
    batches = list(fitted.predict(input_fn=constant, iterate_batches=True))
    np.testing.assert_allclose(batches[0]["p"], whole["p"], rtol=1e-6)
    with pytest.raises(ValueError, match="Expected to run at least one output"):
        fitted.predict(X, outputs=["other"])


def test_training_goes_on_and_stops_at_a_step(fitted: Any) -> None:
    fitted.partial_fit(X, Y, steps=2, batch_size=5)
    assert fitted.get_variable_value("global_step") == 5
    fitted.fit(X, Y, max_steps=5)
    assert fitted.get_variable_value("global_step") == 5


def test_metrics_beside_the_models_own(fitted: Any) -> None:
    found = fitted.evaluate(X, Y, metrics={("m", "q"): tf.contrib.metrics.streaming_mean_absolute_error})
    expected = np.mean(np.abs(2 * X @ fitted.get_variable_value("w")[:, 0] - Y))
    assert found["m"] == pytest.approx(expected, rel=1e-5)
    with pytest.raises(ValueError, match="provide only name, no prediction"):
        fitted.evaluate(X, Y, metrics={"m": tf.contrib.metrics.streaming_mean_absolute_error})


def test_hooks_watch_the_training(fitted: Any) -> None:
    class Counter(tf.train.SessionRunHook):
        steps = 0

        def after_run(self, run_context: Any, run_values: Any) -> None:
            self.steps += 1

    counter = Counter()
    fitted.fit(X, Y, steps=4, monitors=[counter])
    assert counter.steps == 4


def test_features_are_engineered(tmp_path: Path) -> None:
    def half(features: Any, labels: Any) -> Any:
        return features / 2, labels

    model = tf.contrib.learn.Estimator(line, params=RATE, feature_engineering_fn=half).fit(X, Y, steps=1)
    np.testing.assert_allclose(model.get_variable_value("w")[:, 0], 0.2 * (X / 2).T @ Y / 20, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Either x or input_fn must be provided"),
        ({"x": X, "y": Y, "steps": 1, "max_steps": 2}, "Can not provide both steps and max_steps"),
        ({"x": X, "y": Y, "input_fn": lambda: None}, "Can not provide both input_fn and x or y"),
        ({"input_fn": lambda: None, "batch_size": 3}, "Can not provide both input_fn and batch_size"),
    ],
)
def test_contradicting_inputs_are_refused(arguments: dict[str, Any], message: str) -> None:
    model = tf.contrib.learn.Estimator(line, params=RATE)
    with pytest.raises(ValueError, match=message):
        model.fit(**arguments)


def test_tensors_are_no_arrays(fitted: Any) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Inputs cannot be tensors"):
        fitted.fit(tf.constant(X), Y, steps=1)
    with pytest.raises(ValueError, match="Can not provide both feed_fn and x or y"):
        fitted.evaluate(X, Y, feed_fn=dict)
    with pytest.raises(ValueError, match="Features are incompatible"):
        fitted.fit(X[:, :2], Y, steps=1)


def test_an_estimator_that_was_not_fitted() -> None:
    model = tf.contrib.learn.Estimator(line, params=RATE)
    for use in (lambda: model.evaluate(X, Y), lambda: model.predict(X)):
        with pytest.raises(tf.contrib.learn.NotFittedError, match="Couldn't find trained model"):
            use()
    with pytest.raises(ValueError):
        model.get_variable_value("w")


def test_an_estimator_says_what_it_is(fitted: Any, tmp_path: Path) -> None:
    learn = tf.contrib.learn
    assert fitted.get_params() == {"params": RATE} and repr(fitted) == f"Estimator(params={RATE})"
    assert fitted.set_params(params={"rate": 1.0}).params == {"rate": 1.0}
    with pytest.raises(ValueError, match="Invalid parameter other"):
        fitted.set_params(other=1)
    assert fitted.config.model_dir == fitted.model_dir == str(tmp_path)
    with tf.Graph().as_default():
        assert sorted(fitted.model_fn(tf.ones([2, 3]), None, "infer", None).predictions) == ["p", "q"]
    with pytest.raises(ValueError, match="does not have a params argument"):
        learn.Estimator(lambda features, labels: None, params=RATE)
    with pytest.raises(ValueError, match="model_dir are set both"):
        learn.Estimator(line, model_dir="/a", config=learn.RunConfig(model_dir="/b"))
    with pytest.raises(ValueError, match="please return ModelFnOps"):
        learn.Estimator(lambda features, labels: (1, 2)).fit(X, Y, steps=1)
    with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="_get_predict_ops"):
        learn.BaseEstimator()._get_predict_ops(None)


def test_scikit_learns_methods() -> None:
    learn = tf.contrib.learn
    model = learn.SKCompat(learn.Estimator(line, params=RATE)).fit(X, Y, steps=2)
    assert {name: value.shape for name, value in model.predict(X).items()} == {"p": (20,), "q": (20,)}
    found = model.score(X, Y)
    assert found["global_step"] == 2 and found["loss"] < np.mean(Y**2)
    assert model.get_params() == {}
    with pytest.raises(ValueError, match="Metrics argument should be None or dict"):
        model.score(X, Y, metrics=[1])


def test_summaries_are_those_of_the_program_and_of_evaluations(tmp_path: Path) -> None:
    learn = tf.contrib.learn
    config = learn.RunConfig(save_summary_steps=1)
    model = learn.SKCompat(learn.Estimator(line, str(tmp_path), config, RATE)).fit(X, Y, steps=2)
    model.score(X, Y)
    model.score(X, Y, name="mine")
    for folder, tags in {
        "": {"OptimizeLoss/global_norm/gradient_norm", "OptimizeLoss/loss"},
        "eval": {"loss"},
        "eval_mine": {"loss"},
    }.items():
        (path,) = (tmp_path / folder).glob("events*")
        assert {
            value.tag for event in tf.train.summary_iterator(str(path)) for value in event.summary.value
        } - {"global_step/sec"} == tags


def test_columns_are_inferred() -> None:
    learn = tf.contrib.learn
    (column,) = learn.infer_real_valued_columns_from_input(X)
    assert (column.name, column.dimension, column.dtype) == ("", 3, tf.float32)
    columns = learn.infer_real_valued_columns_from_input_fn(lambda: ({"b": tf.ones([4, 2])}, None))
    assert [(each.name, each.dimension) for each in columns] == [("b", 2)]
    model = learn.LinearRegressor(learn.infer_real_valued_columns_from_input(X)).fit(
        X, Y, steps=2, batch_size=8
    )
    assert model.get_variable_value("linear//weight").shape == (3, 1)


def test_signatures_of_tensors() -> None:
    with tf.Graph().as_default():
        tensors = {"a": tf.ones([4, 2]), "s": tf.sparse_placeholder(tf.string)}
        signatures = tensor_signature.create_signatures(tensors)
        assert tensor_signature.tensors_compatible({**tensors, "a": tf.ones([9, 2])}, signatures)
        assert not tensor_signature.tensors_compatible({**tensors, "a": tf.ones([4, 3])}, signatures)
        assert not tensor_signature.tensors_compatible({"a": tensors["a"]}, signatures)
        made = tensor_signature.create_placeholders_from_signatures(signatures)
        assert made["a"].shape.as_list() == [None, 2] and made["s"].values.dtype == tf.string
        examples = tf.placeholder(tf.string, [None])
        parsed = tensor_signature.create_example_parser_from_signatures(signatures, examples)
        assert parsed["a"].shape.as_list() == [None, 2] and isinstance(parsed["s"], tf.SparseTensor)
