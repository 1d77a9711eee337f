"""Linear Estimators that LinearSDCA trains, as programs of either TensorFlow: what they give when trained."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["CASES", "trained"]

_RANDOM = np.random.RandomState(0)
_SIZE = 32
_DATA: dict[str, Any] = {
    "id": np.array([b"%d" % i for i in range(_SIZE)], object),
    "x": _RANDOM.randn(_SIZE, 2).astype(np.float32),
    "c": np.array([b"a", b"b", b"c", b"unknown"], object)[_RANDOM.randint(0, 4, [_SIZE, 3])],
    "age": _RANDOM.randint(0, 60, _SIZE).astype(np.float32),
    "w": (_RANDOM.rand(_SIZE) + 0.5).astype(np.float32),
}
_SCORE = _DATA["x"][:, 0] - 0.5 * _DATA["x"][:, 1] + 0.02 * _DATA["age"] - 0.5 + 0.3 * _RANDOM.randn(_SIZE)
_TWO, _REAL = (_SCORE > 0).astype(np.int64), _SCORE.astype(np.float32)

# By name: the class, the arguments of LinearSDCA and of the Estimator.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "classifier": ("LinearClassifier", {"symmetric_l2_regularization": 2.0}, {"weight_column": "w"}),
    "sparse_classifier": (
        "LinearClassifier",
        {"symmetric_l2_regularization": 1.0, "symmetric_l1_regularization": 2.0},
        {},
    ),
    "regressor": ("LinearRegressor", {"symmetric_l2_regularization": 0.5, "num_table_shards": 2}, {}),
    "adaptive_regressor": ("LinearRegressor", {"adaptive": True}, {"weight_column": "w"}),
}


def _input_fn(tf: Any, labels: Any, epochs: int) -> Any:
    return tf.data.Dataset.from_tensor_slices((_DATA, labels)).repeat(epochs).batch(_SIZE)


def _columns(tf: Any) -> list[Any]:
    column = tf.feature_column
    age = column.numeric_column("age")
    words = column.categorical_column_with_vocabulary_list("c", ["a", "b", "c"])
    return [
        column.numeric_column("x", shape=[2]),
        words,
        column.bucketized_column(age, [20.0, 40.0]),
        column.crossed_column(["c", column.bucketized_column(age, [30.0])], 5),
    ]


def trained(tf: Any, name: str, folder: str, steps: int = 300) -> dict[str, Any]:
    """The variables, the metrics and the predictions of a case, near the optimum, whatever the order of
    examples."""
    kind, options, more = CASES[name]
    optimizer = tf.estimator.experimental.LinearSDCA("id", **options)
    labels = _TWO if kind == "LinearClassifier" else _REAL
    model = getattr(tf.estimator, kind)(_columns(tf), folder, optimizer=optimizer, **more)
    model.train(lambda: _input_fn(tf, labels, steps), steps=steps)
    found = {
        each: model.get_variable_value(each) for each in model.get_variable_names() if "Hash" not in each
    }
    found.update(model.evaluate(lambda: _input_fn(tf, labels, 1)))
    key = "logits" if kind == "LinearClassifier" else "predictions"
    found["predictions"] = [each[key][0] for each in model.predict(lambda: _input_fn(tf, labels, 1))]
    return found
