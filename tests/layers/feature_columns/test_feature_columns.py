"""Programs of feature columns give what TensorFlow 1.15.5 gives; `make_feature_column_goldens.py` asks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.layers.feature_columns import column_errors, column_programs

import flowstone as tf
import flowstone.layers.feature_columns as columns
from flowstone.layers.feature_columns.feature_layers import DenseFeatures, LinearModel

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "layers" / "feature_columns.json").read_text(encoding="utf-8")
)


def close(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) or isinstance(found, float):
        return bool(found == pytest.approx(expected, rel=1e-4, abs=2e-4))
    if isinstance(expected, list) and isinstance(found, list):
        return len(found) == len(expected) and all(close(a, b) for a, b in zip(found, expected))
    return bool(found == expected)


@pytest.mark.parametrize("name", column_programs.PROGRAMS)
def test_program_is_tensorflows(name: str, tmp_path: Path) -> None:
    found, expected = column_programs.run(tf, name, tmp_path), GOLDEN[name]
    for what in ("variables", "collections", "tables"):
        assert found[what] == expected[what]
    assert len(found["values"]) == len(expected["values"])
    for value, wanted in zip(found["values"], expected["values"]):
        assert close(value, wanted), (value, wanted)


def as_compared(error: list[str]) -> list[str]:
    """The error's class and what stands before a column's class, whose module has another name."""
    return [error[0], error[1].partition("<class")[0].strip()]


def test_errors_are_tensorflows(tmp_path: Path) -> None:
    found = column_errors.run(tf, tmp_path)
    different = {
        name: (found[name], expected)
        for name, expected in GOLDEN["errors"].items()
        if as_compared(found[name]) != as_compared(expected)
    }
    assert set(found) == set(GOLDEN["errors"])
    assert not different


# ---- columns and layers beyond the programs


class TextLength(columns._DenseColumn):
    """A program's own column of the older interface."""

    name = "length"
    _variable_shape = tf.TensorShape([1])
    _parse_example_spec: dict[str, Any] = {}

    def _transform_feature(self, inputs: Any) -> Any:
        return tf.to_float(tf.strings.length(inputs.get("text")))

    def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        return inputs.get(self)


