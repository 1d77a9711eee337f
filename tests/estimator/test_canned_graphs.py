"""The variables and collections of canned Estimators' graphs, as TensorFlow 1.15.5 has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

X = {"a": np.linspace(-1, 1, 20, dtype=np.float32)[:, None], "b": np.array(["x", "y"] * 10)}
Y = (X["a"][:, 0] > 0).astype(np.int32)
COMMON = ["eval_step", "mean/count", "mean/total"]
BINARY = [
    "accuracy/count", "accuracy/total", "auc/false_negatives", "auc/false_positives", "auc/true_negatives",
    "auc/true_positives", "auc_precision_recall/false_negatives", "auc_precision_recall/false_positives",
    "auc_precision_recall/true_negatives", "auc_precision_recall/true_positives", "average_loss/count",
    "average_loss/total", "label/mean/count", "label/mean/total", "precision/false_positives/count",
    "precision/true_positives/count", "prediction/mean/count", "prediction/mean/total",
    "recall/false_negatives/count", "recall/true_positives/count",
]  # fmt: skip
REGRESSION = ["mean/count", "mean/total", "mean_1/count", "mean_1/total"]
REGRESSION += ["prediction/mean/count", "prediction/mean/total"]
SEVERAL = ["accuracy/count", "accuracy/total", "average_loss/count", "average_loss/total"]
SUMS = ["dnn/head/weighted_loss/Sum:0"] * 2


def metrics(scope: str, names: list[str]) -> list[str]:
    """The names of an evaluation's local variables."""
    return sorted([*COMMON, *[scope + name for name in names]])


class Seen(tf.train.SessionRunHook):  # type: ignore[misc]
    """Notes variables and collections when a graph is complete."""

    def begin(self) -> None:
        collection = tf.get_collection
        self.kinds = {each.op.type for each in tf.trainable_variables()}
        self.models = collection(tf.GraphKeys.MODEL_VARIABLES)
        self.local = sorted(each.op.name for each in tf.local_variables())
        self.losses = [each.name for each in collection(tf.GraphKeys.LOSSES)]
        self.updates = [each.name for each in collection(tf.GraphKeys.UPDATE_OPS)]


def estimators(folder: str) -> dict[str, Any]:
    column = tf.feature_column
    number = column.numeric_column("a")
    words = column.categorical_column_with_vocabulary_list("b", ["x", "y"])
    embedding, estimator = column.embedding_column(words, 2), tf.estimator
    return {
        "dnn": lambda: estimator.DNNClassifier([4], [number, embedding], folder),
        "several": lambda: estimator.DNNClassifier([4], [number], folder, n_classes=3, batch_norm=True),
        "regression": lambda: estimator.DNNRegressor([4], [number], folder),
        "linear": lambda: estimator.LinearClassifier([number, words], folder),
        "combined": lambda: estimator.DNNLinearCombinedClassifier(
            folder, [words], "Ftrl", [number], "SGD", [4]
        ),
        "baseline": lambda: estimator.BaselineClassifier(folder),
    }


@pytest.mark.parametrize(
    ("name", "kinds", "local", "losses"),
    [
        ("dnn", {"VarHandleOp"}, metrics("dnn/metrics/", BINARY), SUMS),
        ("several", {"VarHandleOp"}, metrics("dnn/metrics/", SEVERAL),
            ["dnn/head/sparse_softmax_cross_entropy_loss/Mul:0", *SUMS]),
        ("regression", {"VarHandleOp"}, metrics("dnn/", REGRESSION),
            ["dnn/head/mean_squared_error/Mul:0", *SUMS]),
        ("linear", {"VarHandleOp"}, metrics("linear/metrics/", BINARY),
            ["linear/head/weighted_loss/Sum:0"] * 2),
        ("combined", {"VarHandleOp"}, metrics("metrics/", BINARY), ["head/weighted_loss/Sum:0"] * 2),
        ("baseline", {"VariableV2"}, metrics("metrics/", BINARY), ["head/weighted_loss/Sum:0"] * 2),
    ],
)  # fmt: skip
def test_variables_and_collections(
    name: str, kinds: set[str], local: list[str], losses: list[str], tmp_path: Path
) -> None:
    estimator = estimators(str(tmp_path))[name]()
    input_fn = tf.estimator.inputs.numpy_input_fn(X, Y, shuffle=False, num_epochs=1, batch_size=10)
    train, evaluate = Seen(), Seen()
    estimator.train(input_fn, hooks=[train], steps=1)
    estimator.evaluate(input_fn, hooks=[evaluate], steps=1)
    assert (train.kinds, train.models, train.losses) == (kinds, [], losses)
    assert evaluate.local == local
    if name == "several":
        moving = "dnn/hiddenlayer_0/batchnorm_0/AssignMovingAvg"
        assert train.updates == [f"{moving}/AssignSubVariableOp", f"{moving}_1/AssignSubVariableOp"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("DNNRegressor", {"train": ["made"], "eval": ["made"], "infer": ["made"]}),
        ("LinearRegressor", {"train": ["linear/made"], "eval": ["linear/made"], "infer": ["linear/made"]}),
        ("BaselineRegressor", {"train": ["head/made"], "eval": [], "infer": []}),
    ],
)
def test_functions_make_optimisers_where_tensorflow_calls_them(
    name: str, found: dict[str, list[str]], tmp_path: Path
) -> None:
    """Before a network is built, after a linear model, and to train a baseline only."""

    def optimizer() -> Any:
        return tf.train.GradientDescentOptimizer(tf.constant(0.1, name="made"))

    columns = [tf.feature_column.numeric_column("a")]
    given = {"DNNRegressor": ([4], columns), "LinearRegressor": (columns,)}.get(name, ())
    model = getattr(tf.estimator, name)(*given, model_dir=str(tmp_path), optimizer=optimizer)
    for mode, names in found.items():
        with tf.Graph().as_default() as graph:
            tf.train.create_global_step()
            labels = None if mode == "infer" else tf.constant(Y[:, None])
            model.model_fn({"a": tf.constant(X["a"])}, labels, mode, model.config)
            nodes = [node.name for node in graph.get_operations()]
            assert [node for node in nodes if node.endswith("made")] == names
            if name == "DNNRegressor":
                assert nodes.index("made") < min(i for i, each in enumerate(nodes) if each.startswith("dnn/"))
