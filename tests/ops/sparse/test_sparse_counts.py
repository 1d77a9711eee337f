"""`tf.sparse.bincount` of dense and sparse numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from sparse_values import dense_of, run, sparse_of

pytestmark = pytest.mark.usefixtures("graph")

NUMBERS = np.array([[1, 1, 3], [4, 7, 2]], np.int32)
WEIGHTS = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


@pytest.mark.parametrize("kind", [tf.constant, sparse_of])
def test_counts_of_all_and_of_rows(kind: Any) -> None:
    numbers = kind(NUMBERS)
    np.testing.assert_array_equal(dense_of(run(tf.sparse.bincount(numbers))), np.bincount(NUMBERS.ravel()))
    rows = run(tf.sparse.bincount(numbers, axis=-1))
    np.testing.assert_array_equal(dense_of(rows), [np.bincount(row, minlength=8) for row in NUMBERS])
    assert rows.values.dtype == np.int32


@pytest.mark.parametrize("kind", [tf.constant, sparse_of])
def test_weights_are_added_up(kind: Any) -> None:
    found = run(tf.sparse.bincount(kind(NUMBERS), kind(WEIGHTS)))
    np.testing.assert_array_equal(dense_of(found), np.bincount(NUMBERS.ravel(), WEIGHTS.ravel()))
    rows = run(tf.sparse.bincount(kind(NUMBERS), kind(WEIGHTS), axis=-1, minlength=10))
    assert dense_of(rows)[0].tolist() == [0, 3, 0, 3, *[0] * 6]


def test_lengths() -> None:
    assert run(tf.sparse.bincount(NUMBERS, maxlength=3)).dense_shape.tolist() == [3]
    assert dense_of(run(tf.sparse.bincount(NUMBERS, maxlength=3, binary_output=True))).tolist() == [0, 1, 1]
    assert run(tf.sparse.bincount(NUMBERS, minlength=20, axis=-1)).dense_shape.tolist() == [2, 20]


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="axis=1"):
        tf.sparse.bincount(NUMBERS, axis=1)
    with pytest.raises(ValueError, match="minlength"):
        tf.sparse.bincount(NUMBERS, minlength=-1)
    with pytest.raises(ValueError, match="sparse"):
        tf.sparse.bincount(sparse_of(NUMBERS), WEIGHTS)
    with pytest.raises(tf.errors.InvalidArgumentError, match="non-negative"):
        run(tf.sparse.bincount(-NUMBERS))


def test_a_bound_that_no_64_bits_hold_is_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="64 bits"):
        run(tf.sparse.bincount(tf.SparseTensor([[0, 0]], [2**62], [2**40, 1]), axis=-1))


def test_segments_of_picked_rows_and_their_sparse_gradient() -> None:
    data = tf.constant(WEIGHTS)
    for function in (tf.sparse.segment_sum, tf.sparse.segment_mean, tf.sparse.segment_sqrt_n):
        total = function(data, [1, 0, 1], [0, 0, 2], num_segments=4, sparse_gradient=True)
        flow = tf.gradients(total, data)[0]
        assert isinstance(flow, tf.IndexedSlices)
        assert run(total).shape == (4, 3)
        assert run(flow.indices).tolist() == [0, 1]
        np.testing.assert_array_equal(run(total)[[1, 3]], np.zeros((2, 3)))
    assert run(tf.sparse.segment_sum(data, [1, 0], [0, 0])).tolist() == [[5, 7, 9]]


def test_the_indices_tell_the_rank_of_sparse_counts() -> None:
    rows, sizes = tf.placeholder(tf.int64, [None, 2]), tf.placeholder(tf.int64, [None])
    values, weights = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [0])
    counts = tf.raw_ops.SparseCountSparseOutput(
        indices=rows, values=values, dense_shape=sizes, weights=weights, binary_output=False
    )
    assert [each.shape.as_list() for each in counts] == [[None, 2], [None], [2]]
