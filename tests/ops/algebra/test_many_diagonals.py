"""Diagonals of batches that have no matrix."""

from __future__ import annotations

import numpy as np

import flowstone as tf


def test_of_no_matrices() -> None:
    x = tf.placeholder(tf.float32, [None, 3, 4])
    diagonals = tf.linalg.diag_part(x, k=(-1, 1), padding_value=7.0)
    with tf.Session() as session:
        assert session.run(diagonals, {x: np.ones([0, 3, 4])}).shape == (0, 3, 3)
        assert session.run(diagonals, {x: np.ones([2, 3, 4])}).sum() == 2 * (8 + 7)


def test_replaced_diagonals_tell_the_shape() -> None:
    x, diagonals = tf.placeholder(tf.float32), tf.placeholder(tf.float32, [2, 2, 3])
    assert tf.linalg.set_diag(x, diagonals, k=(0, 1)).shape.as_list() == [2, None, None]
    assert tf.linalg.set_diag(x, diagonals).shape.as_list() == [2, 2, None, None]
