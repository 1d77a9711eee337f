"""Boosted trees against what TensorFlow 1.15 answered (`tests/golden/make_boosted_trees_goldens.py`)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

HERE = Path(__file__).parent
GOLDEN_FOLDER = HERE.parent / "golden" / "estimators"
GOLDEN = json.loads((GOLDEN_FOLDER / "boosted_trees_models.json").read_text())
spec = importlib.util.spec_from_file_location("models", HERE / "boosted_trees_models.py")
assert spec is not None and spec.loader is not None
models = importlib.util.module_from_spec(spec)
spec.loader.exec_module(models)


def close(found: Any, known: Any) -> None:
    """Asserts that two answers are equal but for rounding."""
    if isinstance(known, dict):
        assert sorted(found) == sorted(known)
        for key in known:
            close(found[key], known[key])
    elif isinstance(known, list):
        assert len(found) == len(known)
        for one, other in zip(found, known, strict=True):
            close(one, other)
    elif isinstance(known, str):
        assert found == known
    else:
        assert found == pytest.approx(known, rel=1e-3, abs=3e-4)


@pytest.mark.parametrize("name", sorted(models.CASES))
def test_models(name: str, tmp_path: Path) -> None:
    close(models.run(tf, name, str(tmp_path)), GOLDEN[name])


def test_a_model_that_tensorflow_saved(tmp_path: Path) -> None:
    for path in (GOLDEN_FOLDER / "boosted_trees_model").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    made, _, once = models.model(tf, models.SAVED, str(tmp_path))
    known = GOLDEN[models.SAVED]
    close(models.answers(made, once), {key: known[key] for key in known if key != "saved"})


def test_training_goes_on_from_what_tensorflow_saved(tmp_path: Path) -> None:
    for path in (GOLDEN_FOLDER / "boosted_trees_model").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    made, train, once = models.model(tf, models.SAVED, str(tmp_path))
    step = made.get_variable_value("global_step")
    made.train(train, steps=2)
    assert step < made.get_variable_value("global_step") <= step + 2
    assert np.isfinite(made.evaluate(once)["loss"])


def test_other_heads(tmp_path: Path) -> None:
    columns = models.columns(tf, numeric=False)
    head = tf.estimator.BinaryClassHead(loss_reduction="sum_over_batch_size")
    made = tf.estimator.BoostedTreesEstimator(
        columns, 1, head, str(tmp_path / "own"), n_trees=3, max_depth=3, learning_rate=0.3
    )
    _, train, once = models.model(tf, "classifier", str(tmp_path / "other"))
    made.train(train, max_steps=30)
    logits = [each["logits"].tolist() for each in made.predict(once)]
    close(logits, GOLDEN["classifier"]["logits"])


def test_training_in_memory_at_once() -> None:
    _, train, once = models.model(tf, "in_memory", "")
    made = tf.contrib.estimator.boosted_trees_regressor_train_in_memory(
        train, models.columns(tf, numeric=True), n_trees=3, max_depth=3, learning_rate=0.3
    )
    close([each["predictions"].tolist() for each in made.predict(once)], GOLDEN["in_memory"]["logits"])


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    bucketized, indicator = models.columns(tf, numeric=False)
    classifier = tf.estimator.BoostedTreesClassifier
    with pytest.raises(ValueError, match="pruning is not supported with multi class"):
        classifier([bucketized], 1, n_classes=3)
    with pytest.raises(ValueError, match="multi-dimension"):
        tf.estimator.BoostedTreesRegressor([bucketized], 1, label_dimension=2)
    with pytest.raises(ValueError, match="must be wrapped by IndicatorColumn"):
        classifier([indicator.categorical_column], 1)
    with pytest.raises(ValueError, match="center_bias must be enabled"):
        list(classifier([bucketized], 1).experimental_predict_with_explanations(None))
    _, train, _ = models.model(tf, "classifier", str(tmp_path))
    for arguments, message in (
        ({"pruning_mode": "z"}, "pruning_mode mode must be one of: none, post, pre"),
        ({"tree_complexity": 0.1}, "no effect unless pruning mode"),
        ({"pruning_mode": "pre"}, "tree_complexity must be positive"),
        ({"n_batches_per_layer": 2, "train_in_memory": True}, "n_batches_per_layer should be set as 1"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier([bucketized], **{"n_batches_per_layer": 1, **arguments}).train(train)
