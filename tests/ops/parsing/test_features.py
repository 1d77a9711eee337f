"""The public functions that parse Examples: features of all kinds, names of nodes, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.parsing.features import parse_sequence_example


def example(**values: Any) -> bytes:
    message = tf.train.Example()
    for key, value in values.items():
        feature = message.features.feature[key]
        kind = {float: "float_list", int: "int64_list", bytes: "bytes_list"}[type(value[0])]
        getattr(feature, kind).value.extend(value)
    return message.SerializeToString()


A = example(x=[1.0, 2.0], y=[3])
B = example(x=[3.0, 4.0], y=[5, 6], z=[b"q"])
FEATURES = {
    "x": tf.FixedLenFeature([2], tf.float32),
    "y": tf.VarLenFeature(tf.int64),
    "z": tf.FixedLenFeature([], tf.string, "d"),
    "w": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
}


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_a_batch(session: Any) -> None:
    found = session.run(tf.parse_example([A, B], FEATURES))
    assert sorted(found) == ["w", "x", "y", "z"]
    assert found["x"].tolist() == [[1, 2], [3, 4]]
    assert found["z"].tolist() == [b"d", b"q"]
    assert found["w"].shape == (2, 0)
    assert found["y"].indices.tolist() == [[0, 0], [1, 0], [1, 1]]
    assert found["y"].values.tolist() == [3, 5, 6]


def test_node_names_are_tensorflows(session: Any) -> None:
    """TensorFlow 1.15's."""
    tf.parse_example([A, B], {key: FEATURES[key] for key in "xyz"})
    assert [(each.name, each.type) for each in session.graph.get_operations()] == [
        ("ParseExample/Const", "Const"),
        ("ParseExample/key_z", "Const"),
        ("ParseExample/Reshape/shape", "Const"),
        ("ParseExample/Reshape", "Reshape"),
        ("ParseExample/ParseExample/serialized", "Const"),
        ("ParseExample/ParseExample/names", "Const"),
        ("ParseExample/ParseExample/sparse_keys_0", "Const"),
        ("ParseExample/ParseExample/dense_keys_0", "Const"),
        ("ParseExample/ParseExample/dense_keys_1", "Const"),
        ("ParseExample/ParseExample", "ParseExample"),
    ]


def test_one(session: Any) -> None:
    found = session.run(tf.parse_single_example(B, FEATURES))
    named = session.run(tf.parse_single_example(B, FEATURES, example_names="b"))
    for result in (found, named):
        assert result["x"].tolist() == [3, 4]
        assert result["y"].indices.tolist() == [[0], [1]]
        assert result["y"].dense_shape.tolist() == [2]
        assert result["z"] == b"q"


def test_sparse_features(session: Any) -> None:
    """Places and values come from two features; values are put in the order of their places."""
    text = example(i=[3, 1], v=[1.0, 2.0])
    feature = {"s": tf.SparseFeature("i", "v", tf.float32, 5)}
    found = session.run(tf.parse_example([text, text], feature))
    assert list(found) == ["s"]
    assert found["s"].indices.tolist() == [[0, 1], [0, 3], [1, 1], [1, 3]]
    assert found["s"].values.tolist() == [2, 1, 2, 1]
    assert found["s"].dense_shape.tolist() == [2, 5]
    both = tf.parse_example(
        [example(i=[1, 2], j=[3, 4], v=[5.0, 6.0])],
        {"s": tf.SparseFeature(["i", "j"], "v", tf.float32, [5, 6]), "i": tf.VarLenFeature(tf.int64)},
    )
    found = session.run(both)
    assert found["s"].indices.tolist() == [[0, 1, 3], [0, 2, 4]]
    assert found["i"].values.tolist() == [1, 2]


def test_errors_name_the_example_and_the_key(session: Any) -> None:
    asked = {"x": tf.FixedLenFeature([2], tf.float32)}
    missing = tf.parse_example([A, example(y=[1])], asked, example_names=["n1", "n2"])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Name: n2, Feature: x \(data type: float\) is re"
    ):
        session.run(missing)
    other = tf.parse_example([A, example(x=[1])], asked)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Name: <unknown>, Key: x, Index: 1"):
        session.run(other)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse example input"):
        session.run(tf.parse_example([A, b"\xff\xff"], asked))


