"""`tf.vectorized_map`: each row by itself, gradients taken inside and outside of the function."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf

ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture(autouse=True)
def _graph() -> None:
    tf.reset_default_graph()


def test_rows_of_a_structure() -> None:
    x, y = tf.placeholder(tf.float32, [None, 2]), tf.constant([[1.0], [2.0], [3.0], [4.0]])
    total, longest = tf.vectorized_map(lambda row: (row[0] + row[1], tf.argmax(row[0])), (x, y))
    assert (total.dtype, longest.dtype) == (tf.float32, tf.int64)
    with tf.Session() as session:
        found = session.run([total, longest, tf.gradients(total, x)[0]], {x: ROWS})
    np.testing.assert_array_equal(found[0], ROWS + np.arange(1, 5)[:, None])
    np.testing.assert_array_equal(found[1], [1, 1, 1, 1])
    np.testing.assert_array_equal(found[2], np.ones_like(ROWS))


@pytest.mark.parametrize("use_resource", [False, True])
def test_the_function_takes_gradients_of_its_row(use_resource: bool) -> None:
    """As in private training: the gradient of each example's loss, clipped by itself."""
    w = tf.get_variable("w", initializer=np.array([1.0, 2.0], np.float32), use_resource=use_resource)
    losses = tf.square(tf.reduce_sum(ROWS * w, 1))

    def clipped(loss: tf.Tensor) -> tf.Tensor:
        (gradient,) = tf.gradients(loss, [w])
        return tf.clip_by_norm(gradient, 1.5)

    found = tf.vectorized_map(clipped, losses)
    with tf.Session() as session:
        session.run(w.initializer)
        runs = [session.run(found) for _ in range(3)]
    gradients = 2 * (ROWS @ [1, 2])[:, None] * ROWS
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    for run in runs:
        np.testing.assert_allclose(run, gradients * np.minimum(1, 1.5 / norms), rtol=1e-5)


def test_an_op_without_a_gradient_in_the_function_is_told() -> None:
    def gradient(row: tf.Tensor) -> tf.Tensor:
        return tf.gradients(tf.raw_ops.PreventGradient(input=row, message="not this"), row)[0]

    with pytest.raises(LookupError, match="not this"):
        tf.vectorized_map(gradient, ROWS)


def test_it_needs_rows() -> None:
    with pytest.raises(ValueError, match="rank 1 or more"):
        tf.vectorized_map(lambda row: row, tf.constant(1.0))
