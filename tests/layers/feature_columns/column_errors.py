"""Calls of feature columns that TensorFlow refuses, as functions of the module ``tf`` and a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def calls(tf: Any, folder: Path) -> dict[str, Callable[[], Any]]:
    """The calls by name."""
    fc = tf.feature_column
    x, h = fc.numeric_column("x"), fc.categorical_column_with_hash_bucket("h", 5)
    identity = fc.categorical_column_with_identity
    hashed = fc.categorical_column_with_hash_bucket
    listed = fc.categorical_column_with_vocabulary_list
    of_file = fc.categorical_column_with_vocabulary_file
    path = str(folder / "words.txt")
    (folder / "words.txt").write_text("a\nb\nc\n", encoding="utf-8")
    return {
        **_numbers(fc, tf, x, h),
        "hash_bucket_none": lambda: hashed("x", None),
        "hash_bucket_zero": lambda: hashed("x", 0),
        "hash_bucket_type": lambda: hashed("x", 2, tf.float32),
        "hash_bucket_key": lambda: hashed(1, 2),
        "identity_buckets": lambda: identity("x", 0),
        "identity_default": lambda: identity("x", 3, default_value=3),
        "identity_key": lambda: identity(0, 3),
        "list_empty": lambda: listed("x", []),
        "list_none": lambda: listed("x", None),
        "list_twice": lambda: listed("x", ["a", "a"]),
        "list_floats": lambda: listed("x", [1.5]),
        "list_other_type": lambda: listed("x", ["a"], dtype=tf.int32),
        "list_type": lambda: listed("x", ["a"], dtype=tf.float32),
        "list_oov": lambda: listed("x", ["a"], num_oov_buckets=-1),
        "list_both": lambda: listed("x", ["a"], num_oov_buckets=1, default_value=0),
        "list_key": lambda: listed(1, ["a"]),
        "file_none": lambda: of_file("x", None, 3),
        "file_missing": lambda: of_file("x", "/none"),
        "file_size": lambda: of_file("x", path, 0),
        "file_oov": lambda: of_file("x", path, 3, -1),
        "file_both": lambda: of_file("x", path, 3, 1, 0),
        "file_type": lambda: of_file("x", path, 3, dtype=tf.float32),
        "file_key": lambda: of_file(2, path),
        "cross_one": lambda: fc.crossed_column(["a"], 3),
        "cross_none": lambda: fc.crossed_column(None, 3),
        "cross_buckets": lambda: fc.crossed_column(["a", "b"], 0),
        "cross_number": lambda: fc.crossed_column(["a", x], 3),
        "cross_hashed": lambda: fc.crossed_column(["a", h], 3),
        "embedding_dimension": lambda: fc.embedding_column(h, 0),
        "embedding_none": lambda: fc.embedding_column(h, None),
        "embedding_checkpoint": lambda: fc.embedding_column(h, 2, ckpt_to_load_from="x"),
        "embedding_initializer": lambda: fc.embedding_column(h, 2, initializer=3),
        "weighted_type": lambda: fc.weighted_categorical_column(h, "w", tf.string),
        "shared_dimension": lambda: fc.shared_embedding_columns([h], 0),
        "shared_buckets": lambda: fc.shared_embedding_columns([h, hashed("g", 6)], 2),
        "shared_kinds": lambda: fc.shared_embedding_columns([h, x], 2),
        "shared_checkpoint": lambda: fc.shared_embedding_columns([h], 2, ckpt_to_load_from="a"),
        "shared_initializer": lambda: fc.shared_embedding_columns([h], 2, initializer=1),
        **_sequences(fc, tf),
        **_layers(fc, tf, x, h),
        "spec_twice": lambda: fc.make_parse_example_spec([x, fc.numeric_column("x", dtype=tf.int32)]),
        "spec_key": lambda: fc.make_parse_example_spec(["x"]),
        "spec_one": lambda: fc.make_parse_example_spec(x),
        "spec_weights": lambda: fc.make_parse_example_spec([fc.weighted_categorical_column(h, "h")]),
    }


def _numbers(fc: Any, tf: Any, x: Any, h: Any) -> dict[str, Callable[[], Any]]:
    return {
        "number_key": lambda: fc.numeric_column(3),
        "number_shape_zero": lambda: fc.numeric_column("x", shape=0),
        "number_shape_float": lambda: fc.numeric_column("x", shape=(2.5,)),
        "number_type": lambda: fc.numeric_column("x", dtype=tf.string),
        "number_default_text": lambda: fc.numeric_column("x", default_value="a"),
        "number_default_shape": lambda: fc.numeric_column("x", shape=2, default_value=[1.0, 2.0, 3.0]),
        "number_default_type": lambda: fc.numeric_column("x", dtype=tf.int32, default_value=1.5),
        "number_normalizer": lambda: fc.numeric_column("x", normalizer_fn=3),
        "intervals_source": lambda: fc.bucketized_column(h, [1]),
        "intervals_rank": lambda: fc.bucketized_column(fc.numeric_column("x", (2, 2)), [1]),
        "intervals_empty": lambda: fc.bucketized_column(x, []),
        "intervals_falling": lambda: fc.bucketized_column(x, [2, 1]),
        "intervals_number": lambda: fc.bucketized_column(x, 1),
        "intervals_equal": lambda: fc.bucketized_column(x, [1, 1]),
    }


def _sequences(fc: Any, tf: Any) -> dict[str, Callable[[], Any]]:
    steps = fc.sequence_categorical_column_with_identity("x", 3)
    features = {"x": tf.SparseTensorValue([[0, 0]], np.array([1]), [1, 1])}
    return {
        "steps_shape": lambda: fc.sequence_numeric_column("x", shape=0),
        "steps_type": lambda: fc.sequence_numeric_column("x", dtype=tf.string),
        "steps_normalizer": lambda: fc.sequence_numeric_column("x", normalizer_fn=1),
        "steps_layer": lambda: fc.input_layer(features, [fc.sequence_numeric_column("x")]),
        "steps_indicator": lambda: fc.input_layer(features, [fc.indicator_column(steps)]),
        "steps_embedding": lambda: fc.input_layer(features, [fc.embedding_column(steps, 2)]),
        "steps_none": lambda: tf.contrib.feature_column.sequence_input_layer(features, []),
        "steps_numbers": lambda: tf.contrib.feature_column.sequence_input_layer(
            features, [fc.numeric_column("x")]
        ),
        "steps_plain": lambda: tf.contrib.feature_column.sequence_input_layer(
            features, [fc.embedding_column(fc.categorical_column_with_identity("x", 3), 2)]
        ),
        "steps_spec": lambda: fc.make_parse_example_spec([fc.sequence_numeric_column("x")]),
    }


def _layers(fc: Any, tf: Any, x: Any, h: Any) -> dict[str, Callable[[], Any]]:
    def layer(features: Any, columns: Any) -> Callable[[], Any]:
        return lambda: fc.input_layer({k: tf.convert_to_tensor(v) for k, v in features.items()}, columns)

    ones, y = {"x": np.ones([2, 1], np.float32)}, fc.numeric_column("y")
    uneven = {**ones, "y": np.ones([3, 1], np.float32)}
    floats = {"h": np.ones([2, 1], np.float32)}
    sparse = tf.SparseTensorValue([[0, 0]], np.array([1.0], np.float32), [1, 1])
    indicator = fc.indicator_column
    integers = fc.categorical_column_with_vocabulary_list("h", [1, 2])
    return {
        "layer_categorical": layer(ones, [h]),
        "layer_twice": layer(ones, [x, x]),
        "layer_empty": layer(ones, []),
        "layer_missing": layer({"y": [[1.0]]}, [x]),
        "layer_uneven": layer(uneven, [x, y]),
        "layer_scalar": layer({"x": 1.0}, [x]),
        "layer_sparse": lambda: fc.input_layer({"x": sparse}, [x]),
        "layer_dict": layer(ones, {"x": x}),
        "layer_key": layer(ones, ["x"]),
        "layer_text_of_integers": layer({"h": np.ones([2, 1], np.int32)}, [indicator(h)]),
        "layer_integers_of_text": layer({"h": [["a"]]}, [indicator(integers)]),
        "layer_floats_hashed": layer(
            floats, [indicator(fc.categorical_column_with_hash_bucket("h", 3, tf.int32))]
        ),
        "layer_floats_identity": layer(floats, [indicator(fc.categorical_column_with_identity("h", 2))]),
        "linear_key": lambda: fc.linear_model({"x": tf.ones([2, 1])}, ["x"]),
        "linear_empty": lambda: fc.linear_model({"x": tf.ones([2, 1])}, []),
        "linear_twice": lambda: fc.linear_model({"x": tf.ones([2, 1])}, [x, fc.numeric_column("x")]),
    }


def run(tf: Any, folder: Path) -> dict[str, list[str]]:
    """The class and message of each call's error; 'nothing' if it is none."""
    found = {}
    for name in calls(tf, folder):
        with tf.Graph().as_default():
            try:
                calls(tf, folder)[name]()
                found[name] = ["nothing", ""]
            except Exception as error:
                found[name] = [type(error).__name__, str(error)]
    return found
