"""Tests of flowstone.ops.sparse.sparse_placeholders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

VALUE = tf.SparseTensorValue(np.array([[0, 1], [2, 2]]), np.array([1.0, 2.0], np.float32), np.array([4, 3]))


def graph_text() -> list[str]:
    return [
        f"{node.name} {node.type} {node.outputs[0].shape}" for node in tf.get_default_graph().get_operations()
    ]


def test_names_and_shapes() -> None:
    with tf.Graph().as_default():
        assert tf.sparse_placeholder(tf.int64, [None, 3], "y").shape.as_list() == [None, 3]
        assert graph_text() == [
            "y/shape Placeholder (2,)",
            "y/values Placeholder (?,)",
            "y/indices Placeholder (?, 2)",
        ]
    with tf.Graph().as_default():
        tf.sparse_placeholder(tf.int64, [4, 3], "y")
        assert graph_text()[0] == "y/shape Const (2,)"
    with tf.Graph().as_default():
        x = tf.sparse_placeholder("float32")
        assert x.shape.ndims is None
        assert x.dtype is tf.float32
        assert graph_text() == [
            "Placeholder Placeholder (?,)",
            "Placeholder_1 Placeholder (?,)",
            "Placeholder_2 Placeholder (?, ?)",
        ]


@pytest.mark.parametrize(
    ("shape", "known"),
    [
        ([4, 3], [4, 3]),
        ([-1, 3], [None, 3]),
        (tf.TensorShape([None, None]), [None, None]),
        (np.array([2, 2]), [2, 2]),
        ([], []),
    ],
)
def test_known_shapes(shape: Any, known: list[int | None]) -> None:
    with tf.Graph().as_default():
        assert tf.sparse_placeholder(tf.float32, shape).shape.as_list() == known


def test_a_tensor_of_sizes() -> None:
    with tf.Graph().as_default():
        assert tf.sparse_placeholder(tf.float32, tf.placeholder(tf.int64, [2])).shape.as_list() == [
            None,
            None,
        ]
        assert tf.sparse_placeholder(tf.float32, tf.constant([2, 5], tf.int64)).shape.as_list() == [2, 5]
        with pytest.raises(ValueError, match="int64"):
            tf.sparse_placeholder(tf.float32, tf.constant([2, 2]))


def test_wrong_shapes() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="Cannot take the length of shape with unknown rank"):
            tf.sparse_placeholder(tf.int64, tf.TensorShape(None))
        with pytest.raises(TypeError, match="len"):
            tf.sparse_placeholder(tf.int64, 3)


@pytest.mark.parametrize("shape", [None, [None, 3], [4, 3]])
def test_feeding(shape: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.sparse_placeholder(tf.float32, shape)
        for value in (VALUE, tuple(VALUE)):
            for got, expected in zip(session.run(x, {x: value}), VALUE):
                np.testing.assert_array_equal(got, expected)
        if shape is None or None in shape:
            with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed a value"):
                session.run(x, {x.indices: VALUE.indices, x.values: VALUE.values})
        else:  # the sizes are known
            sizes = session.run(x, {x.indices: VALUE.indices, x.values: VALUE.values}).dense_shape
            assert sizes.tolist() == shape


def test_an_embedding_of_fed_ids() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.sparse_placeholder(tf.int64)
        table = tf.constant([[1.0, 2], [3, 4], [5, 6]])
        rows = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
        value = tf.SparseTensorValue([[0, 0], [0, 1], [1, 0]], [0, 2, 1], [2, 2])
        assert session.run(rows, {ids: value}).tolist() == [[6, 8], [3, 4]]
