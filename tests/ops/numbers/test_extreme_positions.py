"""Positions of extremes in tensors of any size: the same by either of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf

RNG = np.random.default_rng(8)


@pytest.mark.parametrize(
    "dims, axis", [((10, 300), 0), ((900, 4), 1), ((7, 20, 30), 1), ((4000,), 0), ((5, 6), 0)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_the_first_of_several(dims: Any, axis: int, dtype: str) -> None:
    x = RNG.integers(0, 5, dims).astype(dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(dtype, dims)
        found = session.run([tf.argmax(fed, axis), tf.argmin(fed, axis, output_type=tf.int32)], {fed: x})
    np.testing.assert_array_equal(found[0], x.argmax(axis))
    np.testing.assert_array_equal(found[1], x.argmin(axis))
    assert [each.dtype for each in found] == [np.int64, np.int32]


@pytest.mark.parametrize("columns", [4, 900])
def test_nan_is_extreme(columns: int) -> None:
    x = RNG.standard_normal((3, columns)).astype("f")
    x[1, 2] = x[1, 3] = np.nan
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.argmax(tf.constant(x) * 1.0, 1))[1] == 2
        fed = tf.placeholder(tf.float32, x.shape)
        assert session.run(tf.argmin(fed, 1), {fed: x})[1] == 2
