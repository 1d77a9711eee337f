"""Linear Estimators trained by dual coordinate ascent: TensorFlow 1.15.5 gives these numbers.

They are from make_linear_sdca_goldens.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.estimator.sdca_models import CASES, trained

import flowstone as tf

ANSWERS = json.loads((Path(__file__).parents[1] / "golden" / "linear_sdca.json").read_text())
SDCA = tf.estimator.experimental.LinearSDCA


@pytest.mark.parametrize("name", sorted(CASES))
def test_it_finds_tensorflows_optimum(name: str, tmp_path: Path) -> None:
    found = trained(tf, name, str(tmp_path))
    assert set(found) == set(ANSWERS[name])
    for key, value in ANSWERS[name].items():
        np.testing.assert_allclose(np.ravel(found[key]), value, rtol=2e-3, atol=1e-3, err_msg=key)


def columns() -> list[Any]:
    return [tf.feature_column.numeric_column("x")]


def test_it_trains_two_classes_and_single_numbers() -> None:
    make = tf.estimator.LinearClassifier
    with pytest.raises(ValueError, match="multi-class"):
        make(columns(), n_classes=3, optimizer=SDCA("id"))
    with pytest.raises(ValueError, match="sparse_combiner must be"):
        make(columns(), optimizer=SDCA("id"), sparse_combiner="mean")
    with pytest.raises(ValueError, match="one-dimensional"):
        tf.estimator.LinearRegressor(columns(), label_dimension=2, optimizer=SDCA("id"))


def test_what_it_cannot_train_is_said(tmp_path: Path) -> None:
    def input_fn() -> Any:
        features = {"id": ["0"], "x": [[1.0]], "grid": [[[1.0], [2.0]]]}
        return tf.data.Dataset.from_tensors((features, [1]))

    def train(optimizer: Any, columns: list[Any]) -> None:
        tf.estimator.LinearClassifier(columns, str(tmp_path), optimizer=optimizer).train(input_fn)

    with pytest.raises(ValueError, match="symmetric_l2_regularization should be positive"):
        train(SDCA("id", symmetric_l2_regularization=0.0), columns())
    with pytest.raises(ValueError, match="rank 2, larger than 1"):
        train(SDCA("id"), [tf.feature_column.numeric_column("grid", [2, 1])])
    with pytest.raises(KeyError, match="name"):
        train(SDCA("name"), columns())
    head = tf.contrib.estimator.multi_class_head(3)
    model = tf.contrib.estimator.LinearEstimator(head, columns(), str(tmp_path), SDCA("id"))
    with pytest.raises(ValueError, match="Unsupported head type"):
        model.train(input_fn)
