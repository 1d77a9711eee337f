"""Canned Estimators over a few examples, by name, as programs of either TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["examples", "models"]

_RANDOM = np.random.RandomState(0)
_X = _RANDOM.randn(24, 1).astype(np.float32)
_C = np.array([b"a", b"b", b"c"], object)[_RANDOM.randint(0, 3, 24)]
_W = (_RANDOM.rand(24, 1) + 0.5).astype(np.float32)
_TWO = (_X[:, 0] + 0.3 * _RANDOM.randn(24) > 0).astype(np.int64)
_THREE = _RANDOM.randint(0, 3, 24).astype(np.int64)
_REAL = (2 * _X[:, 0] + 1).astype(np.float32)
_LABELS: dict[str, Any] = {
    "two": _TWO,
    "three": _THREE,
    "real": _REAL,
    "texts": np.array([b"no", b"yes"], object)[_TWO],
    "counts": _RANDOM.poisson(2, 24).astype(np.float32),
    "chances": _TWO.astype(np.float32),
    "several": _RANDOM.randint(0, 2, [24, 3]).astype(np.int64),
    "both": {"r": _REAL, "b": _TWO},
}


def examples(tf: Any, kind: str) -> Any:
    """The examples four times over, with labels of a kind, in batches of eight."""
    data = ({"x": _X, "c": _C, "w": _W}, _LABELS[kind])
    return tf.data.Dataset.from_tensor_slices(data).batch(8).repeat(4)


def models(tf: Any) -> dict[str, tuple[Callable[[str], Any], str]]:
    """By name, a function that makes an Estimator in a folder, and the kind of its labels."""
    estimator, column, heads = tf.estimator, tf.feature_column, tf.contrib.estimator

    def wide() -> list[Any]:
        return [
            column.numeric_column("x"),
            column.categorical_column_with_vocabulary_list("c", ["a", "b", "c"]),
        ]

    def shown() -> list[Any]:
        x, c = wide()
        return [x, column.indicator_column(c)]

    def embedded() -> list[Any]:
        x, c = wide()
        return [x, column.embedding_column(c, 2)]

    def dnn(head: Callable[[], Any]) -> Callable[[str], Any]:
        return lambda folder: estimator.DNNEstimator(head(), [4], shown(), folder)

    def both() -> Any:
        return heads.multi_head(
            [heads.regression_head(name="r"), heads.binary_classification_head(name="b")], [1.0, 0.5]
        )

    return {
        "baseline_classifier": (lambda d: estimator.BaselineClassifier(d, n_classes=3), "three"),
        "baseline_regressor": (lambda d: estimator.BaselineRegressor(d, weight_column="w"), "real"),
        "baseline_estimator": (lambda d: estimator.BaselineEstimator(estimator.RegressionHead(), d), "real"),
        "linear_classifier": (lambda d: estimator.LinearClassifier(wide(), d), "two"),
        "linear_weighted": (
            lambda d: estimator.LinearClassifier(
                wide(),
                d,
                weight_column="w",
                optimizer="Adam",
                sparse_combiner="mean",
                loss_reduction="weighted_sum_over_batch_size",
            ),
            "two",
        ),
        "linear_texts": (
            lambda d: estimator.LinearClassifier(wide(), d, label_vocabulary=["no", "yes"]),
            "texts",
        ),
        "linear_regressor": (lambda d: estimator.LinearRegressor(wide(), d), "real"),
        "dnn_classifier": (lambda d: estimator.DNNClassifier([4, 3], shown(), d), "two"),
        "dnn_normalized": (
            lambda d: estimator.DNNClassifier([4], embedded(), d, n_classes=3, batch_norm=True),
            "three",
        ),
        "dnn_regressor": (
            lambda d: estimator.DNNRegressor([4], shown(), d, activation_fn=tf.nn.tanh, optimizer="SGD"),
            "real",
        ),
        "combined_classifier": (
            lambda d: estimator.DNNLinearCombinedClassifier(d, wide(), "Ftrl", embedded(), "Adagrad", [4, 2]),
            "two",
        ),
        "combined_regressor": (
            lambda d: estimator.DNNLinearCombinedRegressor(d, wide(), "Ftrl", shown(), "Adagrad", [4]),
            "real",
        ),
        "combined_estimator": (
            lambda d: estimator.DNNLinearCombinedEstimator(
                estimator.MultiClassHead(3), d, wide(), "Ftrl", embedded(), "Adagrad", [4, 2]
            ),
            "three",
        ),
        "binary_head": (dnn(lambda: heads.binary_classification_head(thresholds=[0.3])), "two"),
        "poisson_head": (dnn(heads.poisson_regression_head), "counts"),
        "logistic_head": (dnn(heads.logistic_regression_head), "chances"),
        "label_head": (
            dnn(lambda: heads.multi_label_head(3, thresholds=[0.5], classes_for_class_based_metrics=[0, 2])),
            "several",
        ),
        "class_head": (dnn(lambda: heads.multi_class_head(3, name="h")), "three"),
        "several_heads": (dnn(both), "both"),
    }
