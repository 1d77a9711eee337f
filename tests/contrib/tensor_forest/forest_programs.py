"""Forests of `tf.contrib.tensor_forest` without random numbers, for TensorFlow 1.15 and flowstone alike.

With one feature every candidate splits by it, at the values of the first examples that come to its leaf.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STEPS = 5


def cases() -> dict[str, dict[str, Any]]:
    """Parameters of the forests by name; `kind` is which examples they are trained on."""
    return {
        "basic": {"num_classes": 3, "split_after_samples": 6, "num_splits_to_consider": 3},
        "many_nodes": {
            "num_classes": 3,
            "split_after_samples": 4,
            "num_splits_to_consider": 2,
            "kind": "long",
        },
        "few_nodes": {
            "num_classes": 3,
            "split_after_samples": 4,
            "num_splits_to_consider": 2,
            "max_nodes": 6,
            "kind": "long",
        },
        "same_values": {
            "num_classes": 2,
            "split_after_samples": 5,
            "num_splits_to_consider": 4,
            "kind": "same",
        },
        "one_class": {
            "num_classes": 3,
            "split_after_samples": 4,
            "num_splits_to_consider": 2,
            "kind": "one_class",
        },
        "less": {
            "num_classes": 3,
            "split_after_samples": 6,
            "num_splits_to_consider": 3,
            "split_name": "less",
        },
        "paths": {
            "num_classes": 3,
            "split_after_samples": 6,
            "num_splits_to_consider": 3,
            "inference_tree_paths": True,
        },
        "two_trees": {
            "num_classes": 3,
            "num_trees": 2,
            "split_after_samples": 6,
            "num_splits_to_consider": 3,
        },
        "regression": {
            "num_classes": 1,
            "regression": True,
            "split_after_samples": 6,
            "num_splits_to_consider": 3,
            "kind": "numbers",
        },
        "regression_of_two": {
            "num_classes": 2,
            "regression": True,
            "split_after_samples": 6,
            "num_splits_to_consider": 3,
            "kind": "pairs",
        },
        "categories": {
            "num_classes": 2,
            "split_after_samples": 5,
            "num_splits_to_consider": 3,
            "kind": "categories",
        },
        "scores": {
            "num_classes": 4,
            "split_after_samples": 20,
            "num_splits_to_consider": 8,
            "kind": "scores",
        },
        "sparse_leaves": {
            "num_classes": 3,
            "split_after_samples": 6,
            "num_splits_to_consider": 3,
            "model_name": "all_sparse",
        },
        "by_depth": {
            "num_classes": 3,
            "split_after_samples": "linear { slope: 8 y_intercept: 4 min_val: 4 max_val: 40 }",
            "num_splits_to_consider": 2,
            "kind": "long",
        },
        "missing": {
            "num_classes": 3,
            "split_after_samples": 6,
            "num_splits_to_consider": 3,
            "kind": "missing",
        },
    }


def examples(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Features [examples, 1] and labels."""
    x = np.array([3, 1, 2, 5, 4, 0, 2.5, 3.5], np.float32)
    y: Any = np.array([0, 1, 1, 2, 2, 1, 0, 0])
    if kind == "long":
        x = np.random.RandomState(1).uniform(0, 9, 60).astype(np.float32)
        y = (x * 1.7).astype(np.int64) % 3
    elif kind == "scores":
        draws = np.random.RandomState(3)
        x, y = draws.randn(80).astype(np.float32), draws.randint(0, 4, 80)
    elif kind == "same":
        x, y = np.array([1, 1, 2, 2, 1, 2, 1, 1], np.float32), np.array([0, 0, 1, 1, 0, 1, 0, 1])
    elif kind == "one_class":
        y = np.ones(8, np.int64)
    elif kind == "numbers":
        y = np.array([0.5, 1, 1.5, 7, 6, 1, 0.25, 0.75], np.float32)
    elif kind == "pairs":
        y = np.array([[v, 10 - v * v] for v in x], np.float32)
    elif kind == "categories":
        x, y = np.array([1, 2, 3, 1, 2, 3, 3, 2], np.int32), np.array([0, 1, 0, 0, 1, 0, 0, 0])
    elif kind == "missing":
        x[3] = np.nan
    return x[:, None], y


