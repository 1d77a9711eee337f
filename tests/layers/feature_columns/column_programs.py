"""Programs of feature columns, as functions of the module ``tf``: what they give.

A program returns tensors, or plain values made of columns. `run` gives them with all variables, which are set
to known numbers before.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the program to the table."""
    PROGRAMS[function.__name__] = function
    return function


def run(tf: Any, name: str, folder: Path) -> dict[str, Any]:
    """What the program gives: variables, collections of them, and the values of what it returns."""
    (folder / "words.txt").write_text("a\nb\nc\n", encoding="utf-8")
    (folder / "numbers.txt").write_text("7\n3\n", encoding="utf-8")
    with tf.Graph().as_default() as graph:
        found = PROGRAMS[name](tf, folder)
        variables = tf.global_variables()
        collections = {
            key: list(dict.fromkeys(each.name for each in graph.get_collection(key)))
            for key in ("trainable_variables", "model_variables", "mine", "a_b_shared_embedding")
        }
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            for number, variable in enumerate(variables):
                sizes = variable.shape.as_list()
                steps = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
                session.run(tf.assign(variable, steps * 0.1 + number))
            values = [_value(session, each) for each in found]
        tables = [each.name for each in graph.get_collection("table_initializer")]
    return {
        "variables": [[each.name, each.shape.as_list()] for each in variables],
        "collections": collections,
        "tables": tables,
        "values": values,
    }


def _value(session: Any, each: Any) -> Any:
    if isinstance(each, (str, int, list, dict)):
        return each
    if hasattr(each, "dense_shape"):
        found = session.run(each)
        return [_plain(found.indices), _plain(found.values), _plain(found.dense_shape)]
    return [each.name, _plain(session.run(each))]


def _plain(array: Any) -> Any:
    array = np.asarray(array)
    if array.dtype.kind == "f":
        array = array.astype(np.float64).round(4)
    if array.dtype.kind in "SO":
        return [each.decode() for each in array.ravel()]
    return array.tolist()


def words(tf: Any) -> Any:
    """[2, 3]: a, b in the first row, c (or not) and an unknown word in the second."""
    return tf.SparseTensor([[0, 0], [0, 2], [1, 1], [1, 2]], ["a", "b", "zz", "c"], [2, 3])


def ids(tf: Any) -> Any:
    """[3, 2]: 1, 2 in the first row, 3 in the second."""
    return tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 3], [3, 2])


def weights(tf: Any) -> Any:
    """Weights of `ids`."""
    return tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0.5, -1.0, 3.0], [3, 2])


def names(cols_to_vars: dict[Any, Any]) -> list[Any]:
    """Names of columns and of their variables."""
    return sorted([getattr(key, "name", key), [each.name for each in found]]
                  for key, found in cols_to_vars.items())  # fmt: skip


# ---- kinds of columns


@program
def numbers(tf: Any, _: Path) -> Any:
    fc = tf.feature_column
    features = {"x": tf.constant([1.0, 2.0]), "y": tf.constant([[1, 2], [3, 4]])}
    columns = [fc.numeric_column("y", shape=2, normalizer_fn=lambda v: v * 2), fc.numeric_column("x")]
    return [fc.input_layer(features, columns)]


@program
def intervals(tf: Any, _: Path) -> Any:
    fc = tf.feature_column
    column = fc.bucketized_column(fc.numeric_column("x", shape=(2,)), [0.0, 1.5])
    features = {"x": tf.constant([[-1.0, 1.0], [2.0, 1.5]])}
    return [fc.input_layer(features, [column]), fc.linear_model(features, [column]), column.name]


@program
def hashed_words(tf: Any, _: Path) -> Any:
    fc = tf.feature_column
    column = fc.categorical_column_with_hash_bucket("w", 10)
    numbers = fc.categorical_column_with_hash_bucket("n", 6, tf.int64)
    features = {"w": words(tf), "n": tf.constant([[5, -1], [6, 7]])}
    columns = [fc.indicator_column(column), fc.indicator_column(numbers)]
    return [fc.input_layer(features, columns)]


@program
def identities(tf: Any, _: Path) -> Any:
    fc = tf.feature_column
    column = fc.categorical_column_with_identity("w", 4, default_value=2)
    features = {"w": tf.constant([[1, 9], [-1, -5], [3, 3]])}
    return [fc.input_layer(features, fc.indicator_column(column))]


@program
def vocabulary_lists(tf: Any, _: Path) -> Any:
    fc = tf.feature_column
    known = fc.categorical_column_with_vocabulary_list("w", ["a", "b", "c"])
    oov = fc.categorical_column_with_vocabulary_list("v", ["b", "c"], num_oov_buckets=2)
    numbers = fc.categorical_column_with_vocabulary_list("n", [7, 3], default_value=1)
    small = fc.categorical_column_with_vocabulary_list("i", [7, 3], dtype=tf.int32)
    features = {"w": words(tf), "v": words(tf), "n": tf.constant([[3], [4]]), "i": tf.constant([[3], [4]])}
    return [fc.input_layer(features, [fc.indicator_column(each) for each in (known, oov, numbers, small)])]


