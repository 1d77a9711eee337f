"""Sparse tensors in another order, in other shapes and with other axes."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from sparse_values import DENSE, dense_of, is_ordered, node_names, run, sparse_of

pytestmark = pytest.mark.usefixtures("graph")


def test_order() -> None:
    rows = np.argwhere(DENSE)[::-1].copy()
    found = tf.sparse_reorder(tf.SparseTensor(rows, DENSE[tuple(rows.T)], DENSE.shape))
    assert found.shape.as_list() == [3, 3]
    value = run(found)
    assert is_ordered(value)
    np.testing.assert_array_equal(dense_of(value), DENSE)


@pytest.mark.parametrize("shape", [[9], [-1], [1, 3, 3], [3, 1, -1]])
def test_shapes(shape: list[int]) -> None:
    found = tf.sparse_reshape(sparse_of(DENSE), shape)
    assert found.shape.as_list() == list(DENSE.reshape(shape).shape)
    np.testing.assert_array_equal(dense_of(run(found)), DENSE.reshape(shape))


def test_shapes_that_do_not_fit() -> None:
    for shape in ([7], [4, -1], [-1, -1]):
        with pytest.raises(ValueError, match=r"reshape|inferred"):
            tf.sparse_reshape(sparse_of(DENSE), shape)
    sizes = tf.placeholder(tf.int32, [2])
    found = tf.sparse_reshape(sparse_of(DENSE), sizes)
    assert found.shape.as_list() == [None, None]
    np.testing.assert_array_equal(dense_of(run(found, {sizes: [1, -1]})), DENSE.reshape(1, -1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="9 dense values"):
        run(found, {sizes: [5, 2]})


def test_axes() -> None:
    cube = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(dense_of(run(tf.sparse_transpose(sparse_of(cube)))), cube.T)
    found = tf.sparse_transpose(sparse_of(cube), [1, 2, 0])
    assert found.shape.as_list() == [3, 4, 2]
    value = run(found)
    np.testing.assert_array_equal(dense_of(value), cube.transpose(1, 2, 0))
    assert is_ordered(value)


def test_axes_of_what_is_fed() -> None:
    sparse = tf.sparse_placeholder(tf.float32)
    found = run(tf.sparse_transpose(sparse), {sparse: (np.argwhere(DENSE), DENSE[DENSE != 0], DENSE.shape)})
    np.testing.assert_array_equal(dense_of(found), DENSE.T)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_one_more_axis(axis: int) -> None:
    found = tf.sparse.expand_dims(sparse_of(DENSE), axis)
    expected = np.expand_dims(DENSE, axis)
    assert found.shape.as_list() == list(expected.shape)
    np.testing.assert_array_equal(dense_of(run(found)), expected)


def test_larger_and_smallest_shapes() -> None:
    assert run(tf.sparse_reset_shape(sparse_of(DENSE[:2]))).dense_shape.tolist() == [1, 3]
    assert run(tf.sparse_reset_shape(sparse_of(DENSE), [4, 3])).dense_shape.tolist() == [4, 3]
    with pytest.raises(ValueError, match="sizes >="):
        tf.sparse_reset_shape(sparse_of(DENSE), [2, 3])
    with pytest.raises(ValueError, match="not compatible"):
        tf.sparse_reset_shape(sparse_of(DENSE), [3, 3, 3])
    sparse = tf.sparse_placeholder(tf.float32)
    feed = {sparse: (np.argwhere(DENSE), DENSE[DENSE != 0], DENSE.shape)}
    assert run(tf.sparse_reset_shape(sparse, [5, 6]), feed).dense_shape.tolist() == [5, 6]
    for sizes in ([2, 3], [3, 3, 3]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(tf.sparse_reset_shape(sparse, sizes), feed)


def test_nodes_are_named_as_in_tensorflow() -> None:
    sparse, fed = sparse_of(DENSE), tf.sparse_placeholder(tf.float32)
    assert node_names(lambda: tf.sparse_reorder(fed)) == ["SparseReorder", "Identity"]
    assert node_names(lambda: tf.sparse_reorder(sparse))[0] == "SparseReorder_1"
    assert node_names(lambda: tf.sparse_reshape(fed, [-1, 2])) == [
        "Cast/x",
        "Cast",
        "SparseReshape",
        "SparseReshape/Identity",
    ]
    rows, columns = sparse.dense_shape[:1], sparse.dense_shape[1]
    for sizes, is_said in [
        ([-1, DENSE.shape[1]], True),
        ([-1, columns], True),
        (sparse.dense_shape, True),
        ([tf.reduce_prod(rows), columns], False),
        (sparse.dense_shape * 1, False),
    ]:
        names = node_names(lambda sizes=sizes: tf.sparse_reshape(sparse, sizes, name="r"))
        assert any(name.endswith("/Const") and name.startswith("r") for name in names) is is_said
    names = node_names(lambda: tf.sparse_transpose(fed))
    assert names[:3] == ["SparseTranspose/Rank", "SparseTranspose/sub/y", "SparseTranspose/sub"]
    assert names[-2:] == ["SparseTranspose/SparseReorder", "SparseTranspose/Identity"]


@pytest.mark.parametrize("count", [0, 1, 400, 3000])
@pytest.mark.parametrize("rank", [1, 3])
def test_columns_side_by_side_are_in_order(count: int, rank: int) -> None:
    """Few rows and many, of which each way of sorting has its own; rows outside of their shape too."""
    rng = np.random.RandomState(count)
    rows = np.unique(rng.randint(0, 25, (count, rank)), axis=0)
    parts = [tf.SparseTensor(rows, np.arange(len(rows)), [20] * rank)] * 2
    value = run(tf.sparse_concat(rank - 1, parts))
    moved = rows + np.array([0] * (rank - 1) + [20])
    both = np.concatenate([rows, moved])
    order = np.lexsort(both.T[::-1])
    np.testing.assert_array_equal(value.indices, both[order])
    np.testing.assert_array_equal(value.values, np.tile(np.arange(len(rows)), 2)[order])
