"""The choice between a value and zero by the sign of a margin."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.lowering.arrays.margins import kept_op


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_has_no_negative_margin_is_kept(dtype) -> None:
    x = tf.constant(np.arange(1, 7, dtype=dtype))
    margin = tf.constant(np.array([0.0, -0.0, 1e-9, -1e-9, np.inf, -np.inf], dtype))
    with tf.Session() as s:
        np.testing.assert_array_equal(s.run(kept_op(x, margin, name="kept")), [1, 2, 3, 0, 5, 0])


def test_the_shape_is_that_of_the_values() -> None:
    x = tf.placeholder(tf.float32, [None, 3])
    assert kept_op(x, x, name="kept").shape.as_list() == [None, 3]


def test_it_has_no_gradient() -> None:
    x = tf.placeholder(tf.float32, [3])
    assert tf.gradients(kept_op(x, x, name="kept"), x) == [None]
