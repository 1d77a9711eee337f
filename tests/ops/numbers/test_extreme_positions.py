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


_NAN, _INF = np.nan, np.inf
_ROWS = [  # and where TensorFlow 1.15 and 2.21 find the greatest and the smallest
    ([_NAN, 1, 2, 0], 2, 3), ([1, _NAN, 2, 0], 2, 3), ([2, 1, 0, _NAN], 0, 2), ([_NAN] * 4, 0, 0),
    ([3, _NAN, _NAN, 5], 3, 0), ([-_INF, _NAN, 1, 2], 3, 0), ([_NAN, -_INF, -_INF, _NAN], 0, 1),
    ([_NAN, 2, 2, 1], 1, 3),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("rest", [0, 900])
@pytest.mark.parametrize("dims", [[None, None], "all"])
def test_nan_is_no_extreme(rest: int, dtype: str, dims: Any) -> None:
    x = np.array([row + [_NAN] * rest for row, _, _ in _ROWS], dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(dtype, x.shape if dims == "all" else dims)
        others = tf.transpose(fed)
        found = session.run([tf.argmax(fed, 1), tf.argmin(fed, 1), tf.argmax(others, 0), tf.argmin(others, 0),
                             tf.argmax(fed * 1 + 1, 1)], {fed: x})  # fmt: skip
    greatest, smallest = [g for _, g, _ in _ROWS], [s for _, _, s in _ROWS]
    assert [each.tolist() for each in found] == [greatest, smallest, greatest, smallest, greatest]


def test_nan_in_a_loop_is_no_extreme() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [len(_ROWS), 4])
        none = tf.zeros([len(_ROWS)], tf.int64)
        loop = tf.while_loop(
            lambda i, *_: i < 3,
            lambda i, g, s: (i + 1, tf.argmax(x * 1.0, 1) + 0 * g, tf.argmin(tf.transpose(x), 0) + 0 * s),
            [0, none, none],
        )
        found = session.run(loop[1:], {x: [row for row, _, _ in _ROWS]})
    assert [each.tolist() for each in found] == [[g for _, g, _ in _ROWS], [s for _, _, s in _ROWS]]