@program
def vocabulary_files(tf: Any, folder: Path) -> Any:
    fc = tf.feature_column
    path = str(folder / "words.txt")
    known = fc.categorical_column_with_vocabulary_file("w", path, 2)
    oov = fc.categorical_column_with_vocabulary_file("v", path, num_oov_buckets=2)
    numbers = fc.categorical_column_with_vocabulary_file(
        "n", str(folder / "numbers.txt"), 2, default_value=0, dtype=tf.int64
    )
    features = {"w": words(tf), "v": words(tf), "n": tf.constant([[3], [4]], tf.int64)}
    columns = [fc.indicator_column(each) for each in (known, oov, numbers)]
    return [fc.input_layer(features, columns), fc.linear_model({"v": words(tf)}, [oov]), oov.vocabulary_size]


@program
def crosses(tf: Any, _: Path) -> Any:
    fc = tf.feature_column
    intervals = fc.bucketized_column(fc.numeric_column("x", shape=(2,)), [0.0, 1.5])
    column = fc.crossed_column(["w", intervals, fc.crossed_column(["w", "v"], 7)], 11)
    keyed = fc.crossed_column(["v", fc.categorical_column_with_identity("i", 5)], 9, hash_key=123)
    features = {
        "x": tf.constant([[-1.0, 1.0], [2.0, 1.5]]),
        "w": words(tf),
        "v": tf.constant([["p"], ["q"]]),
        "i": tf.constant([[3, 1], [4, -1]]),
    }
    layer = fc.input_layer(features, [fc.indicator_column(column), fc.indicator_column(keyed)])
    return [layer, fc.linear_model(features, [column]), column.name, keyed.name]


@program
def weighted_ids(tf: Any, _: Path) -> Any:
    fc = tf.feature_column
    column = fc.weighted_categorical_column(fc.categorical_column_with_identity("w", 5), "n")
    features = {"w": ids(tf), "n": weights(tf)}
    columns = [fc.indicator_column(column), fc.embedding_column(column, 2)]
    dense = {"w": tf.constant([[1, 2], [3, -1]]), "n": tf.constant([[2.0, 1.5], [0.5, 0.0]])}
    return [
        fc.input_layer(features, columns),
        fc.input_layer(dense, columns),
        fc.linear_model(features, [column], units=2),
    ]


# ---- embeddings


@program
def embeddings(tf: Any, _: Path) -> Any:
    fc = tf.feature_column
    column = fc.categorical_column_with_identity("w", 5)
    found = []
    for combiner in ("mean", "sum", "sqrtn"):
        found.append(fc.input_layer({"w": ids(tf)}, fc.embedding_column(column, 2, combiner=combiner)))
    clipped = fc.embedding_column(column, 2, max_norm=0.5)
    fixed = fc.embedding_column(column, 2, trainable=False)
    return [*found, fc.input_layer({"w": ids(tf)}, clipped), fc.input_layer({"w": ids(tf)}, fixed)]


@program
def embeddings_of_a_checkpoint(tf: Any, folder: Path) -> Any:
    fc = tf.feature_column
    path = str(folder / "table_checkpoint")
    with tf.Graph().as_default():
        table = tf.get_variable("table", initializer=np.arange(10, dtype=np.float32).reshape(5, 2))
        with tf.Session() as session:
            session.run(table.initializer)
            tf.train.Saver([table]).save(session, path)
    column = fc.categorical_column_with_identity("w", 5)
    whole = fc.embedding_column(column, 2, ckpt_to_load_from=path, tensor_name_in_ckpt="table")
    fc.input_layer({"w": ids(tf)}, whole)
    with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(2)):
        fc.input_layer({"w": ids(tf)}, whole)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [[session.run(each).tolist() for each in tf.global_variables()]]


@program
def shared_embeddings(tf: Any, _: Path) -> Any:
    fc = tf.feature_column
    columns = [fc.categorical_column_with_identity(name, 4) for name in "ba"]
    shared = fc.shared_embedding_columns(columns, 2)
    features = {"a": tf.constant([[1], [2]]), "b": tf.constant([[1], [0]])}
    variables: dict[Any, Any] = {}
    outputs: dict[Any, Any] = {}
    layer = fc.input_layer(features, shared, cols_to_vars=variables, cols_to_output_tensors=outputs)
    again = fc.input_layer(features, shared[:1])
    return [
        layer,
        again,
        [each.name for each in shared],
        names(variables),
        sorted([key.name, value.name] for key, value in outputs.items()),
    ]


