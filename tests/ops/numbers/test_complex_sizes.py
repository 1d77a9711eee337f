"""Absolute values of complex numbers, few and many: with infinities, and squares that overflow."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flowstone as tf

PARTS = [0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, 1e30, 3e38, 1e-30, 1e-40]


@pytest.mark.parametrize("count", [121, 40_000])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_sizes(count: int, dtype: type) -> None:
    pairs = np.resize([complex(*pair) for pair in itertools.product(PARTS, PARTS)], count).astype(dtype)
    with np.errstate(over="ignore"):
        expected = np.hypot(pairs.real, pairs.imag)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(dtype, [None])
        found = session.run([tf.abs(x), tf.abs(tf.conj(x))], {x: pairs})
    for one in found:
        np.testing.assert_allclose(one, expected, rtol=2e-7, atol=1.2e-38)
