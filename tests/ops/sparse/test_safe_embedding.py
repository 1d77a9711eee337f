"""Embeddings of rows with invalid, unweighted or no ids."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

TABLE = np.arange(8, dtype=np.float32).reshape(4, 2)
PLACES = [[0, 0], [0, 1], [2, 0], [3, 0], [3, 1]]
IDS = np.int64([1, 3, -1, 2, 0])
WEIGHTS = np.float32([1, 3, 1, 0, 2])


def look_up(
    weights: object = None, shape: tuple = (4, 2), places: object = PLACES, **options: object
) -> np.ndarray:
    ids = tf.SparseTensor(places, IDS, shape)
    sparse_weights = None if weights is None else tf.SparseTensor(places, weights, shape)
    found = tf.nn.safe_embedding_lookup_sparse([tf.constant(TABLE)], ids, sparse_weights, **options)
    with tf.Session() as session:
        value = session.run(found)
    assert found.shape.is_compatible_with(value.shape)
    return value


def test_rows_without_ids_are_zero() -> None:
    expected = [(TABLE[1] + TABLE[3]) / 2, [0, 0], [0, 0], (TABLE[2] + TABLE[0]) / 2]
    np.testing.assert_allclose(look_up(), expected)


def test_rows_without_ids_take_the_default() -> None:
    expected = [TABLE[1] + TABLE[3], TABLE[3], TABLE[3], TABLE[2] + TABLE[0]]
    np.testing.assert_allclose(look_up(combiner="sum", default_id=3), expected)


def test_ids_without_weight_are_left_out() -> None:
    mean = [(TABLE[1] + 3 * TABLE[3]) / 4, [0, 0], [0, 0], TABLE[0]]
    np.testing.assert_allclose(look_up(WEIGHTS), mean)
    total = [TABLE[1] + 3 * TABLE[3], [0, 0], [0, 0], 2 * TABLE[0]]
    np.testing.assert_allclose(look_up(WEIGHTS, combiner="sum"), total)


def test_more_dimensions() -> None:
    places = [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]]
    value = look_up(shape=(2, 2, 2), places=places)
    assert value.shape == (2, 2, 2)
    np.testing.assert_allclose(value[0], [(TABLE[1] + TABLE[3]) / 2, [0, 0]])


def test_partitions() -> None:
    parts = [tf.constant(TABLE[:2]), tf.constant(TABLE[2:])]
    ids = tf.SparseTensor(PLACES, IDS, (4, 2))
    with tf.Session() as session:
        value = session.run(tf.nn.safe_embedding_lookup_sparse(parts, ids))
    np.testing.assert_allclose(value, look_up())


def test_arguments_are_checked() -> None:
    ids = tf.SparseTensor(PLACES, IDS, (4, 2))
    with pytest.raises(ValueError, match="embedding_weights"):
        tf.nn.safe_embedding_lookup_sparse(None, ids)
    with pytest.raises(ValueError, match="same"):
        weights = tf.SparseTensor(PLACES, WEIGHTS.astype(np.float64), (4, 2))
        tf.nn.safe_embedding_lookup_sparse([tf.constant(TABLE)], ids, weights)
    with pytest.raises(TypeError, match="SparseTensor"):
        tf.nn.safe_embedding_lookup_sparse([tf.constant(TABLE)], IDS)


def test_means_of_no_weight_are_no_numbers() -> None:
    ids = tf.SparseTensor([[0, 0], [1, 0]], np.int64([1, 2]), [2, 1])
    weights = tf.SparseTensor([[0, 0], [1, 0]], np.float32([0, 2]), [2, 1])
    for combiner in ("mean", "sqrtn"):
        found = tf.nn.embedding_lookup_sparse(TABLE, ids, weights, combiner=combiner)
        with tf.Session() as session:
            np.testing.assert_array_equal(session.run(found), [[np.nan, np.nan], TABLE[2]])