@pytest.mark.parametrize(
    ("features", "error", "words"),
    [
        ({}, ValueError, "features"),
        ({"x": 5}, ValueError, "Invalid feature x:5"),
        ({"x": tf.FixedLenFeature([None], tf.float32)}, ValueError, "FixedLenSequenceFeature"),
        ({"x": tf.FixedLenFeature([2, None], tf.float32)}, ValueError, "need to be known"),
        ({"x": tf.FixedLenFeature(None, tf.float32)}, ValueError, "Missing shape"),
        ({"x": tf.FixedLenFeature([1], tf.int32)}, TypeError, "int32"),
        ({"x": tf.VarLenFeature(None)}, ValueError, "Missing type"),
        ({"x": tf.FixedLenSequenceFeature([], tf.int64)}, ValueError, "allow_missing"),
        ({"x": tf.FixedLenFeature([2], tf.float32, [1.0])}, ValueError, "reshape"),
    ],
)
def test_refused(session: Any, features: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        tf.parse_example([A], features)


def sequence(steps: int) -> bytes:
    message = tf.train.SequenceExample()
    message.context.feature["c"].int64_list.value.extend([1, steps])
    lists = message.feature_lists.feature_list
    for i in range(steps):
        lists["l"].feature.add().float_list.value.extend([i, i + 0.5])
        lists["v"].feature.add().bytes_list.value.extend([b"q"] * i)
    return message.SerializeToString()


CONTEXT = {"c": tf.FixedLenFeature([2], tf.int64), "k": tf.FixedLenFeature([], tf.string, "d")}
LISTS = {"l": tf.FixedLenSequenceFeature([2], tf.float32), "v": tf.VarLenFeature(tf.string)}


def test_one_sequence(session: Any) -> None:
    context, lists = session.run(tf.parse_single_sequence_example(sequence(2), CONTEXT, LISTS))
    assert context["c"].tolist() == [1, 2]
    assert context["k"] == b"d"
    assert lists["l"].tolist() == [[0, 0.5], [1, 1.5]]
    assert lists["v"].indices.tolist() == [[1, 0]]
    assert lists["v"].dense_shape.tolist() == [2, 1]


def test_a_batch_of_sequences(session: Any) -> None:
    context, lists, lengths = session.run(parse_sequence_example([sequence(1), sequence(2)], CONTEXT, LISTS))
    assert context["c"].tolist() == [[1, 1], [1, 2]]
    np.testing.assert_array_equal(lists["l"], [[[0, 0.5], [0, 0]], [[0, 0.5], [1, 1.5]]])
    assert lists["v"].indices.tolist() == [[1, 1, 0]]
    assert lengths["l"].tolist() == [1, 2]


def test_lists_that_may_be_missing(session: Any) -> None:
    required = {"q": tf.FixedLenSequenceFeature([], tf.int64)}
    with pytest.raises(tf.errors.InvalidArgumentError, match="Feature list 'q' is required"):
        session.run(tf.parse_single_sequence_example(sequence(1), None, required))
    optional = {"q": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}
    _, lists = session.run(tf.parse_single_sequence_example(sequence(1), None, optional))
    assert lists["q"].shape == (0,)


def test_later_op_parses_one_sequence_and_has_no_splits_of_messages(session: Any) -> None:
    none = tf.constant([], tf.string)
    outputs = tf.raw_ops.ParseSequenceExampleV2(
        serialized=sequence(3), debug_name=none, context_sparse_keys=["c"], context_dense_keys=none,
        context_ragged_keys=["c"], feature_list_sparse_keys=none, feature_list_dense_keys=["l"],
        feature_list_ragged_keys=["v"], feature_list_dense_missing_assumed_empty=[False],
        context_dense_defaults=[], Ncontext_sparse=1, context_sparse_types=[tf.int64],
        context_ragged_value_types=[tf.int64], context_ragged_split_types=[tf.int32], Nfeature_list_dense=1,
        feature_list_dense_types=[tf.float32], feature_list_ragged_value_types=[tf.string],
        feature_list_ragged_split_types=[tf.int64], feature_list_dense_shapes=[[2]],
    )  # fmt: skip
    tensors = [x for each in outputs for x in (each if isinstance(each, (list, tuple)) else [each])]
    assert [None if x.shape.ndims is None else x.shape.as_list() for x in tensors] == [
        [None, 1], [None], [1], [None], [None], [None, 2], [], [None], [None], [None]]  # fmt: skip
    assert [np.asarray(each).tolist() for each in session.run(tensors)] == [
        [[0], [1]], [1, 3], [2], [1, 3], [], [[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]], 3, [b"q"] * 3, [],
        [0, 0, 1, 3]]  # fmt: skip