# ---- scopes and collections


@program
def linear_models(tf: Any, _: Path) -> Any:
    fc = tf.feature_column
    column, x = fc.categorical_column_with_identity("w", 5), fc.numeric_column("x")
    z = fc.numeric_column("z", (2,))
    columns = [
        column,
        x,
        z,
        fc.weighted_categorical_column(column, "n"),
        fc.bucketized_column(z, [1.5]),
        fc.embedding_column(column, 2),
    ]
    features = {
        "w": ids(tf),
        "n": weights(tf),
        "x": tf.constant([[1.0], [2.0], [3.0]]),
        "z": tf.constant([[1.0, 2.0]] * 3),
    }
    variables: dict[Any, Any] = {}
    with tf.variable_scope("v", initializer=tf.ones_initializer()):
        mean = fc.linear_model(features, columns, units=2, sparse_combiner="mean", cols_to_vars=variables)
    rest = fc.linear_model(features, [x, column], trainable=False, weight_collections=["mine"])
    again = fc.linear_model(features, [x, z])
    return [mean, rest, again, names({k: v for k, v in variables.items() if "embedding" not in str(k)})]


@program
def scopes(tf: Any, _: Path) -> Any:
    fc = tf.feature_column
    column, x = fc.categorical_column_with_identity("w", 5), fc.numeric_column("x")
    features = {"w": ids(tf), "x": tf.constant([[1.0], [2.0], [3.0]])}
    embedding = fc.embedding_column(column, 2)
    found = []
    for scope in ("a", "b"):
        with tf.variable_scope(scope):
            found.append(fc.linear_model(features, [column, x]))
    for _ in range(2):
        with tf.variable_scope("m", reuse=tf.AUTO_REUSE):
            found.append(fc.linear_model(features, [column, x]))
            found.append(fc.input_layer(features, [embedding, x], weight_collections=["mine"]))
    template = tf.make_template("t", lambda features: fc.input_layer(features, [embedding, x]))
    found += [template(features), template(features)]
    variables: dict[Any, Any] = {}
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2)):
        found.append(fc.linear_model(features, [column], cols_to_vars=variables))
        found.append(fc.input_layer(features, [embedding], cols_to_vars=variables))
    return [*found, names(variables)]


# ---- examples


@program
def specs(tf: Any, folder: Path) -> Any:
    fc = tf.feature_column
    words = fc.categorical_column_with_hash_bucket("w", 10)
    intervals = fc.bucketized_column(fc.numeric_column("x", shape=(2,), default_value=1.0), [0.0])
    spec = fc.make_parse_example_spec(
        [
            fc.embedding_column(words, 3),
            intervals,
            fc.indicator_column(fc.crossed_column(["q", intervals], 4)),
            fc.weighted_categorical_column(words, "ww"),
            fc.categorical_column_with_identity("i", 4),
            fc.categorical_column_with_vocabulary_file("f", str(folder / "words.txt"), 3, dtype=tf.int64),
            fc.categorical_column_with_vocabulary_list("l", [1, 2], dtype=tf.int32),
        ]
    )
    return [sorted([key, str(value)] for key, value in spec.items())]


# ---- sequences


def steps(tf: Any, values: list[Any]) -> Any:
    """One step in the first row, two in the second, none in the third."""
    return tf.SparseTensor([[0, 0], [1, 0], [1, 1]], values, [3, 2])


@program
def sequences(tf: Any, folder: Path) -> Any:
    fc, sequence = tf.feature_column, tf.contrib.feature_column
    hashed = sequence.sequence_categorical_column_with_hash_bucket("h", 4)
    columns = [
        fc.embedding_column(sequence.sequence_categorical_column_with_identity("i", 3), 2),
        fc.indicator_column(
            sequence.sequence_categorical_column_with_vocabulary_list("w", ["a", "b"], num_oov_buckets=1)
        ),
        fc.indicator_column(
            sequence.sequence_categorical_column_with_vocabulary_file("v", str(folder / "words.txt"), 2)
        ),
        fc.indicator_column(hashed),
        sequence.sequence_numeric_column("n", shape=(2,), normalizer_fn=lambda x: x * 2.0),
    ]
    places = [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2], [1, 3]]
    numbers = tf.SparseTensor(places, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [3, 4])
    features = {name: steps(tf, ["a", "b", "q"]) for name in "wvh"}
    layer, lengths = sequence.sequence_input_layer(
        {**features, "i": steps(tf, [2, 0, 1]), "n": numbers}, columns, weight_collections=["mine"]
    )
    alone, own_lengths = sequence.sequence_input_layer(features, [fc.indicator_column(hashed)])
    spec = fc.make_parse_example_spec(columns)
    return [layer, lengths, alone, own_lengths, sorted([key, str(value)] for key, value in spec.items())]


