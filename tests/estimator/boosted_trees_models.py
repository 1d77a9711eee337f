"""Estimators of boosted trees on a few examples, for TensorFlow 1.15 and flowstone alike."""

from __future__ import annotations

from typing import Any

import numpy as np

EXAMPLES = 48
SAVED = "regressor"
CASES: dict[str, dict[str, Any]] = {
    "classifier": {"n_trees": 3, "max_depth": 3, "numeric": False},
    "numeric": {"n_trees": 3, "max_depth": 3, "l2_regularization": 0.1},
    "regressor": {"batch": 16, "n_batches_per_layer": 3, "n_trees": 2, "max_depth": 2, "center_bias": True},
    "pruned": {
        "batch": 24,
        "n_batches_per_layer": 2,
        "n_trees": 3,
        "center_bias": True,
        "pruning_mode": "post",
        "tree_complexity": 0.01,
        "max_depth": 3,
    },
    "weighted": {"n_trees": 2, "max_depth": 2, "weight_column": "w", "min_node_weight": 0.05},
    "in_memory": {"n_trees": 3, "max_depth": 3, "train_in_memory": True},
}
_REGRESSION = ("in_memory", "regressor", "weighted")


def data() -> tuple[dict[str, Any], Any]:
    """Features and a number to be told."""
    draws = np.random.RandomState(0)
    features = {
        "a": np.round(draws.randn(EXAMPLES), 2).astype(np.float32),
        "b": np.round(draws.rand(EXAMPLES, 2) * 4, 1).astype(np.float32),
        "job": np.array([b"x", b"y", b"z"])[draws.randint(0, 3, EXAMPLES)],
        "age": draws.randint(0, 50, EXAMPLES).astype(np.float32),
        "w": np.round(draws.rand(EXAMPLES) + 0.2, 1).astype(np.float32),
    }
    told = features["a"] * 2 + (features["job"] == b"y") * 1.5 - features["b"][:, 1] * 0.3
    return features, np.round(told + (features["age"] > 25), 2).astype(np.float32)


def columns(tf: Any, numeric: bool) -> list[Any]:
    """A bucketized, an indicator and two numeric columns."""
    column = tf.feature_column
    jobs = column.categorical_column_with_vocabulary_list("job", ["x", "y", "z"])
    found = [column.bucketized_column(column.numeric_column("age"), [10.0, 20.0, 30.0])]
    found.append(column.indicator_column(jobs))
    if numeric:
        found += [column.numeric_column("a"), column.numeric_column("b", shape=[2])]
    return found


def model(tf: Any, name: str, folder: str) -> tuple[Any, Any, Any]:
    """The Estimator of a case, its input function for training, and that for all else."""
    case = {"batch": EXAMPLES, "numeric": True, "n_batches_per_layer": 1, **CASES[name]}
    batch, numeric = case.pop("batch"), case.pop("numeric")
    features, told = data()
    labels = told if name in _REGRESSION else (told > told.mean()).astype(np.int32)
    kind = tf.estimator.BoostedTreesRegressor if name in _REGRESSION else tf.estimator.BoostedTreesClassifier

    def constants() -> Any:
        return {key: tf.constant(value) for key, value in features.items()}, tf.constant(labels)

    def batches() -> Any:
        return tf.data.Dataset.from_tensor_slices((features, labels)).batch(batch).repeat()

    def once() -> Any:
        return tf.data.Dataset.from_tensor_slices((features, labels)).batch(EXAMPLES)

    made = kind(columns(tf, numeric), model_dir=folder, learning_rate=0.3, **case)
    return made, constants if case.get("train_in_memory") else batches, once


def rounded(values: Any) -> Any:
    """What JSON can hold of an array."""
    return np.round(np.asarray(values, np.float64), 4).tolist()


def answers(made: Any, once: Any) -> dict[str, Any]:
    """What a trained model says."""
    found = {
        "evaluated": {key: rounded(value) for key, value in made.evaluate(once).items()},
        "importances": [
            [key, rounded(value)] for key, value in made.experimental_feature_importances().items()
        ],
        "logits": [
            rounded(each["logits" if "logits" in each else "predictions"]) for each in made.predict(once)
        ],
    }
    if made._center_bias:
        explained = list(made.experimental_predict_with_explanations(once))[:3]
        found["explained"] = [
            [rounded(each["bias"]), {key: rounded(value) for key, value in each["dfc"].items()}]
            for each in explained
        ]
    return found


def run(tf: Any, name: str, folder: str) -> dict[str, Any]:
    """What the model of a case says after training, and the names in its checkpoint."""
    made, train, once = model(tf, name, folder)
    made.train(train, max_steps=30)
    names = [each for each, _ in tf.train.list_variables(folder) if "are_features_cached" not in each]
    return {**answers(made, once), "saved": [each for each in names if "cached_feature" not in each]}
