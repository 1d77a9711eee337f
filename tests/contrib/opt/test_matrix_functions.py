"""Roots of matrices by iteration, against their definition."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.contrib.opt.matrix_functions import matrix_inverse_pth_root, matrix_square_root

random = np.random.RandomState(0).rand(4, 4).astype(np.float32)
MATRIX = random @ random.T + 0.5 * np.eye(4, dtype=np.float32)


def test_square_root() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        root = session.run(matrix_square_root(tf.constant(MATRIX), 4, ridge_epsilon=0.0))
    np.testing.assert_allclose(root @ root, MATRIX, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_inverse_root(p: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        root = session.run(matrix_inverse_pth_root(tf.constant(MATRIX), 4, -1.0 / p, ridge_epsilon=0.0))
    power = np.linalg.matrix_power(root.astype(np.float64), p)
    np.testing.assert_allclose(power @ MATRIX, np.eye(4), atol=2e-3)


def test_a_single_number() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        root = session.run(matrix_inverse_pth_root(tf.constant([[4.0]]), 1, -0.5))
    np.testing.assert_allclose(root, [[0.5]], rtol=1e-5)
