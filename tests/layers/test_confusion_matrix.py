"""How often each class was predicted for each label."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


LABELS, PREDICTIONS = [0, 1, 1, 2, 1], [0, 1, 2, 0, 1]
EXPECTED = [[1, 0, 0], [0, 2, 1], [1, 0, 0]]


def run(tensor, feeds=None):
    with tf.Session() as session:
        return session.run(tensor, feeds)


def test_counts() -> None:
    matrix = tf.confusion_matrix(LABELS, PREDICTIONS)
    assert matrix.dtype is tf.int32
    np.testing.assert_array_equal(run(matrix), EXPECTED)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64, tf.float32, tf.float64])
def test_weights_types_and_names(dtype) -> None:
    matrix = tf.confusion_matrix(LABELS, PREDICTIONS, 4, dtype, "matrix", [1, 2, 3, 4, 5])
    assert matrix.op.name.startswith("matrix/")
    assert matrix.dtype is dtype
    assert matrix.shape.as_list() == [4, 4]
    expected = np.zeros([4, 4])
    np.add.at(expected, (LABELS, PREDICTIONS), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(run(matrix), expected)


def test_shapes_that_the_step_knows() -> None:
    labels, predictions = tf.placeholder(tf.int32), tf.placeholder(tf.int64)
    matrix = tf.confusion_matrix(labels, predictions)
    feeds = {labels: np.reshape(LABELS, [5, 1]), predictions: PREDICTIONS}
    np.testing.assert_array_equal(run(matrix, feeds), EXPECTED)
    known = tf.confusion_matrix(labels, predictions, num_classes=2)
    np.testing.assert_array_equal(run(known, {labels: [], predictions: []}), np.zeros([2, 2]))


def test_classes_out_of_bounds() -> None:
    labels, predictions = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
    matrix = tf.confusion_matrix(labels, predictions, num_classes=3)
    for given, message in (
        (([-1, 0], [0, 0]), "`labels` contains negative values"),
        (([0, 0], [0, -2]), "`predictions` contains negative values"),
        (([3, 0], [0, 0]), "`labels` out of bound"),
        (([0, 0], [0, 7]), "`predictions` out of bound"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            run(matrix, dict(zip((labels, predictions), given)))


def test_shapes_that_differ() -> None:
    with pytest.raises(ValueError):
        tf.confusion_matrix([1, 2], [1, 2, 3])
    with pytest.raises(ValueError):
        tf.confusion_matrix([1, 2], [1, 2], weights=[1, 2, 3])
