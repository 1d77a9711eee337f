"""Canned Estimators: checkpoints of TensorFlow 1.15.5 restored, evaluated, used, exported and trained on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.estimator.canned_models import examples, models

import flowstone as tf

GOLDEN = Path(__file__).parents[1] / "golden" / "estimators"
ANSWERS = json.loads((GOLDEN / "answers.json").read_text())
MODELS = models(tf)


def restored(name: str, folder: Path) -> tuple[Any, Any]:
    """The Estimator with TensorFlow's checkpoint, and its input function."""
    for path in GOLDEN.glob(f"{name}.*"):
        shutil.copy(path, folder / f"model.ckpt-3{path.name[len(name) :]}")
    tf.train.update_checkpoint_state(str(folder), str(folder / "model.ckpt-3"))
    make, kind = MODELS[name]
    return make(str(folder)), lambda: examples(tf, kind)


def plain(value: Any) -> Any:
    value = np.asarray(value)
    return [text.decode() for text in value.ravel()] if value.dtype == object else value.tolist()


def assert_near(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        if isinstance(value, list) and value and isinstance(value[0], str):
            assert found[key] == value, key
        else:
            np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_checkpoint_of_tensorflow_gives_its_answers(name: str, tmp_path: Path) -> None:
    wanted = ANSWERS[name]
    estimator, input_fn = restored(name, tmp_path)
    assert_near(estimator.evaluate(input_fn), wanted["metrics"])
    first = next(estimator.predict(input_fn))
    prediction = {
        "/".join(key) if isinstance(key, tuple) else key: plain(each) for key, each in first.items()
    }
    assert_near(prediction, wanted["prediction"])
    estimator.train(input_fn, steps=2)
    names = estimator.get_variable_names()
    assert_near({each: estimator.get_variable_value(each) for each in names}, wanted["later"])
    assert tags_of(tmp_path) == wanted["tags"]


def tags_of(folder: Path) -> list[str]:
    paths = folder.glob("*tfevents*")
    events = [event for path in paths for event in tf.train.summary_iterator(str(path))]
    return sorted({value.tag for event in events for value in event.summary.value})


@pytest.mark.parametrize(
    "name", ["linear_classifier", "dnn_normalized", "combined_regressor", "several_heads"]
)
def test_a_new_model_has_tensorflows_variables_and_signatures(name: str, tmp_path: Path) -> None:
    make, kind = MODELS[name]
    estimator = make(str(tmp_path)).train(lambda: examples(tf, kind), steps=1)
    names = estimator.get_variable_names()
    shapes = {each: list(estimator.get_variable_value(each).shape) for each in names}
    assert shapes == ANSWERS[name]["variables"]
    spec = {"x": tf.FixedLenFeature([1], tf.float32), "c": tf.FixedLenFeature([], tf.string)}
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    path = estimator.export_savedmodel(str(tmp_path / "export"), receiver).decode()
    with tf.Session(graph=tf.Graph()) as session:
        signatures = tf.saved_model.loader.load(session, ["serve"], path).signature_def
    assert {
        key: [each.method_name.rpartition("/")[2], sorted(each.inputs), sorted(each.outputs)]
        for key, each in signatures.items()
    } == ANSWERS[name]["signatures"]


def test_a_step_has_no_more_than_the_same_by_hand(tmp_path: Path) -> None:
    """The operations that a training step runs, beside the input's."""
    seen = []

    class Count(tf.train.SessionRunHook):
        def after_create_session(self, session: Any, coord: Any) -> None:
            seen.append({op.type for op in session.graph.get_operations()})

    make, kind = MODELS["dnn_classifier"]
    make(str(tmp_path)).train(lambda: examples(tf, kind), hooks=[Count()], steps=1)
    assert not seen[0] & {"PyFunc", "EagerPyFunc", "PyFuncStateless"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda e: e.LinearClassifier([], n_classes=1), "Invalid n_classes: 1"),
        (lambda e: e.LinearClassifier([], label_vocabulary="ab"), "should be a list or a tuple"),
        (lambda e: e.LinearClassifier([], label_vocabulary=["a"]), "Length of label_vocabulary must be"),
        (lambda e: e.DNNLinearCombinedRegressor(), "Either linear_feature_columns or dnn_feature_columns"),
        (lambda e: e.DNNLinearCombinedRegressor(dnn_feature_columns=[1]), "dnn_hidden_units must be defined"),
        (lambda e: e.BaselineRegressor(label_dimension=0), "Invalid label_dimension 0"),
        (lambda e: e.BaselineRegressor(loss_reduction="x"), "Invalid loss_reduction: x"),
        (
            lambda e: e.experimental.dnn_logit_fn_builder("1", [], [], None, None, None),
            "units must be an int",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(tf.estimator)


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [("Best", "Unsupported optimizer name: Best"), (lambda: 3, "not an Optimizer instance. Given: 3")],
)
def test_other_optimizers_are_refused(optimizer: Any, message: str, tmp_path: Path) -> None:
    estimator = tf.estimator.BaselineRegressor(str(tmp_path), optimizer=optimizer)
    with pytest.raises(ValueError, match=message):
        estimator.train(lambda: ({"x": tf.ones([2])}, tf.ones([2])), steps=1)


def test_examples_are_parsed_with_their_label() -> None:
    columns = [tf.feature_column.numeric_column("a")]
    classify, regress = tf.estimator.classifier_parse_example_spec, tf.estimator.regressor_parse_example_spec
    assert classify(columns, "y", weight_column="w") == {
        "a": tf.FixedLenFeature((1,), tf.float32), "y": tf.FixedLenFeature((1,), tf.int64),
        "w": tf.FixedLenFeature((1,), tf.float32),
    }  # fmt: skip
    weight = tf.feature_column.numeric_column("w")
    assert regress(columns, "y", label_dimension=3, weight_column=weight)["y"].shape == (3,)
    for arguments, message in (
        (("a",), "label should not be used as feature"),
        (("y", tf.int64, None, "a"), "weight_column should not be used as feature"),
        (("y", tf.int64, None, 3), "weight_column should be an instance"),
    ):
        with pytest.raises(ValueError, match=message):
            classify(columns, *arguments)


def test_the_loss_is_collected_and_its_mean_is_not(tmp_path: Path) -> None:
    found: list[Any] = []

    class Hook(tf.train.SessionRunHook):
        def begin(self) -> None:
            found.extend(tensor.name for tensor in tf.get_collection(tf.GraphKeys.LOSSES))

    column = tf.feature_column.numeric_column("a")
    data = tf.estimator.inputs.numpy_input_fn({"a": np.ones([4, 1])}, np.ones([4, 1], int), shuffle=False)
    tf.estimator.LinearClassifier([column], model_dir=str(tmp_path)).train(data, [Hook()], steps=1)
    assert found == ["linear/head/weighted_loss/Sum:0"] * 2  # as TensorFlow 1.15 does
