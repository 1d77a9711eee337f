"""Edit distances of random sequences against the definition, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

RNG = np.random.default_rng(2)


def sparse(rows: list[list[int]]) -> tf.SparseTensorValue:
    at = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    longest = max(map(len, rows))
    values = np.array([x for row in rows for x in row], np.int64)
    return tf.SparseTensorValue(np.array(at, np.int64).reshape(-1, 2), values, [len(rows), longest])


def defined(a: list[int], b: list[int]) -> int:
    table = [list(range(len(b) + 1))]
    for i, x in enumerate(a):
        row = [i + 1]
        for j, y in enumerate(b):
            row.append(min(row[j] + 1, table[-1][j + 1] + 1, table[-1][j] + (x != y)))
        table.append(row)
    return table[-1][-1]


def run(tensor: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(tensor, feed)


def test_random_sequences() -> None:
    with tf.Graph().as_default():
        sequences = [[RNG.integers(0, 3, RNG.integers(1, 9)).tolist() for _ in range(20)] for _ in range(2)]
        a, b = (tf.sparse_placeholder(tf.int64) for _ in range(2))
        feed = {a: sparse(sequences[0]), b: sparse(sequences[1])}
        found = run(tf.edit_distance(a, b, normalize=False), feed)
        np.testing.assert_array_equal(found, [defined(x, y) for x, y in zip(*sequences)])
        over_lengths = run(tf.edit_distance(a, b), feed)
        np.testing.assert_allclose(over_lengths, found / [len(y) for y in sequences[1]], rtol=1e-6)


def test_an_empty_truth_is_infinitely_far() -> None:
    with tf.Graph().as_default():
        a = tf.SparseTensor([[0, 0], [1, 0]], [1, 2], [3, 1])
        b = tf.SparseTensor([[1, 0]], [2], [3, 1])
        assert run(tf.edit_distance(a, b)).tolist() == [np.inf, 0, 0]
        with pytest.raises(TypeError, match="Hypothesis must be a SparseTensor"):
            tf.edit_distance([1], b)


def test_a_rank_of_indices_that_is_not_the_shapes() -> None:
    at = tf.placeholder(tf.int64, [None, 2])
    values, sizes, other = (tf.placeholder(tf.int64, [n]) for n in (None, 2, 1))
    with pytest.raises(ValueError, match="rank"):
        tf.raw_ops.EditDistance(
            hypothesis_indices=at, hypothesis_values=values, hypothesis_shape=other,
            truth_indices=at, truth_values=values, truth_shape=sizes,
        )  # fmt: skip