def train(tf: Any, kind: str = "short", **params: Any) -> dict[str, Any]:
    """What the forest holds and says before and after each step.

    Models and statistics are texts of serialized messages, a letter a byte.
    """
    from tensorflow.contrib.tensor_forest.python import tensor_forest
    from tensorflow.contrib.tensor_forest.python.ops import gen_model_ops, gen_stats_ops
    from tensorflow.python.ops import resources

    x, y = examples(kind)
    found: dict[str, Any] = {"models": [], "stats": [], "probabilities": [], "sizes": [], "paths": []}
    with tf.Graph().as_default():
        filled = tensor_forest.ForestHParams(
            **{"num_features": 1, "num_trees": 1, "checkpoint_stats": True, **params}
        ).fill()
        forest = tensor_forest.RandomForestGraphs(filled)
        features = tf.placeholder(x.dtype, [None, 1])
        columns = {"category": features} if kind == "categories" else features
        labels = tf.placeholder(y.dtype, [None, *y.shape[1:]])
        step = forest.training_graph(columns, labels)
        predictions, paths, variance = forest.inference_graph(columns)
        models = [gen_model_ops.tree_serialize(v.tree) for v in forest.variables.variables]
        stats = [
            gen_stats_ops.fertile_stats_serialize(v.stats, params=filled.serialized_params_proto)
            for v in forest.variables.variables
        ]
        config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            session.run(resources.initialize_resources(resources.shared_resources()))
            for _ in range(STEPS):
                session.run(step, {features: x, labels: y})
                values = session.run(
                    [models, stats, predictions, variance, forest.average_size()],
                    {features: x},
                )
                found["models"].append([each.decode("latin-1") for each in values[0]])
                found["stats"].append([each.decode("latin-1") for each in values[1]])
                found["probabilities"].append(np.asarray(values[2]).tolist())
                found["sizes"].append(float(values[4]))
            if params.get("inference_tree_paths"):
                found["paths"] = [
                    [each.decode("latin-1") for each in row] for row in session.run(paths, {features: x})
                ]
            found["variance"] = np.asarray(values[3]).tolist()
            found["usage"] = session.run(forest.feature_importances()).tolist()
    return found


def _saved_forest(tf: Any) -> tuple[Any, Any, Any, np.ndarray, np.ndarray]:
    from tensorflow.contrib.tensor_forest.python import tensor_forest

    draws = np.random.RandomState(5)
    x = draws.uniform(-1, 1, [200, 4]).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int64) + (x[:, 2] > 0.5)
    params = tensor_forest.ForestHParams(
        num_classes=3, num_features=4, num_trees=3, split_after_samples=20, base_random_seed=7
    ).fill()
    forest = tensor_forest.RandomForestGraphs(params)
    features, labels = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int64, [None])
    step = forest.training_graph(features, labels)
    predictions = forest.inference_graph(features)
    return (features, labels), step, (predictions[0], predictions[2], forest.average_size()), x, y


def save(tf: Any, path: str) -> dict[str, Any]:
    """Trains and saves a forest; its predictions."""
    from tensorflow.python.ops import resources

    with tf.Graph().as_default(), tf.Session() as session:
        (features, labels), step, answers, x, y = _saved_forest(tf)
        session.run(tf.global_variables_initializer())
        session.run(resources.initialize_resources(resources.shared_resources()))
        for _ in range(10):
            session.run(step, {features: x, labels: y})
        tf.train.Saver().save(session, path, write_meta_graph=False)
        values = session.run(answers, {features: x[:20]})
    return {"means": values[0].tolist(), "variances": values[1].tolist(), "size": float(values[2])}


def restore(tf: Any, path: str) -> dict[str, Any]:
    """The predictions of a forest that was saved, and its size after another step."""
    with tf.Graph().as_default(), tf.Session() as session:
        (features, labels), step, answers, x, y = _saved_forest(tf)
        tf.train.Saver().restore(session, path)
        values = session.run(answers, {features: x[:20]})
        session.run(step, {features: x, labels: y})
        later = float(session.run(answers[2]))
    return {
        "means": values[0].tolist(),
        "variances": values[1].tolist(),
        "size": float(values[2]),
        "later": later,
    }
