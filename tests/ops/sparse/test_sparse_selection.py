"""Parts of sparse tensors, what they make together, and rows that are filled."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from sparse_values import DENSE, OTHER, dense_of, is_ordered, node_names, run, sparse_of

pytestmark = pytest.mark.usefixtures("graph")


def test_slices() -> None:
    found = run(tf.sparse_slice(sparse_of(DENSE), [0, 1], [2, 9]))
    np.testing.assert_array_equal(dense_of(found), DENSE[:2, 1:])


def test_splits() -> None:
    for axis in (0, 1, -1):
        pieces = run(tf.sparse_split(sp_input=sparse_of(DENSE), num_split=2, axis=axis))
        for piece, expected in zip(pieces, np.array_split(DENSE, 2, axis), strict=True):
            np.testing.assert_array_equal(dense_of(piece), expected)
    pieces = run(tf.sparse.split(sp_input=sparse_of(DENSE), num_split=3, split_dim=0))
    assert [dense_of(piece).tolist() for piece in pieces] == DENSE[:, None].tolist()


def test_split_wants_keywords() -> None:
    with pytest.raises(ValueError, match="Keyword"):
        tf.sparse_split(sparse_of(DENSE), 2, 1)
    with pytest.raises(ValueError, match="num_split is required"):
        tf.sparse_split(sp_input=sparse_of(DENSE), axis=1)
    with pytest.raises(ValueError, match="axis is required"):
        tf.sparse_split(sp_input=sparse_of(DENSE), num_split=2)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_joins(axis: int) -> None:
    found = tf.sparse_concat(axis, [sparse_of(DENSE), sparse_of(OTHER)])
    expected = np.concatenate([DENSE, OTHER], axis)
    assert found.shape.as_list() == list(expected.shape)
    value = run(found)
    np.testing.assert_array_equal(dense_of(value), expected)
    assert is_ordered(value)


def test_joins_of_unequal_shapes() -> None:
    parts = [sparse_of(DENSE), sparse_of(OTHER[:2])]
    for found in (
        tf.sparse_concat(1, parts, expand_nonconcat_dim=True),
        tf.sparse.concat(None, parts, concat_dim=-1, expand_nonconcat_dims=True),
    ):
        expected = np.concatenate([DENSE, [*OTHER[:2], [0, 0, 0]]], 1)
        assert found.shape.as_list() == [3, 6]
        np.testing.assert_array_equal(dense_of(run(found)), expected)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected 3 for dimension 0 but got 2"):
        run(tf.sparse_concat(1, parts))
    with pytest.raises(TypeError, match="list or tuple"):
        tf.sparse_concat(1, sparse_of(DENSE))
    assert tf.sparse_concat(1, parts[:1]) is parts[0]


@pytest.mark.parametrize(("axis", "nodes"), [(1, 37), (-1, 31)])
def test_a_join_of_unequal_shapes_adds_as_many_nodes_as_tensorflow(axis: int, nodes: int) -> None:
    parts = [tf.SparseTensor([[0, 0]], [1], [2, 3]), tf.SparseTensor([[0, 0]], [3], [3, 3])]
    before = len(tf.get_default_graph().get_operations())
    tf.sparse_concat(axis, parts, expand_nonconcat_dim=True)
    assert len(tf.get_default_graph().get_operations()) == before + nodes


def test_chosen_elements() -> None:
    found = run(tf.sparse_retain(sparse_of(DENSE), [True, False, True, False]))
    assert (found.values.tolist(), found.dense_shape.tolist()) == ([1, -3], [3, 3])
    with pytest.raises(ValueError, match="not compatible"):
        tf.sparse_retain(sparse_of(DENSE), [True])


def test_filled_rows() -> None:
    filled, empty = tf.sparse_fill_empty_rows(sparse_of(DENSE), 9)
    value, rows = run([filled, empty])
    assert rows.tolist() == [False, True, False]
    np.testing.assert_array_equal(dense_of(value), [[1, 0, 2], [9, 0, 0], [0, -3, 4]])
    values = sparse_of(DENSE).values
    default = tf.constant(9.0)
    sparse = tf.SparseTensor(np.argwhere(DENSE), values, DENSE.shape)
    filled, _ = tf.sparse.fill_empty_rows(sparse, default)
    flows = tf.gradients(tf.reduce_sum(filled.values * [1.0, 2.0, 3.0, 4.0, 5.0]), [values, default])
    assert [x.tolist() for x in run(flows)] == [[1, 2, 4, 5], 3]


def test_slices_left_out() -> None:
    slices = tf.IndexedSlices(tf.constant(DENSE), tf.constant([4, 5, 6]))
    found = run(tf.sparse_mask(slices, [5, 9]))
    assert found.indices.tolist() == [4, 6]
    np.testing.assert_array_equal(found.values, DENSE[[0, 2]])


def test_nodes_are_named_as_in_tensorflow() -> None:
    sparse = sparse_of(DENSE)
    assert node_names(lambda: tf.sparse_slice(sparse, [0, 0], [1, 1]))[-1] == "SparseSlice"
    assert node_names(lambda: tf.sparse_split(sp_input=sparse, num_split=1, axis=0)) == [
        "SparseSplit/split_dim",
        "SparseSplit",
    ]
    assert node_names(lambda: tf.sparse_concat(0, [sparse, sparse]))[0] == "SparseConcat"
    assert node_names(lambda: tf.sparse_fill_empty_rows(sparse, 0.0)) == [
        "SparseFillEmptyRows/Const",
        "SparseFillEmptyRows/SparseFillEmptyRows",
    ]
