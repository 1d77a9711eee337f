"""The estimators of `tf.contrib.boosted_trees` are trained as TensorFlow 1.4's, and load its checkpoints."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from google.protobuf import json_format, text_format

import flowstone as tf
from flowstone.contrib.boosted_trees import estimator
from flowstone.io.proto import learner_pb2, tree_config_pb2

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "golden" / "contrib"
GOLDEN = json.loads((FOLDER / "gbdt.json").read_text())


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


programs = module("estimator_programs")


def config(text: str) -> Any:
    return text_format.Parse(text, learner_pb2.LearnerConfig())


def ensemble(text: bytes) -> Any:
    return json_format.MessageToDict(tree_config_pb2.DecisionTreeEnsembleConfig.FromString(text))


def check(found: Any, expected: Any, where: str) -> None:
    """Asserts that both are the same but for rounding."""
    if isinstance(expected, dict):
        assert set(found) == set(expected), where
        for key, value in expected.items():
            check(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for at, value in enumerate(expected):
            check(found[at], value, f"{where}[{at}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=2e-4, abs=1e-5), where
    else:
        assert found == expected, where


@pytest.mark.parametrize("name", sorted(programs.cases()))
def test_trained_as_tensorflow_trains(name: str, tmp_path: Path) -> None:
    found = programs.train(tf, estimator, config, programs.cases()[name], str(tmp_path))
    expected = dict(GOLDEN[name])
    check(ensemble(found["ensemble"]), ensemble(bytes.fromhex(expected["ensemble"])), "ensemble")
    check(found["predictions"], expected["predictions"], "predictions")
    assert found["variables"] == expected["variables"]
    for key in ("loss", "global_step"):
        assert found["metrics"][key] == pytest.approx(expected["metrics"][key], rel=1e-4), key


def test_a_checkpoint_of_tensorflow(tmp_path: Path) -> None:
    for path in (FOLDER / "gbdt_checkpoint").iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model"\n')
    _, features, text, arguments = programs.cases()["classes of sparse"]
    made = estimator.GradientBoostedDecisionTreeClassifier(
        config(text), examples_per_layer=60, num_trees=5, model_dir=str(tmp_path), **arguments
    )

    def input_fn() -> Any:
        given, target = programs._features(tf, features)
        return given, tf.constant((target > 0).astype(np.int64)[:, np.newaxis])

    said = [
        each["probabilities"].tolist() for each in made.predict(input_fn=input_fn, outputs=["probabilities"])
    ]
    expected = [each[0] for each in GOLDEN["classes of sparse"]["predictions"]]
    check(said[: len(expected)], expected, "probabilities")
    before = len(ensemble(made.get_variable_value("ensemble_model:0_config"))["trees"])
    made.fit(input_fn=input_fn, steps=20)
    assert len(ensemble(made.get_variable_value("ensemble_model:0_config"))["trees"]) == before + 2


def test_a_column_of_numbers_costs_few_nodes(tmp_path: Path) -> None:
    """Operations that take several columns take all, and no column has conditionals of its own."""

    def nodes(width: int) -> int:
        counts = []

        class Count(tf.train.SessionRunHook):
            def begin(self) -> None:
                counts.append(len(tf.get_default_graph().get_operations()))

        text = programs.cases()["numbers"][2]
        made = estimator.GradientBoostedDecisionTreeRegressor(
            config(text), examples_per_layer=4, num_trees=1, model_dir=str(tmp_path / str(width))
        )
        x = np.random.RandomState(0).randn(4, width).astype(np.float32)
        made.fit(input_fn=lambda: ({"x": tf.constant(x)}, tf.constant(x[:, :1])), steps=1, monitors=[Count()])
        return counts[0]

    assert nodes(12) - nodes(2) <= 10 * 30
