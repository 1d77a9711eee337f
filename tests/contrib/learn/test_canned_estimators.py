"""Canned Estimators of tf.contrib.learn: TensorFlow's checkpoints load, and give TensorFlow's answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.contrib.learn import learn_models

import flowstone as tf

GOLDEN = Path(__file__).parents[2] / "golden" / "contrib_learn"
ANSWERS = json.loads((GOLDEN / "answers.json").read_text())["models"]


def assert_close(found: Any, expected: Any) -> None:
    assert set(found) == set(expected)
    for key, value in expected.items():
        if isinstance(value, list) and value and isinstance(value[0], str):
            assert found[key] == value
        else:
            np.testing.assert_allclose(found[key], value, rtol=2e-5, atol=2e-6, err_msg=key)


@pytest.fixture
def restored(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The model of this name with TensorFlow's checkpoint, and its labels."""
    for path in GOLDEN.glob(f"{request.param}.*"):
        shutil.copy(path, tmp_path / f"model.ckpt-3{path.name.removeprefix(request.param)}")
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-3"\n')
    model, labels = learn_models.model(tf, request.param, str(tmp_path))
    return request.param, model, labels


@pytest.mark.parametrize("restored", learn_models.NAMES, indirect=True)
def test_tensorflows_checkpoint_gives_its_answers_and_trains_on(restored: Any) -> None:
    name, model, labels = restored
    found, expected = learn_models.answers(tf, model, labels), ANSWERS[name]
    assert found["variables"] == expected["variables"]
    assert_close(found["evaluation"], expected["evaluation"])
    assert_close(found["predictions"], expected["predictions"])
    model.fit(input_fn=learn_models.input_fn(tf, labels), steps=1)  # every slot is restored by its name
    assert {n: list(model.get_variable_value(n).shape) for n in model.get_variable_names()} == expected[
        "variables"
    ]
    step = expected["evaluation"]["global_step"]
    counted = 2 if name == "combined_classifier" else 1  # both optimisers of this one count
    assert model.get_variable_value("global_step") == step + counted


@pytest.mark.parametrize("name", ["linear_classifier", "linear_joint", "linear_regressor"])
def test_a_linear_model_learns_what_tensorflows_learns(name: str, tmp_path: Path) -> None:
    model, labels = learn_models.model(tf, name, str(tmp_path))
    model.fit(input_fn=learn_models.input_fn(tf, labels), steps=3)
    assert_close(learn_models.answers(tf, model, labels)["evaluation"], ANSWERS[name]["evaluation"])


def test_the_main_output_is_predicted_by_default(tmp_path: Path) -> None:
    model, labels = learn_models.model(tf, "linear_joint", str(tmp_path))
    get = learn_models.input_fn(tf, labels)
    model.fit(input_fn=get, steps=1)
    classes = list(model.predict(input_fn=get))
    assert classes == list(model.predict_classes(input_fn=get)) and len(classes) == 8
    assert np.argmax(model.predict_proba(input_fn=get, as_iterable=False), 1).tolist() == classes


def test_scores_are_predicted(tmp_path: Path) -> None:
    model, labels = learn_models.model(tf, "dnn_regressor", str(tmp_path))
    get = learn_models.input_fn(tf, labels)
    model.fit(input_fn=get, steps=1)
    assert model.predict_scores(input_fn=get, as_iterable=False).tolist() == list(model.predict(input_fn=get))


@pytest.mark.parametrize("kind", ["linear", "dnn", "combined"])
def test_a_head_of_the_programs_own(kind: str) -> None:
    learn, columns = tf.contrib.learn, [tf.contrib.layers.real_valued_column("a", dimension=2)]
    head = learn.poisson_regression_head()
    config = learn.RunConfig(tf_random_seed=1)
    if kind == "linear":
        model = learn.LinearEstimator(columns, head, optimizer="SGD", config=config)
    elif kind == "dnn":
        model = learn.DNNEstimator(
            head, [4], columns, optimizer=lambda: tf.train.GradientDescentOptimizer(0.02), config=config
        )
    else:
        model = learn.DNNLinearCombinedEstimator(
            head,
            linear_feature_columns=columns,
            dnn_feature_columns=columns,
            dnn_hidden_units=[4],
            config=config,
        )
    get = learn_models.input_fn(tf, learn_models.NUMBERS)
    first = model.fit(input_fn=get, steps=1).evaluate(input_fn=get, steps=1)["loss"]
    assert model.fit(input_fn=get, steps=20).evaluate(input_fn=get, steps=1)["loss"] < first


def test_wide_and_deep_needs_columns_and_layers() -> None:
    learn = tf.contrib.learn
    with pytest.raises(ValueError, match="Either linear_feature_columns or dnn_feature_columns"):
        learn.DNNLinearCombinedRegressor()
    column = tf.contrib.layers.real_valued_column("a")
    with pytest.raises(ValueError, match="dnn_hidden_units must be defined"):
        learn.DNNLinearCombinedClassifier(dnn_feature_columns=[column])


def test_a_linear_model_with_a_margin() -> None:
    columns = [tf.contrib.layers.real_valued_column("a", dimension=2)]
    model = tf.contrib.learn.LinearEstimator(columns, tf.contrib.learn.binary_svm_head())
    later = (np.arange(8) >= 4).astype(np.int64)[:, None]  # a threshold on either feature tells the two apart
    get = learn_models.input_fn(tf, later)
    assert model.fit(input_fn=get, steps=100).evaluate(input_fn=get, steps=1)["accuracy"] == 1
