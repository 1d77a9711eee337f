"""`KernelLinearClassifier`, with the losses of TensorFlow 1.15."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

methods = tf.contrib.kernel_methods
X = np.random.RandomState(0).rand(40, 3).astype(np.float32)
Y = ((X**2).sum(1) > 1).astype(np.int32)
COLUMN = tf.contrib.layers.real_valued_column("x", 3)


def inputs() -> tuple[dict[str, Any], Any]:
    return {"x": tf.constant(X)}, tf.constant(Y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "classes, columns, expected", [(2, None, (0.348, 0.875)), (3, [COLUMN], (0.2374, 0.9))]
)
def test_training(classes: int, columns: Any, expected: tuple[float, float], tmp_path: Path) -> None:
    mappers = [
        methods.RandomFourierFeatureMapper(3, 20, stddev=1.0),
        methods.RandomFourierFeatureMapper(3, 8, seed=2),
    ]
    classifier = methods.KernelLinearClassifier(
        n_classes=classes,
        model_dir=str(tmp_path),
        optimizer=tf.train.FtrlOptimizer(0.5),
        feature_columns=columns,
        kernel_mappers={COLUMN: mappers},
    )
    classifier.fit(input_fn=inputs, steps=20)
    found = classifier.evaluate(input_fn=inputs, steps=1)
    np.testing.assert_allclose((found["loss"], found["accuracy"]), expected, rtol=2e-3)
    assert "linear/x_MAPPED/weight" in classifier.get_variable_names()
    assert list(classifier.predict_classes(input_fn=lambda: inputs()[0]))[:6] == [1, 1, 1, 1, 1, 0]


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one of feature_columns, kernel_mappers"):
        methods.KernelLinearClassifier()
    with pytest.raises(ValueError, match="Invalid kernel mappers"):
        methods.KernelLinearClassifier(kernel_mappers={COLUMN: [3]})
    with pytest.raises(ValueError, match="n_classes must be > 1"):
        methods.KernelLinearClassifier(feature_columns=[COLUMN], n_classes=1)
