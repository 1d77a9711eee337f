"""A root or a reciprocal has no gradient where none comes in, also where its derivative is infinite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("size", [1, 9, 5000])
@pytest.mark.parametrize(
    "function", [tf.sqrt, tf.rsqrt, tf.reciprocal, lambda x: 2.0 * tf.sqrt(x) + tf.tanh(x)]
)
def test_what_is_not_taken_has_no_gradient(function: Any, size: int, dtype: Any) -> None:
    is_taken = np.arange(size) % 2 == 0
    x = tf.placeholder(dtype, [size])
    y = tf.where(is_taken, function(x), tf.zeros([size], dtype))
    (dx,) = tf.gradients(y, x, grad_ys=tf.ones([size], dtype))
    with tf.Session() as session:
        found = session.run(dx, {x: np.where(is_taken, 4, 0).astype(dtype)})
    assert np.isfinite(found).all() and (found != 0).tolist() == is_taken.tolist()


@pytest.mark.parametrize("name", ["SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"])
def test_special_values(name: str) -> None:
    """TensorFlow 1.15.5's, on the CPU."""
    y = np.array([0, 0, np.inf, np.inf, np.nan, np.nan, 2, -0.0, -np.inf], np.float32)
    dy = np.array([0, 1, 0, 2, 0, 1, 3, 0, 0], np.float32)
    expected = {
        "SqrtGrad": [0, np.inf, 0, 0, 0, np.nan, 0.75, 0, 0],
        "RsqrtGrad": [0, 0, 0, -np.inf, 0, np.nan, -12, 0, 0],
    }
    with tf.Session() as session:
        found = session.run(getattr(tf.raw_ops, name)(y=y, dy=dy))
    np.testing.assert_array_equal(found, expected.get(name, expected["RsqrtGrad"]))
