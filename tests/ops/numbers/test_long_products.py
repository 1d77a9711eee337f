"""Products along long rows, which are those of the products of parts."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf


@pytest.mark.parametrize("shape", [(128, 512), (40, 3, 700), (1, 70_001), (3, 40_000)])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float64", 1e-11)])
def test_products_of_rows(shape: tuple[int, ...], keep: bool, dtype: str, tolerance: float) -> None:
    x = np.exp(np.random.RandomState(0).randn(*shape) / 20).astype(dtype)
    x.reshape(-1)[:5] *= -1
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(dtype, shape)
        y = tf.reduce_prod(fed, -1, keep_dims=keep)
        flow = tf.gradients(y, fed)[0]
        found, dx = session.run([y, flow], {fed: x})
    expected = np.prod(x.astype(np.longdouble), -1, keepdims=True)
    np.testing.assert_allclose(found, expected if keep else expected[..., 0], rtol=tolerance)
    np.testing.assert_allclose(dx, expected / x, rtol=10 * tolerance)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_special_values(value: float) -> None:
    x = np.full((100, 1000), 0.99, np.float32)
    x[3, 999], x[4, 500] = value, value
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, [None, None])
        found = session.run(tf.reduce_prod(fed, [1]), {fed: x})
    np.testing.assert_array_equal(found[3:5], [value, value])
    np.testing.assert_allclose(found[5:], 0.99**1000, rtol=1e-4)
