"""`gather_nd` with batch dimensions and of ragged tensors: what TensorFlow 1.15.5 gives, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def known(value: Any, how: str, dtype: Any) -> tuple[Any, dict[Any, Any]]:
    if how == "constant":
        return tf.constant(value, dtype), {}
    shape = None if how == "unknown" else [None] * np.ndim(value)
    fed = tf.placeholder(dtype, shape)
    return fed, {fed: np.array(value)}


@pytest.mark.parametrize("how", ["constant", "rank", "unknown"])
@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
@pytest.mark.parametrize(
    ("indices", "batch_dims"),
    [
        ([[0], [1]], 1),
        ([[[0], [1]], [[2], [0]]], 1),
        ([[[0, 1]], [[2, 3]]], 1),
        ([[[[0]]] * 3] * 2, 2),
        ([[[3]] * 3] * 2, 2),
    ],
)
def test_values_and_gradients_within_a_batch(how, dtype, indices, batch_dims) -> None:
    params, fed = known(X, how, tf.float32)
    at, more = known(indices, how, dtype)
    y = tf.gather_nd(params, at, batch_dims=batch_dims)
    tuples = np.array(indices)
    batch = tuples.shape[:batch_dims]
    expected = [X[i][tuple(tuples[i].reshape(-1, tuples.shape[-1]).T)] for i in np.ndindex(*batch)]
    expected = np.reshape(expected, tuples.shape[:-1] + X.shape[batch_dims + tuples.shape[-1] :])
    if how == "constant":
        assert y.shape.as_list() == list(expected.shape)
    with tf.Session() as session:
        found, dx = session.run([y, *tf.gradients(y, params)], fed | more)
    np.testing.assert_array_equal(found, expected)
    assert dx.shape == X.shape and dx.sum() == expected.size


@pytest.mark.parametrize("batch_dims", [2, 3, -1])
def test_numbers_of_batch_dims(batch_dims) -> None:
    with pytest.raises(ValueError, match="batch_dims"):
        tf.gather_nd(X, [[0], [1]], batch_dims=batch_dims)


def test_other_batches() -> None:
    with pytest.raises(ValueError, match="3"):
        tf.gather_nd(X, [[0], [1], [2]], batch_dims=1)
    with pytest.raises(TypeError, match="batch_dims"):
        tf.gather_nd(X, [[0], [1]], batch_dims=None)
    at = tf.placeholder(tf.int32, [None, 1])
    y = tf.gather_nd(X, at, batch_dims=tf.constant(1))
    with tf.Session() as session:
        for bad in ([[0], [1], [2]], [[0], [3]]):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y, {at: bad})


ROWS = [[1, 2, 3], [4, 5], [6]]
DEEP = [[[1, 2], [3]], [[4, 5, 6]], []]


@pytest.mark.parametrize(
    ("rows", "indices", "expected"),
    [
        (ROWS, [[0], [1]], [[1, 2, 3], [4, 5]]),
        (ROWS, [[0, 1], [1, 0]], [2, 4]),
        (ROWS, [0], [[1, 2, 3]]),
        (DEEP, [[0], [1]], [[[1, 2], [3]], [[4, 5, 6]]]),
        (DEEP, [[0, 1], [1, 0]], [[3], [4, 5, 6]]),
        (DEEP, [[0, 0, 0]], [1]),
        (DEEP, [[[0], [2]], [[1], [0]]], [[[[1, 2], [3]], []], [[[4, 5, 6]], [[1, 2], [3]]]]),
        (DEEP, [[]], [DEEP]),
    ],
)
def test_ragged_params(rows, indices, expected) -> None:
    found = tf.gather_nd(tf.ragged.constant(rows), np.array(indices, np.int32))
    with tf.Session() as session:
        value = session.run(found)
    assert (value.to_list() if isinstance(found, tf.RaggedTensor) else value.tolist()) == expected


def test_ragged_indices() -> None:
    at = tf.ragged.constant([[[0]], [[1], [2]]], ragged_rank=1)
    again = tf.ragged.constant([[[0]], [[1], [0]]], ragged_rank=1)
    with tf.Session() as session:
        assert session.run(tf.gather_nd(tf.ragged.constant(ROWS), at)).to_list() == [[ROWS[0]], ROWS[1:]]
        dense = session.run(tf.gather_nd(tf.constant([[1, 2], [3, 4]]), again))
    assert dense.to_list() == [[[1, 2]], [[3, 4], [1, 2]]]


def test_what_ragged_params_refuse() -> None:
    rows = tf.ragged.constant(ROWS)
    for bad, more in ((0, {}), (tf.placeholder(tf.int32), {}), ([[0]], {"batch_dims": 1}), ([[0, 0, 0]], {})):
        with pytest.raises(ValueError):
            tf.gather_nd(rows, bad, **more)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.gather_nd(rows, [[5]]))


def test_there_is_nothing_to_take_of_empty_params() -> None:
    empty = np.zeros((2, 0, 2), np.float32)
    with tf.Session() as session:
        assert session.run(tf.gather_nd(empty, np.zeros((0, 1), np.int32))).shape == (0, 0, 2)
        with pytest.raises(tf.errors.InvalidArgumentError, match="empty"):
            session.run(tf.gather_nd(empty, [0]))


@pytest.mark.parametrize("index", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize("indices", [[[0, 1], [1, 2]], [[1]], [[[1, 2, 3]], [[0, 0, 0]]], [1, 2]])
def test_constant_tuples_pick_what_fed_ones_pick(indices, index) -> None:
    x, fed = tf.placeholder(tf.uint16, X.shape), tf.placeholder(index, np.shape(indices))
    ours = [tf.gather_nd(x, np.array(indices, index)), tf.gather_nd(x, fed)]
    with tf.Session() as session:
        constant, other = session.run(ours, {x: X, fed: indices})
    np.testing.assert_array_equal(constant, other)
    np.testing.assert_array_equal(constant, X.astype(np.uint16)[tuple(np.moveaxis(np.array(indices), -1, 0))])


@pytest.mark.parametrize("indices", [[[0, 3]], [[-1, 0]], [[0, 0], [2, 0]]])
def test_steps_refuse_constant_tuples_out_of_bounds(indices) -> None:
    x = tf.placeholder(tf.float32, X.shape)
    y = tf.gather_nd(x, indices, name="picked")
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match=r"does not index.*\n.*picked"),
    ):
        session.run(y, {x: X})
