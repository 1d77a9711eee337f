"""Sparse tensors of dense ones, of ids, of strings, and back."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.ops.sparse.sparse_serialization import deserialize_sparse_op
from sparse_values import DENSE, OTHER, dense_of, node_names, run, sparse_of

pytestmark = pytest.mark.usefixtures("graph")


def test_dense_tensors_and_back() -> None:
    np.testing.assert_array_equal(run(tf.sparse_tensor_to_dense(sparse_of(DENSE))), DENSE)
    filled = np.where(DENSE, DENSE, 7)
    np.testing.assert_array_equal(run(tf.sparse.to_dense(sparse_of(DENSE), 7.0)), filled)
    np.testing.assert_array_equal(dense_of(run(tf.sparse.from_dense(DENSE))), DENSE)
    words = run(tf.sparse.from_dense([["a", ""], ["", "b"]]))
    assert (words.indices.tolist(), words.values.tolist()) == ([[0, 0], [1, 1]], [b"a", b"b"])
    assert run(tf.sparse.to_dense(tf.SparseTensor([[1]], ["a"], [2]))).tolist() == [b"", b"a"]


def test_unordered_indices_are_refused_unless_unchecked() -> None:
    backwards = tf.SparseTensor([[1], [0]], [1, 2], [3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of order"):
        run(tf.sparse_tensor_to_dense(backwards))
    assert run(tf.sparse_tensor_to_dense(backwards, validate_indices=False)).tolist() == [2, 1, 0]


def test_diagonals() -> None:
    np.testing.assert_array_equal(dense_of(run(tf.sparse.eye(3))), np.eye(3))
    value = run(tf.sparse.eye(2, 4, tf.int32))
    np.testing.assert_array_equal(dense_of(value), np.eye(2, 4))
    assert value.values.dtype == np.int32


def test_ids_as_indicators() -> None:
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], np.int32([4, 1, 0]), [3, 2])
    found = tf.sparse_to_indicator(ids, 5)
    assert found.shape.as_list() == [3, 5]
    assert run(found).tolist() == [[False, True, False, False, True], [False] * 5, [True, *[False] * 4]]
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.sparse_to_indicator(ids, 4))
    with pytest.raises(TypeError, match="float32"):
        tf.sparse_to_indicator(sparse_of(DENSE), 5)


def test_ids_with_values() -> None:
    places, sizes = [[0, 0], [0, 1], [2, 0]], [3, 2]
    ids = tf.SparseTensor(places, np.int64([4, 1, 0]), sizes)
    values = tf.SparseTensor(places, [1.0, 2.0, 3.0], sizes)
    merged = tf.sparse_merge(ids, values, 5)
    assert merged.shape.as_list() == [3, 5]
    value = run(merged)
    assert (value.indices.tolist(), value.values.tolist()) == ([[0, 1], [0, 4], [2, 0]], [2, 1, 3])
    unsorted = run(tf.sparse_merge(ids, values, 5, already_sorted=True))
    assert unsorted.values.tolist() == [1, 2, 3]
    pairs = run(tf.sparse_merge([ids, ids], values, [5, 6]))
    assert (pairs.indices.tolist(), pairs.dense_shape.tolist()) == (
        [[0, 1, 1], [0, 4, 4], [2, 0, 0]],
        [3, 5, 6],
    )
    with pytest.raises(ValueError, match="equal lengths"):
        tf.sparse_merge([ids, ids], values, 5)


def test_strings_and_back() -> None:
    one, other = tf.serialize_sparse(sparse_of(DENSE)), tf.serialize_sparse(sparse_of(OTHER))
    found = tf.deserialize_many_sparse(tf.stack([one, other]), tf.float32, rank=3)
    assert (found.indices.shape.as_list(), found.dense_shape.shape.as_list()) == ([None, 3], [3])
    np.testing.assert_array_equal(dense_of(run(found)), [DENSE, OTHER])
    rows = tf.deserialize_many_sparse(tf.serialize_many_sparse(sparse_of(DENSE)), tf.float32)
    np.testing.assert_array_equal(dense_of(run(rows)), DENSE)


@pytest.mark.parametrize("many", [False, True])
def test_variants_and_back(many: bool) -> None:
    function = tf.serialize_many_sparse if many else tf.serialize_sparse
    for sparse in (sparse_of(DENSE), tf.SparseTensor([[0, 1], [2, 2]], ["a", "b"], [3, 3])):
        held = function(sparse, out_type=tf.variant)
        assert held.dtype is tf.variant
        found, expected = run(
            [tf.SparseTensor(*deserialize_sparse_op.several(held, dtype=sparse.dtype)), sparse]
        )
        assert [x.tolist() for x in found] == [x.tolist() for x in expected]


def test_nodes_are_named_as_in_tensorflow() -> None:
    sparse = sparse_of(DENSE)
    assert node_names(lambda: tf.sparse_tensor_to_dense(sparse)) == ["zeros", "SparseToDense"]
    assert node_names(lambda: tf.serialize_sparse(sparse)) == ["SerializeSparse"]
    assert node_names(lambda: tf.serialize_many_sparse(sparse)) == ["SerializeManySparse"]
    ids = tf.SparseTensor([[0, 0]], np.int64([1]), [1, 1])
    names = node_names(lambda: tf.sparse_merge(ids, ids, 3))
    assert names[:3] == ["SparseMerge/ExpandDims/dim", "SparseMerge/ExpandDims", "SparseMerge/Cast/x"]
    assert "SparseMerge/concat_1/values_1" in names
    assert names[-2] == "SparseMerge/SparseReorder"