@program
def shared_sequences(tf: Any, _: Path) -> Any:
    fc, sequence = tf.feature_column, tf.contrib.feature_column
    columns = [sequence.sequence_categorical_column_with_identity(name, 3) for name in "ij"]
    features = {"i": steps(tf, [2, 0, 1]), "j": steps(tf, [1, 1, 0])}
    return list(sequence.sequence_input_layer(features, fc.shared_embedding_columns(columns, 2)))


@program
def steps_of_three_dimensions(tf: Any, _: Path) -> Any:
    fc, sequence = tf.feature_column, tf.contrib.feature_column
    indices = [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 1, 1]]
    numbers = tf.SparseTensor(indices, [0.1, 0.2, 0.3, 0.4], [3, 2, 2])
    identities = sequence.sequence_categorical_column_with_identity("i", 4)
    features = {"n": numbers, "i": tf.SparseTensor(indices, [0, 1, 2, 3], [3, 2, 2])}
    columns = [
        sequence.sequence_numeric_column("n", shape=(2,), default_value=9.0),
        fc.embedding_column(identities, 2),
    ]
    return list(sequence.sequence_input_layer(features, columns))


# ---- layers as objects


def internals(tf: Any) -> Any:
    """What TensorFlow has in modules of its own, and flowstone in one."""
    if tf.__name__ == "flowstone":
        return import_module("flowstone.layers.feature_columns")
    root = "tensorflow.python.feature_column"
    modules = ("feature_column", "feature_column_v2", "sequence_feature_column", "serialization")
    found: dict[str, Any] = {}
    for name in modules:
        found.update(vars(import_module(f"{root}.{name}")))
    found["DenseFeatures"] = tf.keras.layers.DenseFeatures
    return SimpleNamespace(**found)


@program
def dense_features(tf: Any, _: Path) -> Any:
    fc, of = tf.feature_column, internals(tf)
    column = fc.categorical_column_with_identity("w", 5)
    columns = [fc.embedding_column(column, 2), fc.numeric_column("x"), fc.indicator_column(column)]
    features = {"w": ids(tf), "x": tf.constant([[1.0], [2.0], [3.0]])}
    layer = of.DenseFeatures(columns)
    found = [layer(features), layer(features)]
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2)):
        found.append(of.DenseFeatures(columns, name="own", trainable=False)(features))
    return [*found, layer.name, [each.name for each in layer.variables]]


@program
def linear_model_objects(tf: Any, _: Path) -> Any:
    fc, of = tf.feature_column, internals(tf)
    column, z = fc.categorical_column_with_identity("w", 5), fc.numeric_column("z", (2,))
    weighted = fc.weighted_categorical_column(column, "n")
    columns = [column, z, weighted, fc.bucketized_column(z, [1.5]), fc.embedding_column(column, 2)]
    features = {"w": ids(tf), "n": weights(tf), "z": tf.constant([[1.0, 2.0]] * 3)}
    model = of.LinearModel(columns, units=2, sparse_combiner="mean")
    return [model(features), model(features), model.bias.name, [each.name for each in model.variables]]


@program
def sequence_features(tf: Any, _: Path) -> Any:
    fc, of = tf.feature_column, internals(tf)
    column = fc.sequence_categorical_column_with_identity("i", 3)
    layer = of.SequenceFeatures([fc.embedding_column(column, 2), fc.sequence_numeric_column("n")])
    dense, lengths = layer({"i": steps(tf, [2, 0, 1]), "n": steps(tf, [0.2, 0.3, 0.4])})
    return [dense, lengths, of.concatenate_context_input(tf.ones([2, 2]), tf.zeros([2, 3, 1]))]


@program
def plain_values(tf: Any, _: Path) -> Any:
    fc, of = tf.feature_column, internals(tf)
    column = fc.categorical_column_with_identity("w", 5)
    intervals = fc.bucketized_column(fc.numeric_column("z", (2,)), [1.5])
    columns = [
        intervals,
        column,
        fc.crossed_column(["a", intervals], 5),
        fc.categorical_column_with_vocabulary_list("v", ["a", "b"]),
        fc.indicator_column(column),
        fc.embedding_column(column, 2),
        fc.categorical_column_with_hash_bucket("h", 4),
        fc.weighted_categorical_column(column, "n"),
        fc.sequence_numeric_column("s"),
    ]
    configs = of.serialize_feature_columns(columns)
    again = of.deserialize_feature_columns(configs)
    one = of.deserialize_feature_column(of.serialize_feature_column(column))
    return [
        str(configs),
        str(of.serialize_feature_columns(again)),
        str(one),
        [of.is_feature_column_v2([each]) for each in again],
        str(of.make_parse_example_spec_v2([column, intervals])),
    ]