class Parity(columns._CategoricalColumn):
    """A program's own categorical column of the older interface."""

    name = "parity"
    _num_buckets = 2
    _parse_example_spec: dict[str, Any] = {}

    def _transform_feature(self, inputs: Any) -> Any:
        numbers = inputs.get("n")
        batch = tf.range(tf.to_int64(tf.shape(numbers)[0]))
        rows = tf.stack([batch, tf.zeros_like(batch)], 1)
        return tf.SparseTensor(rows, tf.mod(numbers[:, 0], 2), [2, 1])

    def _get_sparse_tensors(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        return columns._CategoricalColumn.IdWeightPair(inputs.get(self), None)


def test_own_columns_of_the_older_interface() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        features = {"text": tf.constant(["abc", "d"]), "n": tf.constant([4, 5])}
        layer = tf.feature_column.input_layer(
            features, [TextLength(), tf.feature_column.indicator_column(Parity())]
        )
        sums = tf.feature_column.linear_model(features, [TextLength(), Parity()])
        session.run(tf.global_variables_initializer())
        assert session.run(layer).tolist() == [[3.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
        assert session.run(sums).tolist() == [[0.0], [0.0]]


def test_ids_outside_fail_the_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        column = tf.feature_column.categorical_column_with_identity("w", 3)
        layer = tf.feature_column.input_layer(
            {"w": tf.constant([[3]])}, tf.feature_column.indicator_column(column)
        )
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(layer)


def test_features_of_unknown_rank_get_two_dimensions() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        layer = tf.feature_column.input_layer({"x": x}, [tf.feature_column.numeric_column("x")])
        assert session.run(layer, {x: [1.0, 2.0]}).tolist() == [[1.0], [2.0]]
        assert session.run(layer, {x: [[1.0], [2.0]]}).tolist() == [[1.0], [2.0]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="rank 0"):
            session.run(layer, {x: 1.0})


def test_embeddings_and_linear_models_train() -> None:
    fc = tf.feature_column
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        words = fc.categorical_column_with_vocabulary_list("w", ["a", "b", "c"])
        features = {"w": tf.constant([["a"], ["b"], ["c"], ["a"]])}
        targets = tf.constant([[1.0], [-1.0], [2.0], [1.0]])
        dense = tf.layers.dense(fc.input_layer(features, [fc.embedding_column(words, 4)]), 1)
        found = dense + fc.linear_model(features, [words])
        loss = tf.reduce_mean(tf.square(found - targets))
        gradient = tf.gradients(loss, tf.trainable_variables()[0])[0]
        assert isinstance(gradient, tf.IndexedSlices)
        train = tf.train.AdagradOptimizer(0.5).minimize(loss)
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for _ in range(60):
            session.run(train)
        assert session.run(loss) < 1e-2


def test_input_layer_as_an_object() -> None:
    fc = tf.feature_column
    with tf.Graph().as_default():
        words = fc.categorical_column_with_identity("w", 3)
        layer = columns.InputLayer([fc.embedding_column(words, 2)])
        first, second = layer({"w": tf.constant([[1]])}), layer({"w": tf.constant([[2]])})
        name = "feature_column_input_layer/w_embedding/embedding_weights:0"
        assert [each.name for each in layer.variables] == [name]
        assert [each.name for each in layer.trainable_weights] == [name]
        assert layer.non_trainable_variables == []
        assert layer.name == "feature_column_input_layer"
        assert first.shape == second.shape


def test_layers_of_columns_come_back_from_their_configurations() -> None:
    fc = tf.feature_column
    with tf.Graph().as_default():
        column = fc.embedding_column(fc.categorical_column_with_identity("w", 3), 2)
        for layer in (
            columns.DenseFeatures([column], trainable=False),
            columns.LinearModel([column], units=3),
        ):
            again = type(layer).from_config(layer.get_config())
            assert again.get_config() == layer.get_config()
            assert again({"w": tf.constant([[1]])}).shape[0].value == 1
            assert len(again.trainable_variables) == (3 if again.trainable else 0)
            assert len(again.weights) == len(again.trainable_weights) + len(again.non_trainable_weights)


def test_state_of_a_layer() -> None:
    with tf.Graph().as_default():
        column = tf.feature_column.numeric_column("x")
        layer = columns.DenseFeatures([column])
        state = columns._StateManagerImpl(layer, trainable=True)
        made = state.create_variable(column, "v", [2])
        assert state.get_variable(column, "v") is made
        assert made.name == "x/v:0"
        with pytest.raises(ValueError, match="already exists"):
            state.create_variable(column, "v", [2])
        with pytest.raises(ValueError, match="does not exist"):
            state.get_variable(column, "other")
        state.add_resource(column, "table", 7)
        assert state.get_resource(column, "table") == 7
        with pytest.raises(ValueError, match="does not exist"):
            state.get_resource(column, "other")


def test_cache_makes_each_tensor_once() -> None:
    with tf.Graph().as_default():
        column = tf.feature_column.numeric_column("x")
        cache = columns.FeatureTransformationCache({"x": tf.constant([1, 2])})
        assert cache.get("x").shape.as_list() == [2, 1]
        assert cache.get(column) is cache.get(column)
        with pytest.raises(ValueError, match="not in features dictionary"):
            cache.get("y")
        with pytest.raises(TypeError, match="must be either"):
            cache.get(3)


def test_names_of_the_older_classes() -> None:
    assert columns._NumericColumn is columns.NumericColumn
    assert isinstance(tf.feature_column.numeric_column("x"), columns._DenseColumn)
    assert isinstance(tf.feature_column.numeric_column("x"), columns.DenseColumn)
    assert columns.input_layer is tf.feature_column.input_layer


def test_an_example_without_values_has_no_steps() -> None:
    """As in TensorFlow 1.15, also between examples that have some, and with several values a step."""
    contrib = tf.contrib.feature_column
    with tf.Graph().as_default(), tf.Session() as session:
        words = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["x", "y", "x"], [4, 2])
        numbers = tf.SparseTensor([[0, 0], [0, 2], [2, 1]], [1.0, 2.0, 3.0], [4, 4])
        column = contrib.sequence_categorical_column_with_hash_bucket("words", 3)
        pairs = contrib.sequence_numeric_column("numbers", shape=(2,))
        _, of_words = contrib.sequence_input_layer(
            {"words": words}, [tf.feature_column.indicator_column(column)]
        )
        _, of_pairs = contrib.sequence_input_layer({"numbers": numbers}, [pairs])
        assert session.run(of_words).tolist() == [2, 0, 1, 0]
        assert session.run(of_pairs).tolist() == [2, 0, 1, 0]


def test_layers_of_columns_name_their_nodes_by_the_columns() -> None:
    fc = tf.feature_column
    columns = [fc.numeric_column("a"), fc.categorical_column_with_identity("b", 5)]
    with tf.Graph().as_default() as graph:
        features = {"a": tf.placeholder(tf.float32, [None, 1]), "b": tf.placeholder(tf.int64, [None, 1])}
        dense = DenseFeatures([columns[0], fc.embedding_column(columns[1], 3)], name="enc")
        linear = LinearModel(columns, name="lin")
        for layer in (dense, linear, dense, linear):
            layer(features)
        names = [operation.name for operation in graph.get_operations()]
    for name in ("enc/a/Reshape", "enc/b_embedding/to_sparse_input/values", "enc/concat", "enc_1/a/Reshape"):
        assert name in names, name
    for name in ("lin/lin/lin/a/weighted_sum", "lin/lin/lin/weighted_sum", "lin_1/lin/lin/a/weighted_sum"):
        assert name in names, name
    assert "enc/b_embedding/embedding_weights" in names and "lin/a/weights" in names


def test_nodes_of_identities() -> None:
    """As many as TensorFlow 1.15.5 makes: what is random after them has its seeds."""
    column = tf.feature_column.categorical_column_with_identity("i", 5, default_value=0)
    with tf.Graph().as_default() as graph:
        tf.feature_column.input_layer(
            {"i": tf.zeros([2], tf.int64)}, tf.feature_column.indicator_column(column)
        )
        names = [op.name.rsplit("/i_indicator/")[-1] for op in graph.get_operations()]
    start = names.index("out_of_range")
    assert names[start : start + 6] == [
        "out_of_range", "Shape", "Cast/x", "Cast", "default_values", "SelectV2",
    ]  # fmt: skip
