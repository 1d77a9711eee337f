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


def test_second_gradients() -> None:
    """Of a penalty on the gradient of |x|, against differences of that gradient."""
    values = np.array([3 + 4j, -1j, 0.5 - 2j, 0])
    with tf.Graph().as_default(), tf.Session() as session:
        x, flow = tf.placeholder(tf.complex128, [4]), tf.constant(np.array([1 + 2j, 0.5j, -1 + 1j, 1]))
        (first,) = tf.gradients(tf.abs(x), x)
        (second,) = tf.gradients(first, x, flow)
        found = session.run(second, {x: values})
        along = [session.run(first, {x: values + step}) for step in (1e-6, -1e-6, 1e-6j, -1e-6j)]
        flows = session.run(flow)
    # The gradient of Re(conj(flow) first) is taken by the real and by the imaginary part of x.
    by_real = (flows.conj() * (along[0] - along[1])).real / 2e-6
    by_imaginary = (flows.conj() * (along[2] - along[3])).real / 2e-6
    np.testing.assert_allclose(found[:3], (by_real + 1j * by_imaginary)[:3], atol=1e-8)
    assert found[3] == 0
