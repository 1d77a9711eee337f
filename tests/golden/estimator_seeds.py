"""Estimators with a seed of their configuration alone, and the random operations of their training graphs.

Such an operation's second seed is the number of nodes made before it. Run with a Python that has TensorFlow
1.15, from the repository, `python tests/golden/estimator_seeds.py` writes `estimators/seeds.json`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "estimators" / "seeds.json"
SEED = 11
FEATURES = {"size": [0.2, 0.5, 2.0, 1.0], "kind": ["x", "y", "x", "z"], "place": ["1", "2", "3", "4"]}
LABELS = [0, 1, 1, 0]


def _columns(tf: Any) -> tuple[list[Any], list[Any]]:
    fc = tf.feature_column
    size = fc.numeric_column("size")
    kind = fc.categorical_column_with_vocabulary_list("kind", ["x", "y"])
    place = fc.embedding_column(fc.categorical_column_with_hash_bucket("place", 5), 3)
    bounds = fc.bucketized_column(size, [0.0, 1.0])
    wide = [bounds, kind, fc.crossed_column([bounds, "kind"], 7)]
    return wide, [size, fc.indicator_column(kind), place, bounds]


def _data(tf: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices((FEATURES, LABELS)).repeat(5).batch(4)


def _model(tf: Any) -> Any:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        hidden = tf.layers.dense(tf.feature_column.input_layer(features, _columns(tf)[1]), 4, tf.nn.relu)
        logits = tf.layers.dense(tf.layers.dropout(hidden, 0.5, training=True), 2)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    return model_fn


def _tpu_model(tf: Any) -> Any:
    def model_fn(features: Any, labels: Any, mode: str, params: Any) -> Any:
        spec = _model(tf)(features, labels, mode)
        return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=spec.loss, train_op=spec.train_op)

    return model_fn


def _network(tf: Any, config: Any) -> Any:
    return tf.estimator.DNNClassifier([4, 3], _columns(tf)[1], config=config, dropout=0.3, n_classes=3)


def _combined(tf: Any, config: Any) -> Any:
    wide, deep = _columns(tf)
    return tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=wide, dnn_feature_columns=deep, dnn_hidden_units=[4], config=config
    )


def _shared(tf: Any, config: Any) -> Any:
    fc = tf.feature_column
    kind, place = [fc.categorical_column_with_hash_bucket(name, 5) for name in ("kind", "place")]
    weighted = fc.weighted_categorical_column(place, "size")
    columns = [
        *fc.shared_embedding_columns([kind, place], 3),
        fc.embedding_column(weighted, 2, combiner="sqrtn"),
        fc.embedding_column(fc.crossed_column(["kind", "place"], 7), 2),
    ]
    return tf.estimator.DNNClassifier([4], columns, config=config, dropout=0.3, n_classes=3)


def _own(tf: Any, config: Any) -> Any:
    return tf.estimator.Estimator(_model(tf), config=config)


def _on_a_tpu(tf: Any, config: Any) -> Any:
    config = tf.contrib.tpu.RunConfig(tf_random_seed=SEED, model_dir=config.model_dir)
    return tf.contrib.tpu.TPUEstimator(_tpu_model(tf), config=config, use_tpu=False, train_batch_size=4)


ESTIMATORS = {
    "network": _network,
    "combined": _combined,
    "shared embeddings": _shared,
    "own model": _own,
    "TPUEstimator": _on_a_tpu,
}


def seeds(tf: Any, name: str, folder: str) -> list[list[Any]]:
    """The types of the random operations of one training graph, and their second seeds."""
    found: list[list[Any]] = []

    class Hook(tf.train.SessionRunHook):  # type: ignore[misc]
        def begin(self) -> None:
            for op in tf.get_default_graph().get_operations():
                if "seed2" in op.node_def.attr and op.get_attr("seed"):
                    found.append([op.type, op.get_attr("seed2")])

    config = tf.estimator.RunConfig(tf_random_seed=SEED, model_dir=folder)

    def input_fn(params: Any = None) -> Any:
        return _data(tf)

    ESTIMATORS[name](tf, config).train(input_fn, hooks=[Hook()], steps=1)
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    import tensorflow

    result = {}
    for each in ESTIMATORS:
        with tempfile.TemporaryDirectory() as directory:
            result[each] = seeds(tensorflow, each, directory)
    GOLDEN.write_text(json.dumps(result, indent=1) + "\n")
