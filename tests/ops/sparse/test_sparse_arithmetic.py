"""Sums, extremes, reductions and products of sparse tensors are those of their dense counterparts."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from sparse_values import DENSE, OTHER, dense_of, is_ordered, node_names, run, sparse_of

pytestmark = pytest.mark.usefixtures("graph")


def test_sums() -> None:
    total = run(tf.sparse_add(sparse_of(DENSE), sparse_of(OTHER)))
    np.testing.assert_array_equal(dense_of(total), DENSE + OTHER)
    assert is_ordered(total)
    assert len(total.values) == 6  # 2 - 2 is kept: the threshold is 0
    a, b = sparse_of(DENSE), sparse_of(OTHER)
    for kept in (tf.sparse_add(a, b, 1.0), tf.sparse.add(a, b, threshold=1.0)):
        assert len(run(kept).values) == 5
    for mixed in (tf.sparse_add(sparse_of(DENSE), OTHER), tf.sparse_add(DENSE, sparse_of(OTHER))):
        np.testing.assert_array_equal(run(mixed), DENSE + OTHER)
    with pytest.raises(TypeError, match="At least one"):
        tf.sparse_add(DENSE, OTHER)


def test_gradients_of_sums_flow_to_both() -> None:
    a, b = tf.placeholder(tf.float32, [4]), tf.placeholder(tf.float32, [4])
    first = tf.SparseTensor(np.argwhere(DENSE), a, DENSE.shape)
    total = tf.sparse_add(first, tf.SparseTensor(np.argwhere(OTHER), b, OTHER.shape))
    weights = np.arange(9, dtype=np.float32).reshape(3, 3)
    flows = tf.gradients(tf.reduce_sum(total.values * tf.gather_nd(weights, total.indices)), [a, b])
    found = run(flows, {a: DENSE[DENSE != 0], b: OTHER[OTHER != 0]})
    np.testing.assert_array_equal(found[0], weights[DENSE != 0])
    np.testing.assert_array_equal(found[1], weights[OTHER != 0])


def test_extremes() -> None:
    largest = run(tf.sparse_maximum(sparse_of(DENSE), sparse_of(OTHER)))
    smallest = run(tf.sparse_minimum(sparse_of(DENSE), sparse_of(OTHER)))
    np.testing.assert_array_equal(dense_of(largest), np.maximum(DENSE, OTHER))
    np.testing.assert_array_equal(dense_of(smallest), np.minimum(DENSE, OTHER))
    assert len(largest.values) == len(smallest.values) == 6


@pytest.mark.parametrize("axis", [None, 0, -1, [0, 1]])
@pytest.mark.parametrize("keep_dims", [False, True])
def test_sums_along_axes(axis: object, keep_dims: bool) -> None:
    axes = tuple(axis) if isinstance(axis, list) else axis
    expected = DENSE.sum(axes, keepdims=keep_dims)
    np.testing.assert_array_equal(run(tf.sparse_reduce_sum(sparse_of(DENSE), axis, keep_dims)), expected)
    found = run(tf.sparse_reduce_sum_sparse(sparse_of(DENSE), reduction_axes=axis, keepdims=keep_dims))
    np.testing.assert_array_equal(dense_of(found), expected)


def test_maxima_are_of_what_is_there() -> None:
    np.testing.assert_array_equal(run(tf.sparse_reduce_max(sparse_of(-DENSE), 1)), [-1, 0, 3])
    found = run(tf.sparse_reduce_max_sparse(sparse_of(-DENSE), 1))
    assert (found.indices.tolist(), found.values.tolist()) == ([[0], [2]], [-1, 3])
    with pytest.raises(ValueError, match="axis"):
        tf.sparse_reduce_max(sparse_of(DENSE), 1, reduction_axes=1)


def test_soft_max_is_among_what_is_there() -> None:
    found = dense_of(run(tf.sparse_softmax(sparse_of(DENSE))))
    powers = np.where(DENSE, np.exp(DENSE), 0)
    np.testing.assert_allclose(found, powers / np.maximum(powers.sum(1, keepdims=True), 1e-9), rtol=1e-6)


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
def test_products(adjoint_a: bool, adjoint_b: bool) -> None:
    b = np.arange(9, dtype=np.float32).reshape(3, 3)
    product = tf.sparse_tensor_dense_matmul(sparse_of(DENSE), b, adjoint_a, adjoint_b)
    np.testing.assert_allclose(run(product), (DENSE.T if adjoint_a else DENSE) @ (b.T if adjoint_b else b))
    dense = tf.sparse_matmul(DENSE, b, transpose_a=adjoint_a, transpose_b=adjoint_b, a_is_sparse=True)
    np.testing.assert_allclose(run(dense), (DENSE.T if adjoint_a else DENSE) @ (b.T if adjoint_b else b))


def test_a_tall_sparse_matrix_with_empty_rows() -> None:
    random = np.random.RandomState(0)
    dense = np.where(random.rand(200, 30) < 0.02, random.randn(200, 30), 0)
    b = random.randn(30, 7)
    for rows in (np.argwhere(dense), np.argwhere(dense)[::-1].copy()):
        sparse = tf.SparseTensor(rows, dense[tuple(rows.T)], dense.shape)
        np.testing.assert_allclose(run(tf.sparse_tensor_dense_matmul(sparse, b)), dense @ b, atol=1e-12)


def test_operators() -> None:
    sparse, row = sparse_of(DENSE), np.array([2.0, 4.0, 8.0], np.float32)
    np.testing.assert_array_equal(dense_of(run(sparse * row)), DENSE * row)
    np.testing.assert_array_equal(dense_of(run(tf.constant(row) * sparse)), DENSE * row)
    np.testing.assert_array_equal(dense_of(run(sparse / row)), DENSE / row)
    np.testing.assert_array_equal(dense_of(run(sparse * 3.0)), DENSE * 3)
    whole = run(sparse_of(DENSE.astype(np.int32)) / np.int32([2, 4, 8]))
    assert whole.values.dtype == np.float64
    np.testing.assert_array_equal(dense_of(whole), DENSE / row)
    with pytest.raises(TypeError):
        sparse * sparse


def test_a_quotient_by_zero_is_infinite() -> None:
    values = run((sparse_of(DENSE) / np.float32([0, 1, 1])).values)
    assert values.tolist() == [np.inf, 2, -3, 4]


def test_gradient_of_a_product_with_a_scalar() -> None:
    factor = tf.constant(3.0)
    flow = tf.gradients(tf.sparse_reduce_sum(sparse_of(DENSE) * factor), factor)[0]
    assert run(flow) == DENSE.sum()


def test_nodes_are_named_as_in_tensorflow() -> None:
    sparse = sparse_of(DENSE)
    assert node_names(lambda: sparse * DENSE) == ["mul/y", "mul"]
    assert node_names(lambda: sparse / DENSE) == ["truediv/y", "truediv"]
    assert node_names(lambda: tf.sparse_add(sparse, sparse))[:2] == ["threshold", "SparseAdd"]
    assert node_names(lambda: tf.sparse_add(sparse, DENSE)) == [
        "SparseTensorDenseAdd/b",
        "SparseTensorDenseAdd",
    ]
    assert node_names(lambda: tf.sparse_reduce_sum(sparse, 1)) == [
        "SparseReduceSum/reduction_axes",
        "SparseReduceSum",
    ]
    assert node_names(lambda: tf.sparse_softmax(sparse)) == ["SparseSoftmax/SparseSoftmax"]
    assert node_names(lambda: tf.sparse_tensor_dense_matmul(sparse, DENSE)) == [
        "SparseTensorDenseMatMul/b",
        "SparseTensorDenseMatMul/SparseTensorDenseMatMul",
    ]


def test_what_is_not_sparse_is_refused() -> None:
    for function in (tf.sparse_softmax, tf.sparse_reduce_sum, tf.sparse.reorder, tf.sparse.to_dense):
        with pytest.raises(TypeError, match="SparseTensor"):
            function(DENSE)


def test_attention_over_the_edges_of_a_graph() -> None:
    """Sums of tensors with the same indices, soft-max and products with vectors, and their gradients, against
    dense matrices."""
    numbers = np.random.default_rng(3)
    edges = (numbers.random((9, 9)) < 0.3) | np.eye(9, dtype=bool)
    own, other = (tf.constant(numbers.standard_normal((9, 1))) for _ in range(2))
    adjacency = tf.sparse_placeholder(tf.float64, [9, 9])
    logits = tf.sparse_add(adjacency * own, adjacency * tf.transpose(other))
    weights = tf.sparse_tensor_dense_matmul(tf.sparse_softmax(logits), tf.constant(np.arange(9.0)[:, None]))
    dense = tf.where(edges, own + tf.transpose(other), tf.fill([9, 9], np.float64(-np.inf)))
    expected = tf.matmul(tf.nn.softmax(dense), np.arange(9.0)[:, None])
    places = np.argwhere(edges)
    with tf.Session() as session:
        for found, wanted in zip(
            [weights, *tf.gradients(tf.square(weights), [own, other])],
            [expected, *tf.gradients(tf.square(expected), [own, other])],
        ):
            value = session.run(found, {adjacency: (places, np.ones(len(places)), (9, 9))})
            np.testing.assert_allclose(value, session.run(wanted), rtol=1e-10, atol=1e-12)


def test_repeated_and_unordered_rows_are_added_up_and_grouped() -> None:
    rows = np.array([[2, 0], [0, 1], [2, 0], [0, 0]])
    tensor = tf.SparseTensor(rows, [1.0, 2.0, 3.0, 4.0], [3, 2])
    total = tf.sparse_add(tensor, tensor)
    chances = tf.sparse_softmax(tensor)
    with tf.Session() as session:
        indices, values, _ = session.run(total)
        assert indices.tolist() == [[0, 0], [0, 1], [2, 0]] and values.tolist() == [8, 4, 8]
        powers = np.exp([-2.0, -2.0, 0.0, 0.0])
        np.testing.assert_allclose(session.run(chances.values), powers / (1 + np.exp(-2.0)), rtol=1e-6)


@pytest.mark.parametrize("name", ["square", "abs", "negative", "sign", "sqrt", "tanh", "erf"])
def test_functions_of_the_stored_values(name: str) -> None:
    function = getattr(tf, name)
    sparse = tf.SparseTensor([[0, 0], [1, 2]], [-1.5, 2.0], [2, 3])
    with tf.Session() as session:
        found, values = session.run([function(sparse), function(sparse.values)])
    np.testing.assert_array_equal(found.values, values)
    assert found.indices.tolist() == [[0, 0], [1, 2]] and found.dense_shape.tolist() == [2, 3]
